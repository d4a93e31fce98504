"""Operators that move elements to other places, and those that make tensors of nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from costlib.tvm_compat import relax, te, tirx
from costlib.workloads.folding import static_type
from costlib.workloads.importers.aten.graph import (
    Converter,
    Graph,
    dtype_of,
    registering,
    scalar,
    shape_of,
)

CONVERTERS: dict[str, Converter] = {}
converts = registering(CONVERTERS)

R = relax.op


@converts("view", "reshape", "_unsafe_view", "unflatten", "flatten", "_reshape_copy")
def _view(g: Graph, x: Any, *_: Any) -> Any:
    x = g.tensor(x)
    if static_type(x)[1] != dtype_of(g.out):
        raise NotImplementedError("reading the bytes as another type is not supported")
    return R.reshape(x, shape_of(g.out))


@converts("unsqueeze", "squeeze")
def _squeeze(g: Graph, x: Any, *_: Any) -> Any:
    return R.reshape(g.tensor(x), shape_of(g.out))


@converts("expand")
def _expand(g: Graph, x: Any, *_: Any) -> Any:
    return R.broadcast_to(g.tensor(x), shape_of(g.out))


@converts("permute")
def _permute(g: Graph, x: Any, dims: Sequence[int]) -> Any:
    x = g.tensor(x)
    return R.permute_dims(x, [dim % len(dims) for dim in dims]) if dims else x


@converts("transpose")
def _transpose(g: Graph, x: Any, one: int, other: int) -> Any:
    x = g.tensor(x)
    axes = list(range(len(shape_of(x))))
    if axes:
        axes[one], axes[other] = axes[other], axes[one]
    return R.permute_dims(x, axes) if axes else x


@converts("cat")
def _cat(g: Graph, tensors: Sequence[Any], dim: int = 0) -> Any:
    dtype = dtype_of(g.out)
    some = [
        x for x in tensors if 0 not in (x.shape if isinstance(x, torch.Tensor) else shape_of(x))
    ]
    kept = [g.tensor(x, dtype) for x in some or tensors[-1:]]
    return R.concat(kept, dim % len(shape_of(g.out))) if len(kept) > 1 else kept[0]


@converts("stack")
def _stack(g: Graph, tensors: Sequence[Any], dim: int = 0) -> Any:
    dtype = dtype_of(g.out)
    axis = dim % len(shape_of(g.out))
    parts = [g.emit(R.expand_dims(g.tensor(x, dtype), axis)) for x in tensors]
    return R.concat(parts, axis) if len(parts) > 1 else parts[0]


@converts("slice")
def _slice(
    g: Graph, x: Any, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Any:
    x = g.tensor(x)
    shape = shape_of(x)
    axis = dim % len(shape)
    first, last, step = slice(start, end, step).indices(shape[axis])
    if (first, last, step) == (0, shape[axis], 1):
        return x
    return R.strided_slice(x, [axis], [first], [max(first, last)], [step])


@converts("narrow")
def _narrow(g: Graph, x: Any, dim: int, start: int, length: int) -> Any:
    return _slice(g, x, dim, start, start + length)


@converts("select")
def _select(g: Graph, x: Any, dim: int, index: int) -> Any:
    x = g.tensor(x)
    axis = dim % len(shape_of(x))
    place = index % shape_of(x)[axis]
    return R.squeeze(g.emit(R.strided_slice(x, [axis], [place], [place + 1])), [axis])


@converts("split_with_sizes")
def _split_with_sizes(g: Graph, x: Any, sizes: Sequence[int], dim: int = 0) -> Any:
    x = g.tensor(x)
    ends = [sum(sizes[: i + 1]) for i in range(len(sizes))]
    return [_slice(g, x, dim, end - size, end) for end, size in zip(ends, sizes, strict=True)]


@converts("split")
def _split(g: Graph, x: Any, size: Any, dim: int = 0) -> Any:
    return _split_with_sizes(g, x, [out.shape[dim] for out in g.out], dim)


@converts("unbind")
def _unbind(g: Graph, x: Any, dim: int = 0) -> Any:
    return [_select(g, x, dim, i) for i in range(len(g.out))]


@converts("flip")
def _flip(g: Graph, x: Any, dims: Sequence[int]) -> Any:
    x = g.tensor(x)
    for dim in dims:
        x = g.emit(R.flip(x, dim % len(shape_of(x))))
    return x


@converts("roll")
def _roll(g: Graph, x: Any, shifts: Sequence[int], dims: Sequence[int] = ()) -> Any:
    x = g.tensor(x)
    shape = shape_of(x)
    if not dims:
        flat = _roll(g, g.emit(R.reshape(x, [-1])), shifts, [0])
        return R.reshape(flat, shape)
    for shift, dim in zip(shifts, dims, strict=True):
        cut = -shift % shape[dim] if shape[dim] else 0
        if cut:
            parts = [_slice(g, x, dim, cut, None), _slice(g, x, dim, 0, cut)]
            x = g.emit(R.concat([g.emit(part) for part in parts], dim % len(shape)))
    return x


@converts("repeat", "tile")
def _repeat(g: Graph, x: Any, repeats: Sequence[int]) -> Any:
    return R.tile(g.tensor(x), list(repeats))


@converts("constant_pad_nd")
def _pad(g: Graph, x: Any, pad: Sequence[int], value: float = 0) -> Any:
    """Pad, or cut where the padding is negative; the last axis comes first."""
    x = g.tensor(x)
    shape = shape_of(x)
    axes = [len(shape) - 1 - i for i in range(len(pad) // 2)]
    for axis, before, after in zip(axes, pad[::2], pad[1::2], strict=True):
        if before < 0 or after < 0:
            end = shape[axis] + min(after, 0)
            x = g.emit(_slice(g, x, axis, max(-before, 0), end))
    width = [[0, 0] for _ in shape]
    for axis, before, after in zip(axes, pad[::2], pad[1::2], strict=True):
        width[axis] = [max(before, 0), max(after, 0)]
    flat = [n for pair in width for n in pair]
    return padded(g, x, flat, value) if any(flat) else x


def padded(g: Graph, x: Any, width: Sequence[int], value: float) -> Any:
    """Pad with a value: before and after each axis."""
    dtype = static_type(x)[1]
    if dtype in ("float32", "float64") and value == 0:
        return g.emit(R.nn.pad(x, list(width), "constant", value))
    shape = shape_of(x)
    before = width[::2]
    wide = [n + a + b for n, a, b in zip(shape, before, width[1::2], strict=True)]
    fill = tirx.min_value(dtype) if value == -torch.inf and "float" not in dtype else value

    def compute(x: Any) -> Any:
        def at(*i: Any) -> Any:
            inside = [
                condition
                for place, a, n, full in zip(i, before, shape, wide, strict=True)
                if n != full
                for condition in (place >= a, place < a + n)
            ]
            read = x(*(place - a for place, a in zip(i, before, strict=True)))
            other = _constant(fill, dtype)
            return tirx.if_then_else(tirx.all(*inside), read, other)

        return te.compute(wide, at, name="pad")

    return g.emit_te(compute, x, name="pad")


def _constant(value: Any, dtype: str) -> Any:
    if value in (torch.inf, -torch.inf):
        infinity = tirx.infinity(dtype)
        return infinity if value > 0 else -infinity
    return value if not isinstance(value, (bool, int, float)) else tirx.const(value, dtype)


@converts("tril")
def _tril(g: Graph, x: Any, diagonal: int = 0) -> Any:
    return _triangle(g, x, lambda row, column: column - row <= diagonal)


@converts("triu")
def _triu(g: Graph, x: Any, diagonal: int = 0) -> Any:
    return _triangle(g, x, lambda row, column: column - row >= diagonal)


def _triangle(g: Graph, x: Any, kept: Any) -> Any:
    x = g.tensor(x)
    rows, columns = (torch.arange(n) for n in shape_of(x)[-2:])
    dtype = static_type(x)[1]
    return R.where(g.tensor(kept(rows[:, None], columns)), x, scalar(0, dtype))


@converts("diagonal")
def _diagonal(g: Graph, x: Any, offset: int = 0, one: int = 0, other: int = 1) -> Any:
    x = g.tensor(x)
    axes = list(range(len(shape_of(x))))
    pair = axes[one], axes[other]
    rest = [axis for axis in axes if axis not in pair]
    moved = g.emit(R.permute_dims(x, [*rest, *pair]))
    *outer, rows, columns = shape_of(moved)
    flat = g.emit(R.reshape(moved, [*outer, rows * columns]))
    count = shape_of(g.out)[-1]
    first = offset if offset >= 0 else -offset * columns
    index = first + (columns + 1) * torch.arange(count)
    return R.take(flat, g.tensor(index), axis=len(outer), mode="clip")


@converts("full", "full_like", "new_full")
def _full(g: Graph, _: Any, value: Any, *__: Any) -> Any:
    return _filled(g, value)


@converts("zeros", "zeros_like", "new_zeros", "empty", "empty_like", "new_empty", "empty_permuted")
def _zeros(g: Graph, *_: Any) -> Any:
    return _filled(g, 0)


@converts("ones", "ones_like", "new_ones")
def _ones(g: Graph, *_: Any) -> Any:
    return _filled(g, 1)


def _filled(g: Graph, value: Any) -> Any:
    return R.full(shape_of(g.out), g.tensor(value, dtype_of(g.out)), dtype_of(g.out))


@converts("as_strided")
def _as_strided(
    g: Graph, x: Any, size: Sequence[int], stride: Sequence[int], offset: int | None = None
) -> Any:
    places = torch.full(tuple(size), offset or 0)
    for axis, (n, step) in enumerate(zip(size, stride, strict=True)):
        along = [-1 if i == axis else 1 for i in range(len(size))]
        places = places + step * torch.arange(n).reshape(along)
    flat = g.emit(R.reshape(g.tensor(x), [-1]))
    return R.take(flat, g.tensor(places), axis=0, mode="clip")


@converts("unfold")
def _unfold(g: Graph, x: Any, dim: int, size: int, step: int) -> Any:
    x = g.tensor(x)
    rank = len(shape_of(x))
    axis = dim % rank
    count = (shape_of(x)[axis] - size) // step + 1
    index = step * torch.arange(count)[:, None] + torch.arange(size)
    taken = g.emit(R.take(x, g.tensor(index), axis=axis, mode="clip"))
    axes = [i for i in range(rank + 1) if i != axis + 1]
    return R.permute_dims(taken, [*axes, axis + 1])


@converts("repeat_interleave")
def _repeat_interleave(g: Graph, x: Any, repeats: Any, dim: int | None = None, *_: Any) -> Any:
    if not isinstance(repeats, int):
        raise NotImplementedError("the shape of the result depends on data")
    return R.repeat(g.tensor(x), repeats, dim)


@converts("pixel_shuffle")
def _pixel_shuffle(g: Graph, x: Any, factor: int) -> Any:
    x = g.tensor(x)
    *outer, channels, height, width = shape_of(x)
    count = len(outer)
    split = [*outer, channels // factor**2, factor, factor, height, width]
    order = [*range(count), count, count + 3, count + 1, count + 4, count + 2]
    apart = g.emit(R.permute_dims(g.emit(R.reshape(x, split)), order))
    return R.reshape(apart, shape_of(g.out))


@converts("pixel_unshuffle")
def _pixel_unshuffle(g: Graph, x: Any, factor: int) -> Any:
    x = g.tensor(x)
    *outer, channels, height, width = shape_of(x)
    count = len(outer)
    split = [*outer, channels, height // factor, factor, width // factor, factor]
    order = [*range(count), count, count + 2, count + 4, count + 1, count + 3]
    apart = g.emit(R.permute_dims(g.emit(R.reshape(x, split)), order))
    return R.reshape(apart, shape_of(g.out))
