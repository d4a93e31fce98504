"""Operators that compute each element from those at its place."""

from __future__ import annotations

from collections.abc import Callable
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
HALVES = ("float16", "bfloat16")


def computed_in(dtype: str) -> str:
    """Return the dtype that PyTorch computes in: halves are rounded at the end alone."""
    return "float32" if dtype in HALVES else dtype


def is_integer(dtype: str) -> bool:
    """Whether a dtype is of integers or booleans."""
    return dtype == "bool" or dtype.startswith(("int", "uint"))


def _float_function(name: str, function: Callable[[Any], Any]) -> None:
    def convert(g: Graph, x: Any, *_: Any) -> Any:
        out = dtype_of(g.out)
        return g.cast(g.emit(function(g.tensor(x, computed_in(out)))), out)

    CONVERTERS[f"aten.{name}"] = convert


for _name in ("acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "erf", "exp"):
    _float_function(_name, getattr(R, _name))
for _name in ("log", "rsqrt", "sigmoid", "sin", "sinh", "sqrt", "tan", "tanh"):
    _float_function(_name, getattr(R, _name))


def elementwise(g: Graph, function: Callable[..., Any], *tensors: Any, name: str) -> Any:
    """Compute with a scalar function of TIR, on tensors that are broadcast to each other."""
    shape = torch.broadcast_shapes(*(shape_of(x) for x in tensors))
    wide = [x if shape_of(x) == shape else g.emit(R.broadcast_to(x, shape)) for x in tensors]

    def compute(*arrays: Any) -> Any:
        return te.compute(shape, lambda *i: function(*(a(*i) for a in arrays)), name=name)

    return g.emit_te(compute, *wide, name=name)


def _library(name: str, function: Callable[..., Any]) -> None:
    """Let the C library compute it: exact, and rarely where the time goes."""

    def convert(g: Graph, *args: Any) -> Any:
        out = dtype_of(g.out)
        tensors = [g.tensor(x, computed_in(out)) for x in args]
        return g.cast(elementwise(g, function, *tensors, name=name), out)

    CONVERTERS[f"aten.{name}"] = convert


def _from_c(name: str) -> Callable[..., Any]:
    def call(x: Any) -> Any:
        dtype = str(x.ty.dtype)
        return tirx.call_pure_extern(dtype, name if dtype == "float64" else f"{name}f", x)

    return call


for _name in ("erfc", "lgamma"):
    _library(_name, _from_c(_name))
for _name in ("log2", "log10", "log1p", "exp2", "nextafter", "copysign", "hypot"):
    _library(_name, getattr(tirx, _name))


def _expm1(x: Any) -> Any:
    """Multiply out of ``tanh(x / 2)``, which is exact near zero."""
    half = tirx.tanh(x * tirx.const(0.5, x.ty.dtype))
    near = (half + half) / (tirx.const(1, x.ty.dtype) - half)
    return tirx.Select(tirx.abs(x) < tirx.const(0.5, x.ty.dtype), near, tirx.exp(x) - 1)


_library("expm1", _expm1)
_library("atan2", tirx.atan2)


@converts("reciprocal")
def _reciprocal(g: Graph, x: Any) -> Any:
    out = dtype_of(g.out)
    wide = computed_in(out)
    return g.cast(g.emit(R.divide(scalar(1, wide), g.tensor(x, wide))), out)


@converts("neg")
def _neg(g: Graph, x: Any) -> Any:
    return R.negative(g.tensor(x))


@converts("abs")
def _abs(g: Graph, x: Any) -> Any:
    return R.abs(g.tensor(x))


@converts("sign", "sgn")
def _sign(g: Graph, x: Any) -> Any:
    x = g.tensor(x)
    dtype = static_type(x)[1]
    if dtype == "bool":
        return x
    zero = scalar(0, dtype)
    up, down = (g.cast(g.emit(compare(x, zero)), dtype) for compare in (R.greater, R.less))
    return R.subtract(up, down)


def _rounding(name: str, function: Callable[[Any], Any]) -> None:
    def convert(g: Graph, x: Any, *_: Any) -> Any:
        x = g.tensor(x)
        dtype = static_type(x)[1]
        if is_integer(dtype):
            return x
        return g.cast(g.emit(function(g.cast(x, computed_in(dtype)))), dtype)

    CONVERTERS[f"aten.{name}"] = convert


for _name in ("ceil", "floor", "trunc"):
    _rounding(_name, getattr(R, _name))


@converts("round")
def _round(g: Graph, x: Any, decimals: int = 0) -> Any:
    """Round half to even."""
    x = g.tensor(x)
    dtype = static_type(x)[1]
    if is_integer(dtype):
        return x
    wide = g.cast(x, computed_in(dtype))
    ten = scalar(10.0 ** abs(decimals), static_type(wide)[1])
    scale, back = (R.multiply, R.divide) if decimals > 0 else (R.divide, R.multiply)
    scaled = g.emit(scale(wide, ten)) if decimals else wide
    rounded = elementwise(g, tirx.nearbyint, scaled, name="round")
    return g.cast(g.emit(back(rounded, ten)) if decimals else rounded, dtype)


@converts("relu")
def _relu(g: Graph, x: Any) -> Any:
    return R.nn.relu(g.tensor(x))


@converts("gelu")
def _gelu(g: Graph, x: Any, approximate: str = "none") -> Any:
    out = dtype_of(g.out)
    function = R.nn.gelu if approximate == "none" else R.nn.gelu_tanh
    return g.cast(g.emit(function(g.tensor(x, computed_in(out)))), out)


@converts("silu")
def _silu(g: Graph, x: Any) -> Any:
    out = dtype_of(g.out)
    return g.cast(g.emit(R.nn.silu(g.tensor(x, computed_in(out)))), out)


@converts("leaky_relu")
def _leaky_relu(g: Graph, x: Any, slope: float = 0.01) -> Any:
    out = dtype_of(g.out)
    return g.cast(g.emit(R.nn.leakyrelu(g.tensor(x, computed_in(out)), slope)), out)


@converts("elu")
def _elu(g: Graph, x: Any, alpha: float = 1, scale: float = 1, input_scale: float = 1) -> Any:
    out = dtype_of(g.out)
    wide = computed_in(out)

    def function(x: Any) -> Any:
        down = tirx.const(alpha * scale, wide) * _expm1(x * tirx.const(input_scale, wide))
        return tirx.Select(x <= tirx.const(0, wide), down, x * tirx.const(scale, wide))

    return g.cast(elementwise(g, function, g.tensor(x, wide), name="elu"), out)


@converts("hardtanh")
def _hardtanh(g: Graph, x: Any, low: float = -1, high: float = 1) -> Any:
    return _clamp(g, x, low, high)


@converts("clamp")
def _clamp(g: Graph, x: Any, low: Any = None, high: Any = None) -> Any:
    dtype = dtype_of(g.out)
    x = g.tensor(x, dtype)
    bounds = (low, high)
    if dtype == "float32" and all(isinstance(b, (int, float)) for b in bounds):
        return R.clip(x, float(low), float(high))
    wide = "int8" if dtype == "bool" else dtype
    x = g.cast(x, wide)
    for function, bound in zip((R.maximum, R.minimum), bounds, strict=True):
        if bound is not None:
            x = g.emit(function(x, g.cast(g.tensor(bound, dtype), wide)))
    return g.cast(x, dtype)


@converts("clamp_min")
def _clamp_min(g: Graph, x: Any, low: Any) -> Any:
    return _clamp(g, x, low, None)


@converts("clamp_max")
def _clamp_max(g: Graph, x: Any, high: Any) -> Any:
    return _clamp(g, x, None, high)


@converts("logical_not")
def _logical_not(g: Graph, x: Any) -> Any:
    return negated(g, g.tensor(x, "bool"))


@converts("bitwise_not")
def _bitwise_not(g: Graph, x: Any) -> Any:
    x = g.tensor(x)
    return negated(g, x) if static_type(x)[1] == "bool" else R.bitwise_not(x)


def negated(g: Graph, x: Any) -> Any:
    """Choose the other truth: TVM makes ``y <= x`` of not ``x < y``, which NaN tells apart."""
    no, yes = (tirx.const(value, "bool") for value in (False, True))
    return elementwise(g, lambda x: tirx.Select(x, no, yes), x, name="logical_not")


def _of_floats(name: str, function: Callable[[Any], Any], otherwise: bool) -> None:
    """Ask something of floats; the answer for integers is always the same."""

    def convert(g: Graph, x: Any) -> Any:
        x = g.tensor(x)
        dtype = static_type(x)[1]
        if is_integer(dtype):
            return R.full(shape_of(x), scalar(otherwise, "bool"), "bool")
        return elementwise(g, function, g.cast(x, computed_in(dtype)), name=name)

    CONVERTERS[f"aten.{name}"] = convert


def _is_inf(x: Any) -> Any:
    return tirx.abs(x) == tirx.infinity(str(x.ty.dtype))


def _is_finite(x: Any) -> Any:
    return tirx.abs(x) < tirx.infinity(str(x.ty.dtype))


@converts("isnan")
def _isnan(g: Graph, x: Any) -> Any:
    return is_nan(g, g.tensor(x))


def is_nan(g: Graph, x: Any) -> Any:
    """Ask TVM's own function: what compares a tensor with itself is simplified away."""
    dtype = static_type(x)[1]
    if is_integer(dtype):
        return R.full(shape_of(x), scalar(False, "bool"), "bool")
    return R.isnan(g.cast(x, computed_in(dtype)))


_of_floats("isinf", _is_inf, False)
_of_floats("isfinite", _is_finite, True)


@converts("signbit")
def _signbit(g: Graph, x: Any) -> Any:
    x = g.tensor(x)
    if static_type(x)[1] == "bool":
        x = g.cast(x, "int8")
    dtype = static_type(x)[1]
    if is_integer(dtype):
        return R.less(x, scalar(0, dtype))
    wide = g.cast(x, computed_in(dtype))
    dtype = static_type(wide)[1]
    one = tirx.const(1, dtype)
    return elementwise(g, lambda x: tirx.copysign(one, x) < 0, wide, name="signbit")


@converts("_to_copy", "to")
def _to_copy(g: Graph, x: Any, *_: Any) -> Any:
    return g.tensor(x, dtype_of(g.out))


@converts("clone", "alias", "lift_fresh_copy", "detach", "contiguous")
def _same(g: Graph, x: Any, *_: Any) -> Any:
    return g.tensor(x, dtype_of(g.out))


@converts("copy")
def _copy(g: Graph, _: Any, source: Any, *__: Any) -> Any:
    return R.broadcast_to(g.tensor(source, dtype_of(g.out)), shape_of(g.out))


@converts("fill")
def _fill(g: Graph, x: Any, value: Any) -> Any:
    return R.broadcast_to(g.tensor(value, dtype_of(g.out)), shape_of(g.out))
