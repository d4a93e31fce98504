"""Operators that read and write where an index tensor says; negative indices count from the end."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from costlib.tvm_compat import relax
from costlib.workloads.folding import static_type
from costlib.workloads.importers.aten.elementwise import negated
from costlib.workloads.importers.aten.graph import (
    Converter,
    Graph,
    dtype_of,
    registering,
    scalar,
    shape_of,
)
from costlib.workloads.importers.aten.reductions import running_sum

CONVERTERS: dict[str, Converter] = {}
converts = registering(CONVERTERS)

R = relax.op


def from_the_start(g: Graph, index: Any, extent: int) -> Any:
    """Count indices from the start of an axis."""
    if isinstance(index, torch.Tensor):
        return torch.where(index < 0, index + extent, index)
    dtype = static_type(index)[1]
    below = g.emit(R.less(index, scalar(0, dtype)))
    return g.emit(R.where(below, g.emit(R.add(index, scalar(extent, dtype))), index))


@converts("embedding")
def _embedding(g: Graph, table: Any, index: Any, *_: Any) -> Any:
    """Look rows up; as a list of them, which is how TVM's programs for it are known."""
    table, index = g.tensor(table), g.tensor(index, "int32")
    shape = shape_of(index)
    if len(shape) == 1:
        return R.take(table, index, axis=0)
    rows = g.emit(R.take(table, g.emit(R.reshape(index, [math.prod(shape)])), axis=0))
    return R.reshape(rows, shape_of(g.out))


@converts("index_select")
def _index_select(g: Graph, x: Any, dim: int, index: Any) -> Any:
    x = g.tensor(x)
    if not shape_of(x):
        return x
    axis = dim % len(shape_of(x))
    taken = g.tensor(from_the_start(g, index, shape_of(x)[axis]))
    if not shape_of(taken):
        taken = g.emit(R.reshape(taken, [1]))
    return R.take(x, taken, axis=axis, mode="clip")


@converts("gather")
def _gather(g: Graph, x: Any, dim: int, index: Any, *_: Any) -> Any:
    x = g.tensor(x)
    shape = shape_of(x)
    if not shape:
        return x if not shape_of(index) else R.broadcast_to(x, shape_of(index))
    axis = dim % len(shape)
    index = g.tensor(from_the_start(g, index, shape[axis]))
    inner = [slice(0, n) for i, n in enumerate(shape_of(index))]
    ends = [part.stop if i != axis else shape[i] for i, part in enumerate(inner)]
    if tuple(ends) != shape:
        x = g.emit(R.strided_slice(x, list(range(len(shape))), [0] * len(shape), ends))
    return R.gather_elements(x, index, axis)


@converts("index", "_unsafe_index")
def _index(g: Graph, x: Any, indices: Sequence[Any]) -> Any:
    x = g.tensor(x)
    places = [axis for axis, index in enumerate(indices) if index is not None]
    if _are_of_axes_alone(indices, places):
        for axis in places:
            index = g.tensor(from_the_start(g, indices[axis], shape_of(x)[axis]))
            along = g.emit(R.reshape(index, [math.prod(shape_of(index))]))
            x = g.emit(R.take(x, along, axis=axis, mode="clip"))
        return x
    first, flat, wide = _flattened(g, x, indices, places)
    taken = g.emit(R.take(first, g.tensor(flat), axis=0, mode="clip"))
    # The axes of the index come first; they belong where those were that it took the place of.
    if places != list(range(places[0], places[-1] + 1)):
        return taken
    rank, before = len(wide), places[0]
    others = range(rank, rank + len(shape_of(x)) - len(places))
    order = [*others[:before], *range(rank), *others[before:]]
    return R.permute_dims(taken, order) if order != sorted(order) else taken


