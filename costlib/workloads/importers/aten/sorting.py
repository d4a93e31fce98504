"""Operators that put elements in order, or pick one by its place in it."""

from __future__ import annotations

from typing import Any

from costlib.tvm_compat import relax, te, tirx, tvm
from costlib.workloads.folding import static_type
from costlib.workloads.importers.aten.elementwise import computed_in, is_nan
from costlib.workloads.importers.aten.extremes import first_best
from costlib.workloads.importers.aten.graph import (
    Converter,
    Graph,
    registering,
    scalar,
    shape_of,
)

CONVERTERS: dict[str, Converter] = {}
converts = registering(CONVERTERS)

R = relax.op


@converts("sort")
def _sort(g: Graph, x: Any, *options: Any) -> Any:
    *_, dim, descending = options
    x = g.tensor(x)
    if not shape_of(x):
        return x, scalar(0, "int64")
    dtype = static_type(x)[1]
    key = _key(g, x)
    index = g.emit(R.argsort(key, dim, descending, "int64"))
    return g.cast(g.emit(R.gather_elements(x, index, dim % len(shape_of(x)))), dtype), index


@converts("argsort")
def _argsort(g: Graph, x: Any, *options: Any) -> Any:
    *_, dim, descending = options
    return R.argsort(_key(g, g.tensor(x)), dim, descending, "int64")


def _key(g: Graph, x: Any) -> Any:
    """Return integers in the order that PyTorch sorts by: a NaN is the largest, as is no other.

    TVM does not sort booleans and halves, and leaves NaN to chance.
    """
    dtype = static_type(x)[1]
    if dtype in ("bool", "int8", "uint8", "int16"):
        return g.cast(x, "int32")
    if "float" not in dtype:
        return x
    x = g.cast(x, computed_in(dtype))
    bits = tvm.DataType(static_type(x)[1]).bits
    largest = tirx.max_value(f"int{bits}")

    def ordered(x: Any) -> Any:
        def integer(*i: Any) -> Any:
            pattern = tirx.reinterpret(f"int{bits}", x(*i))
            size = pattern & largest
            number = tirx.Select(pattern < 0, -size, size)
            return tirx.Select(tirx.isnan(x(*i)), largest, number)

        return te.compute(x.shape, integer, name="ordered")

    return g.emit_te(ordered, x, name="ordered")


@converts("topk")
def _topk(g: Graph, x: Any, k: int, dim: int = -1, largest: bool = True, _: bool = True) -> Any:
    x = g.tensor(x)
    shape = shape_of(x)
    if not shape:
        return x, scalar(0, "int64")
    axis = dim % len(shape)
    index = g.emit(R.argsort(_key(g, x), axis, largest, "int64"))
    index = g.emit(R.strided_slice(index, [axis], [0], [k]))
    return g.emit(R.gather_elements(x, index, axis)), index


@converts("median")
def _median(g: Graph, x: Any, dim: int | None = None, keepdim: bool = False) -> Any:
    """Take the lower of the two in the middle, or the first NaN."""
    x = g.tensor(x)
    if dim is None:
        flat = g.emit(R.reshape(x, [-1]))
        return g.emit(R.reshape(_middle(g, flat, 0, False)[0], []))
    if not shape_of(x):
        return x, scalar(0, "int64")
    return _middle(g, x, dim % len(shape_of(x)), keepdim)


def _middle(g: Graph, x: Any, axis: int, keepdim: bool) -> tuple[Any, Any]:
    index = _kth_place(g, x, axis, (shape_of(x)[axis] + 1) // 2)
    if "float" in static_type(x)[1]:
        worst = g.emit(R.reshape(first_best(g, True, x, axis), shape_of(index)))
        found = g.emit(is_nan(g, g.emit(R.gather_elements(x, worst, axis))))
        index = g.emit(R.where(found, worst, index))
    return _picked(g, x, index, axis, keepdim)


@converts("nanmedian")
def _nanmedian(g: Graph, x: Any, dim: int | None = None, keepdim: bool = False) -> Any:
    """Take the lower of the two in the middle of what is no NaN; NaN if nothing else is there."""
    x = g.tensor(x)
    if "float" not in static_type(x)[1]:
        return _median(g, x, dim, keepdim)
    if dim is None:
        flat = g.emit(R.reshape(x, [-1]))
        return g.emit(R.reshape(_middle_number(g, flat, 0, False)[0], []))
    if not shape_of(x):
        return x, scalar(0, "int64")
    return _middle_number(g, x, dim % len(shape_of(x)), keepdim)


def _middle_number(g: Graph, x: Any, axis: int, keepdim: bool) -> tuple[Any, Any]:
    count = g.emit(R.sum(g.cast(g.emit(is_nan(g, x)), "int64"), axis, keepdims=True))
    last = g.emit(R.subtract(scalar(shape_of(x)[axis] - 1, "int64"), count))
    half = g.emit(R.floor_divide(last, scalar(2, "int64")))
    middle = g.emit(R.maximum(half, scalar(0, "int64")))
    order = g.emit(R.argsort(_key(g, x), axis, False, "int64"))
    return _picked(g, x, g.emit(R.gather_elements(order, middle, axis)), axis, keepdim)


@converts("mode")
def _mode(g: Graph, x: Any, dim: int = -1, keepdim: bool = False) -> Any:
    """Take the smallest of the numbers that are there most often, where it is first."""
    x = g.tensor(x)
    shape = shape_of(x)
    if not shape:
        return x, scalar(0, "int64")
    axis = dim % len(shape)
    values = x if "float" not in static_type(x)[1] else g.cast(x, computed_in(static_type(x)[1]))

    def alike(x: Any) -> Any:
        k = te.reduce_axis((0, shape[axis]), name="k")

        def count(*i: Any) -> Any:
            is_equal = x(*i) == x(*i[:axis], k, *i[axis + 1 :])
            return te.sum(tirx.Cast("int32", is_equal), axis=k)

        return te.compute(shape, count, name="alike")

    counts = g.emit_te(alike, values, name="alike")
    order = g.emit(R.argsort(_key(g, x), axis, False, "int64"))
    best = g.emit(R.argmax(g.emit(R.gather_elements(counts, order, axis)), axis, True))
    return _picked(g, x, g.emit(R.gather_elements(order, best, axis)), axis, keepdim)


@converts("kthvalue")
def _kthvalue(g: Graph, x: Any, k: int, dim: int = -1, keepdim: bool = False) -> Any:
    x = g.tensor(x)
    if not shape_of(x):
        return x, scalar(0, "int64")
    axis = dim % len(shape_of(x))
    return _picked(g, x, _kth_place(g, x, axis, k), axis, keepdim)


def _kth_place(g: Graph, x: Any, axis: int, k: int) -> Any:
    index = g.emit(R.argsort(_key(g, x), axis, False, "int64"))
    return g.emit(R.strided_slice(index, [axis], [k - 1], [k]))


def _picked(g: Graph, x: Any, index: Any, axis: int, keepdim: bool) -> tuple[Any, Any]:
    values = g.emit(R.gather_elements(x, index, axis))
    if not keepdim:
        values, index = (g.emit(R.squeeze(value, [axis])) for value in (values, index))
    return values, index
