"""Operators that make one element of many: sums, extremes, means, variances, scans, sorting."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from costlib.tvm_compat import relax, te, tirx
from costlib.workloads.importers.aten.elementwise import computed_in, elementwise
from costlib.workloads.importers.aten.graph import (
    Converter,
    Graph,
    dtype_of,
    elements,
    registering,
    scalar,
    shape_of,
)
from costlib.workloads.safe_softmax import safe_softmax

CONVERTERS: dict[str, Converter] = {}
converts = registering(CONVERTERS)

R = relax.op

Axes = int | Sequence[int] | None


def axes_of(x: Any, dim: Axes) -> list[int]:
    """Return the axes that a reduction is over, from 0 on; none given means all."""
    rank = len(shape_of(x))
    if dim is None or (not isinstance(dim, int) and not dim):
        return list(range(rank))
    return sorted({axis % max(rank, 1) for axis in ([dim] if isinstance(dim, int) else dim)})


def reduced(g: Graph, function: Callable[..., Any], x: Any, dim: Axes, keepdim: bool) -> Any:
    """Reduce a tensor; one without dimensions is its own result."""
    if not shape_of(x):
        return x
    return g.emit(function(x, axes_of(x, dim), keepdims=keepdim))


@converts("sum")
def _sum(g: Graph, x: Any, dim: Axes = None, keepdim: bool = False, dtype: Any = None) -> Any:
    out = dtype_of(g.out)
    if not isinstance(keepdim, bool):  # ``sum.default`` takes the dtype right after the tensor.
        dim, keepdim = None, False
    return g.cast(reduced(g, R.sum, g.tensor(x, computed_in(out)), dim, keepdim), out)


@converts("prod")
def _prod(g: Graph, x: Any, dim: Any = None, keepdim: Any = False, dtype: Any = None) -> Any:
    out = dtype_of(g.out)
    if not isinstance(keepdim, bool) or not isinstance(dim, int):
        dim, keepdim = None, False
    return g.cast(reduced(g, R.prod, g.tensor(x, computed_in(out)), dim, keepdim), out)


@converts("mean")
def _mean(g: Graph, x: Any, dim: Any = None, keepdim: Any = False, dtype: Any = None) -> Any:
    out = dtype_of(g.out)
    if not isinstance(dim, (int, list, tuple)):
        dim, keepdim = None, False
    return g.cast(reduced(g, R.mean, g.tensor(x, computed_in(out)), dim, bool(keepdim)), out)


@converts("any")
def _any(g: Graph, x: Any, dim: Axes = None, keepdim: bool = False) -> Any:
    return _truth(g, R.max, x, dim, keepdim)


@converts("all")
def _all(g: Graph, x: Any, dim: Axes = None, keepdim: bool = False) -> Any:
    return _truth(g, R.min, x, dim, keepdim)


def _truth(g: Graph, function: Any, x: Any, dim: Axes, keepdim: bool) -> Any:
    bits = g.cast(g.tensor(x, "bool"), "int8")
    return g.cast(reduced(g, function, bits, dim, keepdim), dtype_of(g.out))


def moments(g: Graph, x: Any, axes: Sequence[int]) -> tuple[Any, Any, Any]:
    """Return mean, deviations and mean square deviation of a float tensor, axes kept.

    In two passes over what is left when the first element is taken off: where the mean is far
    from zero, anything else loses the digits that count.
    """
    axes = list(axes)
    first = g.emit(R.strided_slice(x, axes, [0] * len(axes), [1] * len(axes)))
    near = g.emit(R.subtract(x, first))
    offset = g.emit(R.mean(near, axes, keepdims=True))
    apart = g.emit(R.subtract(near, offset))
    square = g.emit(R.mean(g.emit(R.multiply(apart, apart)), axes, keepdims=True))
    return g.emit(R.add(first, offset)), apart, square


def _variance(g: Graph, x: Any, dim: Any, correction: Any, keepdim: bool, out: str) -> Any:
    x = g.tensor(x, computed_in(out))
    if isinstance(dim, bool):  # ``var.default`` takes whether to correct right after the tensor.
        dim, correction = None, int(dim)
    axes = axes_of(x, dim)
    shape = shape_of(x)
    count = elements([shape[axis] for axis in axes])
    free = count - (1 if correction is None else float(correction))
    scale = count / free if free > 0 else math.nan
    mean, _, square = moments(g, x, axes) if shape else (x, x, g.emit(R.subtract(x, x)))
    variance = g.emit(R.multiply(square, scalar(scale, computed_in(out))))
    if not keepdim and shape:
        mean, variance = (g.emit(R.squeeze(value, axes)) for value in (mean, variance))
    return g.cast(variance, out), g.cast(mean, out)


@converts("var")
def _var(g: Graph, x: Any, dim: Axes, correction: Any = None, keepdim: bool = False) -> Any:
    return _variance(g, x, dim, correction, keepdim, dtype_of(g.out))[0]


@converts("var_mean")
def _var_mean(g: Graph, x: Any, dim: Axes, correction: Any = None, keepdim: bool = False) -> Any:
    return _variance(g, x, dim, correction, keepdim, dtype_of(g.out[0]))


@converts("_softmax", "softmax")
def _softmax(g: Graph, x: Any, dim: int, *_: Any) -> Any:
    return _over_axis(g, R.nn.softmax, x, dim)


@converts("_safe_softmax")
def _safe_softmax(g: Graph, x: Any, dim: int, *_: Any) -> Any:
    out = dtype_of(g.out)

    def compute(x: Any) -> Any:
        return safe_softmax(x, dim)

    return g.cast(g.emit_te(compute, g.tensor(x, computed_in(out)), name="softmax"), out)


@converts("_log_softmax", "log_softmax")
def _log_softmax(g: Graph, x: Any, dim: int, *_: Any) -> Any:
    return _over_axis(g, R.nn.log_softmax, x, dim)


def _over_axis(g: Graph, function: Any, x: Any, dim: int) -> Any:
    out = dtype_of(g.out)
    x = g.tensor(x, computed_in(out))
    if shape_of(x):
        return g.cast(g.emit(function(x, dim)), out)
    single = g.emit(function(g.emit(R.reshape(x, [1])), 0))
    return g.cast(g.emit(R.reshape(single, [])), out)


@converts("cumsum")
def _cumsum(g: Graph, x: Any, dim: int, dtype: Any = None) -> Any:
    return _scan(g, x, dim, lambda a, b: a + b, "cumsum")


@converts("cumprod")
def _cumprod(g: Graph, x: Any, dim: int, dtype: Any = None) -> Any:
    return _scan(g, x, dim, lambda a, b: a * b, "cumprod")


def running_sum(g: Graph, x: Any) -> Any:
    """Sum a vector up to each element."""
    return _scanned(g, x, 0, lambda a, b: a + b, "cumsum")


def _scan(g: Graph, x: Any, dim: int, join: Callable[[Any, Any], Any], name: str) -> Any:
    out = dtype_of(g.out)
    return g.cast(_scanned(g, g.tensor(x, computed_in(out)), dim, join, name), out)


def _scanned(g: Graph, x: Any, dim: int, join: Callable[[Any, Any], Any], name: str) -> Any:
    """Join each element with what comes before it, twice as far at each step (Hillis, Steele)."""
    shape = shape_of(x)
    axis = dim % max(len(shape), 1)
    step = 1
    while shape and step < shape[axis]:
        x = _joined_with_earlier(g, x, axis, step, join, name)
        step *= 2
    return x


def _joined_with_earlier(g: Graph, x: Any, axis: int, step: int, join: Any, name: str) -> Any:
    def compute(x: Any) -> Any:
        def value(*i: Any) -> Any:
            earlier = (*i[:axis], i[axis] - step, *i[axis + 1 :])
            return tirx.if_then_else(i[axis] >= step, join(x(*earlier), x(*i)), x(*i))

        return te.compute(x.shape, value, name=name)

    return g.emit_te(compute, x, name=name)


@converts("linalg_vector_norm")
def _vector_norm(
    g: Graph, x: Any, order: float = 2, dim: Axes = None, keepdim: bool = False, _: Any = None
) -> Any:
    out = dtype_of(g.out)
    wide = computed_in(out)
    size = g.emit(R.abs(g.tensor(x, wide)))
    if math.isinf(order):
        return g.cast(reduced(g, R.max if order > 0 else R.min, size, dim, keepdim), out)
    if order == 0:
        present = g.cast(g.emit(R.not_equal(size, scalar(0, wide))), wide)
        return g.cast(reduced(g, R.sum, present, dim, keepdim), out)
    if order == 1:
        return g.cast(reduced(g, R.sum, size, dim, keepdim), out)
    if order == 2:
        square = reduced(g, R.sum, g.emit(R.multiply(size, size)), dim, keepdim)
        return g.cast(g.emit(R.sqrt(square)), out)
    powers = reduced(g, R.sum, g.emit(R.power(size, scalar(order, wide))), dim, keepdim)
    return g.cast(g.emit(R.power(powers, scalar(1 / order, wide))), out)


@converts("_cdist_forward")
def _cdist(g: Graph, x: Any, y: Any, order: float, _: Any = None) -> Any:
    one, other = g.tensor(x), g.tensor(y)
    rows = g.emit(R.expand_dims(one, len(shape_of(one)) - 1))
    columns = g.emit(R.expand_dims(other, len(shape_of(other)) - 2))
    return _vector_norm(g, g.emit(R.subtract(rows, columns)), order, [-1])


@converts("logsumexp")
def _logsumexp(g: Graph, x: Any, dim: Axes, keepdim: bool = False) -> Any:
    out = dtype_of(g.out)
    x = g.tensor(x, computed_in(out))
    axes = axes_of(x, dim)
    top = g.emit(R.max(x, axes, keepdims=True))
    top = elementwise(g, _finite_or_zero, top, name="finite")
    total = g.emit(R.sum(g.emit(R.exp(g.emit(R.subtract(x, top)))), axes, keepdims=True))
    result = g.emit(R.add(g.emit(R.log(total)), top))
    return g.cast(result if keepdim else g.emit(R.squeeze(result, axes)), out)


def _finite_or_zero(x: Any) -> Any:
    dtype = x.ty.dtype
    return tirx.Select(tirx.abs(x) < tirx.infinity(str(dtype)), x, tirx.const(0, dtype))