def _are_of_axes_alone(indices: Sequence[Any], places: Sequence[int]) -> bool:
    """Whether adjacent axes are indexed each by itself, as resizing does: `x[:, i[:, None], j]`."""
    shapes = [tuple(shape_of(indices[axis])) for axis in places]
    alone = [
        all(extent == 1 for i, extent in enumerate(shape, len(places) - len(shape)) if i != at)
        for at, shape in enumerate(shapes)
    ]
    return (
        list(places) == list(range(places[0], places[-1] + 1))
        and max(map(len, shapes)) == len(places)
        and all(alone)
        and not any(_dtype(indices[axis]) in ("bool", "uint8") for axis in places)
    )


def _flattened(
    g: Graph, x: Any, indices: Sequence[Any], places: Sequence[int]
) -> tuple[Any, Any, tuple[int, ...]]:
    """Make one axis, the first, of those that are indexed, and one index of the indices."""
    shape = shape_of(x)
    if any(_dtype(indices[axis]) in ("bool", "uint8") for axis in places):
        raise NotImplementedError("the shape of what a mask picks depends on data; use torch.where")
    others = [axis for axis in range(len(shape)) if axis not in places]
    order = [*places, *others]
    moved = x if order == sorted(order) else g.emit(R.permute_dims(x, order))
    size = math.prod(shape[axis] for axis in places)
    if len(places) > 1:
        moved = g.emit(R.reshape(moved, [size, *(shape[axis] for axis in others)]))
    wide = torch.broadcast_shapes(*(shape_of(indices[axis]) for axis in places))
    flat: Any = None
    for axis in places:
        index = from_the_start(g, indices[axis], shape[axis])
        flat = index if flat is None else _plus(g, _scaled(g, flat, shape[axis]), index)
    return moved, _wide(g, flat, wide), tuple(wide)


def _dtype(index: Any) -> str:
    if isinstance(index, torch.Tensor):
        return str(index.dtype).removeprefix("torch.")
    return static_type(index)[1]


def _scaled(g: Graph, index: Any, factor: int) -> Any:
    if isinstance(index, torch.Tensor):
        return index * factor
    return g.emit(R.multiply(index, scalar(factor, static_type(index)[1])))


def _plus(g: Graph, one: Any, other: Any) -> Any:
    if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor):
        return one + other
    return g.emit(R.add(g.tensor(one, "int64"), g.tensor(other, "int64")))


def _wide(g: Graph, index: Any, shape: Sequence[int]) -> Any:
    if isinstance(index, torch.Tensor):
        return index.expand(shape)
    return index if shape_of(index) == tuple(shape) else g.emit(R.broadcast_to(index, shape))


@converts("index_put", "_unsafe_index_put")
def _index_put(
    g: Graph, x: Any, indices: Sequence[Any], values: Any, accumulate: bool = False, *_: Any
) -> Any:
    x = g.tensor(x)
    shape = shape_of(x)
    places = [axis for axis, index in enumerate(indices) if index is not None]
    if len(places) == 1 and _dtype(indices[places[0]]) == "bool":
        return _masked(g, x, indices[places[0]], places[0], values, accumulate)
    moved, flat, wide = _flattened(g, x, indices, places)
    others = [n for axis, n in enumerate(shape) if axis not in places]
    adjacent = places == list(range(places[0], places[-1] + 1))
    before = places[0] if adjacent else 0
    written = [*others[:before], *wide, *others[before:]]
    values = g.emit(R.broadcast_to(g.tensor(values, dtype_of(g.out)), written))
    rank = len(wide)
    order = [*range(before, before + rank), *range(before), *range(before + rank, len(written))]
    if order != sorted(order):
        values = g.emit(R.permute_dims(values, order))
    count = math.prod(wide)
    values = g.emit(R.reshape(values, [count, *others]))
    rows = g.emit(R.reshape(g.tensor(flat, "int64"), [count, 1]))
    mode = "add" if accumulate else "update"
    result = g.emit(R.scatter_nd(moved, rows, values, mode))
    result = g.emit(R.reshape(result, [*(shape[axis] for axis in places), *others]))
    back = [*places, *(axis for axis in range(len(shape)) if axis not in places)]
    inverse = [back.index(axis) for axis in range(len(shape))]
    return R.permute_dims(result, inverse) if inverse != sorted(inverse) else result


