"""Operators that put elements in order, or pick one by its place in it."""

from __future__ import annotations

from typing import Any

from costlib.tvm_compat import relax
from costlib.workloads.folding import static_type
from costlib.workloads.importers.aten.elementwise import computed_in
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
    """Sort by something that TVM sorts: not by booleans and halves."""
    dtype = static_type(x)[1]
    return (
        g.cast(x, "int32")
        if dtype in ("bool", "int8", "uint8", "int16")
        else (g.cast(x, computed_in(dtype)))
    )


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
    """Take the lower of the two in the middle."""
    x = g.tensor(x)
    if dim is None:
        flat = g.emit(R.reshape(x, [-1]))
        return g.emit(R.reshape(_kth(g, flat, 0, (shape_of(flat)[0] + 1) // 2, False)[0], []))
    axis = dim % max(len(shape_of(x)), 1)
    return _kth(g, x, axis, (shape_of(x)[axis] + 1) // 2, keepdim)


@converts("kthvalue")
def _kthvalue(g: Graph, x: Any, k: int, dim: int = -1, keepdim: bool = False) -> Any:
    x = g.tensor(x)
    return _kth(g, x, dim % max(len(shape_of(x)), 1), k, keepdim)


def _kth(g: Graph, x: Any, axis: int, k: int, keepdim: bool) -> tuple[Any, Any]:
    index = g.emit(R.argsort(_key(g, x), axis, False, "int64"))
    index = g.emit(R.strided_slice(index, [axis], [k - 1], [k]))
    values = g.emit(R.gather_elements(x, index, axis))
    if not keepdim:
        values, index = (g.emit(R.squeeze(value, [axis])) for value in (values, index))
    return values, index
