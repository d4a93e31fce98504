"""Reductions along axes, and what is normalised by one."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from costlib.tvm_compat import te, tirx
from costlib.workloads.importers.onnx.elementwise import elementwise, is_nan
from costlib.workloads.importers.onnx.node import CONVERTERS, Node, converts
from costlib.workloads.importers.onnx.tensors import (
    SMALL_FLOATS,
    Tensor,
    absolute,
    computed,
    constant,
    emitted,
    exp,
    log,
    numpy_dtype,
    op,
    softmax,
    sqrt,
    where,
)


def extreme(x: Tensor, axes: list[int], is_max: bool) -> Tensor:
    """Return the largest or smallest elements along axes, kept as extents of 1; NaN wins."""
    axes = [axis for axis in axes if x.shape[axis] > 1]
    if not axes:
        return x
    if x.dtype == "bool":
        return extreme(x.cast("uint8"), axes, is_max).cast("bool")
    if x.dtype == "bfloat16":
        return extreme(x.cast("float32"), axes, is_max).cast(x.dtype)
    if not x.is_float:
        return emitted((op.max if is_max else op.min)(x.expr, axes, True))
    infinity = -math.inf if is_max else math.inf

    def keeps(one: Any, other: Any) -> Any:
        better = one > other if is_max else one < other
        return tirx.Select(tirx.any(better, tirx.isnan(one)), one, other)

    reducer = te.comm_reducer(keeps, lambda dtype: tirx.const(infinity, dtype), name="extreme")
    shape = [1 if axis in axes else n for axis, n in enumerate(x.shape)]

    def element(data: Any, *indices: Any) -> Any:
        inner = {axis: te.reduce_axis((0, x.shape[axis]), name=f"k{axis}") for axis in axes}
        read = tuple(inner.get(axis, index) for axis, index in enumerate(indices))
        return reducer(data[read], axis=list(inner.values()))

    return computed("max" if is_max else "min", shape, element, x)


def place_of_extreme(x: Tensor, axis: int, is_max: bool, is_last: bool = False) -> Tensor:
    """Return where the first or last of the largest or smallest is, the axis kept; int64.

    A NaN at the start is taken, one behind it is not, as ONNX Runtime has it. TVM's own finds the
    worst number of a dtype (0 of unsigned ones) nowhere, and leaves NaN to chance.
    """
    x = x.cast("float32") if x.dtype in SMALL_FLOATS else x
    extent = x.shape[axis]
    numbers = where(is_nan(x), -math.inf if is_max else math.inf, x) if x.is_float else x
    best = extreme(numbers, [axis], is_max)
    nowhere = tirx.const(-1 if is_last else extent, "int64")

    def element(data: Any, best: Any, *places: Any) -> Any:
        k = te.reduce_axis((0, extent), name="k")
        is_best = data[(*places[:axis], k, *places[axis + 1 :])] == best[places]
        place = tirx.Select(is_best, tirx.Cast("int64", k.var), nowhere)
        return (te.max if is_last else te.min)(place, axis=k)

    place = computed("place_of_extreme", best.shape, element, x, best)
    return where(is_nan(x.slice(axis, 0, 1)), 0, place) if x.is_float else place


def total(x: Tensor, axes: list[int]) -> Tensor:
    """Add up along axes, half precision in single precision."""
    if x.dtype in SMALL_FLOATS:
        return x.cast("float32").sum(axes).cast(x.dtype)
    return x.sum(axes)


def _mean(x: Tensor, axes: list[int]) -> Tensor:
    if x.is_float:
        wide = x.cast("float32") if x.dtype in SMALL_FLOATS else x
        return wide.mean(axes).cast(x.dtype)
    count = math.prod(x.shape[axis] for axis in axes)
    return elementwise("divide", tirx.truncdiv, x.dtype, x.sum(axes), x.like(count))


def _in_floats(
    function: Callable[[Tensor, list[int]], Tensor],
) -> Callable[[Tensor, list[int]], Tensor]:
    """Compute in double precision for integers, in single precision for less."""

    def compute(x: Tensor, axes: list[int]) -> Tensor:
        wide = "float32" if x.dtype in SMALL_FLOATS else x.dtype if x.is_float else "float64"
        return function(x.cast(wide), axes).cast(x.dtype)

    return compute


def _log_sum_exp(x: Tensor, axes: list[int]) -> Tensor:
    largest = extreme(x, axes, True)
    is_finite = absolute(largest) < math.inf
    shift = where(is_finite, largest, 0)
    return log(exp(x - shift).sum(axes)) + shift


def _l2(x: Tensor, axes: list[int]) -> Tensor:
    return sqrt((x * x).sum(axes))


def _product(x: Tensor, axes: list[int]) -> Tensor:
    wide = x.cast("float32") if x.dtype in SMALL_FLOATS else x
    return emitted(op.prod(wide.expr, axes, True)).cast(x.dtype) if axes else x


_REDUCTIONS: dict[str, tuple[Callable[[Tensor, list[int]], Tensor], Any]] = {
    "ReduceSum": (total, 0),
    "ReduceMean": (_mean, math.nan),
    "ReduceMax": (lambda x, axes: extreme(x, axes, True), -math.inf),
    "ReduceMin": (lambda x, axes: extreme(x, axes, False), math.inf),
    "ReduceProd": (_product, 1),
    "ReduceL1": (lambda x, axes: total(absolute(x), axes), 0),
    "ReduceL2": (_in_floats(_l2), 0),
    "ReduceSumSquare": (lambda x, axes: total(x * x, axes), 0),
    "ReduceLogSum": (_in_floats(lambda x, axes: log(x.sum(axes))), -math.inf),
    "ReduceLogSumExp": (_in_floats(_log_sum_exp), -math.inf),
}


def _reduce(node: Node) -> Tensor:
    function, of_nothing = _REDUCTIONS[node.operator]
    x = node[0]
    axes = node.axes(x.ndim, since=13 if node.operator == "ReduceSum" else 18)
    if not axes:
        is_kept = node.attribute("noop_with_empty_axes", 0)
        axes = [] if is_kept else list(range(x.ndim))
    axes = x.axes(axes)
    keepdims = node.attribute("keepdims", 1)
    shape = [n for i, n in enumerate(x.shape) if keepdims or i not in axes]
    shape = [1 if i in axes and keepdims else n for i, n in enumerate(shape)]
    if x.size == 0:
        limits = np.iinfo(x.dtype) if "int" in x.dtype and not x.is_float else None
        value = np.clip(of_nothing, limits.min, limits.max) if limits else of_nothing
        if x.dtype == "bool":
            value = value > 0
        return constant(np.full(shape, value, numpy_dtype(x.dtype)))
    return function(x, axes).reshape(shape)


for _name in _REDUCTIONS:
    CONVERTERS["", _name] = _reduce


@converts("Softmax", "LogSoftmax", "Hardmax")
def _softmax(node: Node) -> Tensor:
    x = node[0]
    if node.opset >= 13:
        return _SOFTMAXES[node.operator](x, x.axis(node.attribute("axis", -1)))
    axis = x.axis(node.attribute("axis", 1))
    flat = x.reshape([math.prod(x.shape[:axis]), math.prod(x.shape[axis:])])
    if axis == x.ndim - 1:
        return _SOFTMAXES[node.operator](x, axis)
    return _SOFTMAXES[node.operator](flat, 1).reshape(x.shape)


def _log_softmax(x: Tensor, axis: int) -> Tensor:
    wide = x.cast("float32") if x.dtype in SMALL_FLOATS else x
    shifted = wide - extreme(wide, [axis], True)
    return (shifted - log(exp(shifted).sum([axis]))).cast(x.dtype)


def _hardmax(x: Tensor, axis: int) -> Tensor:
    first = place_of_extreme(x, axis, True)

    def element(index: Any, *places: Any) -> Any:
        place = index[(*places[:axis], 0, *places[axis + 1 :])]
        hot = place == tirx.Cast("int64", places[axis])
        return tirx.Select(hot, tirx.const(1, x.dtype), tirx.const(0, x.dtype))

    return computed("hardmax", x.shape, element, first)


_SOFTMAXES: dict[str, Callable[[Tensor, int], Tensor]] = {
    "Softmax": softmax,
    "LogSoftmax": _log_softmax,
    "Hardmax": _hardmax,
}


@converts("LpNormalization")
def _lp_normalization(node: Node) -> Tensor:
    x = node[0]
    axis = [x.axis(node.attribute("axis", -1))]
    norm = total(absolute(x), axis) if node.attribute("p", 2) == 1 else _in_floats(_l2)(x, axis)
    return where(norm.equals(0), 0, x / norm)