def _masked(g: Graph, x: Any, mask: Any, axis: int, values: Any, accumulate: bool) -> Any:
    values = g.tensor(values, dtype_of(g.out))
    if math.prod(shape_of(values)) != 1:
        raise NotImplementedError("what goes where depends on the mask; use torch.where")
    mask = g.tensor(mask)
    rank = len(shape_of(x))
    along = [*[1] * axis, *shape_of(mask), *[1] * (rank - axis - len(shape_of(mask)))]
    mask = g.emit(R.reshape(mask, along))
    value = g.emit(R.reshape(values, []))
    return R.where(mask, g.emit(R.add(x, value)) if accumulate else value, x)


_REDUCTIONS = {
    None: "update",
    "add": "add",
    "sum": "add",
    "multiply": "mul",
    "prod": "mul",
    "amax": "max",
    "amin": "min",
}


@converts("scatter")
def _scatter(g: Graph, x: Any, dim: int, index: Any, source: Any, reduce: str | None = None) -> Any:
    return _scattered(g, x, dim, index, source, _REDUCTIONS[reduce])


@converts("scatter_add")
def _scatter_add(g: Graph, x: Any, dim: int, index: Any, source: Any) -> Any:
    return _scattered(g, x, dim, index, source, "add")


@converts("scatter_reduce")
def _scatter_reduce(
    g: Graph, x: Any, dim: int, index: Any, source: Any, reduce: str, include_self: bool = True
) -> Any:
    """Join what comes to each place; what nothing comes to stays."""
    x = g.tensor(x)
    if include_self and reduce != "mean":
        return _scattered(g, x, dim, index, source, _REDUCTIONS[reduce])
    dtype = static_type(x)[1]
    zeros = g.emit(R.zeros(shape_of(x), dtype))
    count = g.emit(_scattered(g, zeros, dim, index, scalar(1, dtype), "add"))
    touched = g.emit(R.greater(count, scalar(0, dtype)))
    start = x if include_self else g.emit(R.where(touched, _neutral(reduce, dtype), x))
    mode = "add" if reduce == "mean" else _REDUCTIONS[reduce]
    joined = g.emit(_scattered(g, start, dim, index, source, mode))
    if reduce != "mean":
        return joined
    if include_self:
        count = g.emit(R.add(count, scalar(1, dtype)))
    counted = g.emit(R.maximum(count, scalar(1, dtype)))
    divide = R.floor_divide if "float" not in dtype else R.divide
    return divide(joined, counted)


def _neutral(reduce: str, dtype: str) -> Any:
    """Return what changes nothing when it is joined."""
    kind = getattr(torch, dtype)
    info: Any = torch.finfo(kind) if kind.is_floating_point else torch.iinfo(kind)
    most = math.inf if kind.is_floating_point else info.max
    least = -math.inf if kind.is_floating_point else info.min
    return scalar({"sum": 0, "mean": 0, "prod": 1, "amax": least, "amin": most}[reduce], dtype)


