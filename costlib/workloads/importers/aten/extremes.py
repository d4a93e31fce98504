"""The largest and the smallest, and where they are."""

from __future__ import annotations

from typing import Any

import torch

from costlib.tvm_compat import relax, te, tirx
from costlib.workloads.folding import static_type
from costlib.workloads.importers.aten.elementwise import computed_in, is_nan, negated
from costlib.workloads.importers.aten.graph import (
    Converter,
    Graph,
    registering,
    scalar,
    shape_of,
)
from costlib.workloads.importers.aten.reductions import Axes, reduced

CONVERTERS: dict[str, Converter] = {}
converts = registering(CONVERTERS)

R = relax.op


@converts("amax", "max")
def _amax(g: Graph, x: Any, dim: Axes = None, keepdim: bool = False) -> Any:
    return _extreme(g, R.max, True, x, dim, keepdim)


@converts("amin", "min")
def _amin(g: Graph, x: Any, dim: Axes = None, keepdim: bool = False) -> Any:
    return _extreme(g, R.min, False, x, dim, keepdim)


def _extreme(g: Graph, best: Any, largest: bool, x: Any, dim: Axes, keepdim: bool) -> Any:
    x = g.tensor(x)
    dtype = static_type(x)[1]
    wide = g.cast(x, "int8") if dtype == "bool" else x
    values = g.cast(reduced(g, best, wide, dim, keepdim), dtype)
    if not isinstance(g.out, (tuple, list)):
        return values
    return values, _place(g, largest, wide, dim, keepdim)


@converts("argmax")
def _argmax(g: Graph, x: Any, dim: int | None = None, keepdim: bool = False) -> Any:
    return _place(g, True, x, dim, keepdim)


@converts("argmin")
def _argmin(g: Graph, x: Any, dim: int | None = None, keepdim: bool = False) -> Any:
    return _place(g, False, x, dim, keepdim)


def _place(g: Graph, largest: bool, x: Any, dim: Any, keepdim: bool) -> Any:
    x = g.tensor(x)
    shape, dtype = shape_of(x), static_type(x)[1]
    if not shape:
        return scalar(0, "int64")
    if dtype == "bool":
        x = g.cast(x, "int8")
    if dim is None:
        x, kept = g.emit(R.reshape(x, [-1])), [1] * len(shape)
        index = first_best(g, largest, x, 0)
    else:
        axis = dim % len(shape)
        kept = [1 if i == axis else n for i, n in enumerate(shape)]
        index = first_best(g, largest, x, axis)
    return g.emit(R.reshape(index, kept)) if keepdim else index


def first_best(g: Graph, largest: bool, x: Any, axis: int) -> Any:
    """Find where the best is first: NaN is better than any number, and infinity is one, too.

    TVM's own starts at -1 with the worst number (0 of unsigned ones), and leaves NaN to chance.
    """
    x = g.cast(x, computed_in(static_type(x)[1]))
    shape, dtype = shape_of(x), static_type(x)[1]
    is_float = "float" in dtype
    if is_float:
        worst = -tirx.infinity(dtype) if largest else tirx.infinity(dtype)
    else:
        worst = (tirx.min_value if largest else tirx.max_value)(dtype)

    def better(one: Any, other: Any) -> Any:
        (i, a), (j, b) = one, other
        if not is_float:
            ahead = tirx.any(a > b if largest else a < b, tirx.all(a == b, i < j))
            return tirx.Select(ahead, i, j), tirx.Select(ahead, a, b)
        nan, nans = tirx.isnan(a), tirx.isnan(b)
        ahead = tirx.Select(nans, tirx.const(False), a > b if largest else a < b)
        same = tirx.Select(nan, nans, a == b)
        first = tirx.any(
            tirx.all(nan, tirx.Not(nans)), tirx.all(tirx.Not(nan), ahead), tirx.all(same, i < j)
        )
        return tirx.Select(first, i, j), tirx.Select(first, a, b)

    def nowhere(*_: Any) -> Any:
        return tirx.const(_NOWHERE, "int64"), worst

    reducer = te.comm_reducer(better, nowhere, name="first_best")

    def compute(x: Any) -> Any:
        k = te.reduce_axis((0, shape[axis]), name="k")

        def pair(*i: Any) -> Any:
            return reducer((tirx.Cast("int64", k.var), x(*i[:axis], k, *i[axis:])), axis=k)

        kept = [*shape[:axis], *shape[axis + 1 :]]
        places, _ = te.compute(kept, pair, name="first_best")

        def place(*i: Any) -> Any:
            return places(*i)

        return te.compute(kept, place, name="place")

    return g.emit_te(compute, x, name="first_best")


_NOWHERE = 2**62
"""A place behind all others, where the search for the best starts."""


@converts("cummax")
def _cummax(g: Graph, x: Any, dim: int) -> Any:
    return _best_so_far(g, x, dim, R.greater)


@converts("cummin")
def _cummin(g: Graph, x: Any, dim: int) -> Any:
    return _best_so_far(g, x, dim, R.less)


def _best_so_far(g: Graph, x: Any, dim: int, better: Any) -> tuple[Any, Any]:
    """Let each element fall back to a better one before it, twice as far at each step.

    Of equal ones the last counts; NaN is better than any number.
    """
    x = g.tensor(x)
    shape, dtype = shape_of(x), static_type(x)[1]
    if not shape:
        return x, scalar(0, "int64")
    axis = dim % len(shape)
    along = [-1 if i == axis else 1 for i in range(len(shape))]
    places = torch.arange(shape[axis]).reshape(along).expand(shape)
    index = g.tensor(places)
    values = g.cast(x, "int8") if dtype == "bool" else g.cast(x, computed_in(dtype))
    for step in (1 << bit for bit in range((max(shape[axis], 1) - 1).bit_length())):
        earlier = g.tensor((places - step).clamp(min=0))
        then = g.emit(R.gather_elements(values, earlier, axis))
        ahead = g.emit(better(then, values))
        if "float" in dtype:
            now = negated(g, g.emit(is_nan(g, values)))
            ahead = g.emit(R.logical_or(ahead, g.emit(is_nan(g, then))))
            ahead = g.emit(R.logical_and(ahead, now))
        moved = g.emit(R.gather_elements(index, earlier, axis))
        values = g.emit(R.where(ahead, then, values))
        index = g.emit(R.where(ahead, moved, index))
    return g.cast(values, dtype), index