@converts("_embedding_bag", "_embedding_bag_forward_only")
def _embedding_bag(
    g: Graph,
    table: Any,
    index: Any,
    offsets: Any,
    scale_grad_by_freq: bool = False,
    mode: int = 0,
    sparse: bool = False,
    weights: Any = None,
    include_last_offset: bool = False,
    padding: int = -1,
) -> Any:
    """Look rows up and join those of each bag: summed, averaged, or the largest of each column."""
    if any(g.reads(number) for number in (1, 2, 3)) or padding >= 0:
        raise NotImplementedError("a padding index, and results other than the bags")
    table, index, offsets = g.tensor(table), g.tensor(index), g.tensor(offsets, "int64")
    dtype = static_type(table)[1]
    bags, width = shape_of(g.out[0])
    count = shape_of(index)[0]
    places = g.tensor(torch.arange(count)[:, None])
    begun = g.emit(R.less_equal(offsets, places))
    bag = g.emit(R.sum(g.cast(begun, "int64"), [-1], keepdims=True))
    bag = g.emit(R.subtract(bag, scalar(1, "int64")))
    rows = g.emit(R.take(table, index, axis=0, mode="clip"))
    if weights is not None:
        rows = g.emit(R.multiply(rows, g.emit(R.expand_dims(g.tensor(weights), 1))))
    bag = g.emit(R.broadcast_to(bag, [count, width]))
    start = g.emit(R.zeros([bags, width], dtype))
    kind = {0: "sum", 1: "mean", 2: "amax"}[mode]
    out, g.out = g.out, g.out[0]
    joined = g.emit(_scatter_reduce(g, start, 0, bag, rows, kind, include_self=False))
    g.out = out
    return joined, None, None, None


def _scattered(g: Graph, x: Any, dim: int, index: Any, source: Any, mode: str) -> Any:
    dtype = dtype_of(g.out)
    x, index, source = g.tensor(x), g.tensor(index, "int64"), g.tensor(source, dtype)
    shape = shape_of(x)
    if not shape:
        x, index = (g.emit(R.reshape(value, [1])) for value in (x, index))
    axis = dim % max(len(shape), 1)
    size = shape_of(index)
    if not shape_of(source):
        source = g.emit(R.broadcast_to(source, size))
    elif shape_of(source) != size:
        source = g.emit(R.strided_slice(source, list(range(len(size))), [0] * len(size), size))
    index = from_the_start(g, index, shape_of(x)[axis])
    result = g.emit(R.scatter_elements(x, index, source, axis, mode))
    return result if shape else R.reshape(result, [])


@converts("masked_scatter")
def _masked_scatter(g: Graph, x: Any, mask: Any, source: Any) -> Any:
    """Put a tensor's elements, one after the other, where the mask says."""
    x, mask, source = g.tensor(x), g.tensor(mask), g.tensor(source)
    mask = g.emit(R.broadcast_to(mask, shape_of(x)))
    seen = running_sum(g, g.emit(R.reshape(g.cast(mask, "int64"), [-1])))
    place = g.emit(R.subtract(seen, scalar(1, "int64")))
    taken = g.emit(R.take(g.emit(R.reshape(source, [-1])), place, axis=0, mode="clip"))
    return R.where(mask, g.emit(R.reshape(taken, shape_of(x))), x)


@converts("searchsorted")
def _searchsorted(
    g: Graph,
    bounds: Any,
    x: Any,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Any = None,
) -> Any:
    if sorter is not None:
        raise NotImplementedError("bounds that are not sorted are not supported")
    bounds = g.tensor(bounds)
    x = g.tensor(x, static_type(bounds)[1])
    if len(shape_of(bounds)) > 1:
        bounds = g.emit(R.expand_dims(bounds, len(shape_of(bounds)) - 1))
    return _counted_below(g, x, bounds, right or side == "right")


@converts("bucketize")
def _bucketize(g: Graph, x: Any, bounds: Any, out_int32: bool = False, right: bool = False) -> Any:
    return _counted_below(g, g.tensor(x), g.tensor(bounds), right)


def _counted_below(g: Graph, x: Any, bounds: Any, right: bool) -> Any:
    """Count the bounds below each element; NaN is above all."""
    x = g.emit(R.expand_dims(x, len(shape_of(x))))
    above = g.emit((R.greater if right else R.greater_equal)(bounds, x))
    below = g.cast(negated(g, above), dtype_of(g.out))
    return R.sum(below, [-1])
