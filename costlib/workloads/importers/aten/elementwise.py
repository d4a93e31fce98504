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


def common(*values: Any) -> str:
    """Return the dtype that PyTorch promotes tensors and numbers to."""
    dtype = torch.result_type(*(_stand_in(value) for value in values))
    return str(dtype).removeprefix("torch.")


def _stand_in(value: Any) -> Any:
    if isinstance(value, (bool, int, float, torch.Tensor)):
        return value
    shape, dtype = static_type(value)
    return torch.empty(shape or (), dtype=getattr(torch, dtype), device="meta")


def _is_integer(dtype: str) -> bool:
    return dtype == "bool" or dtype.startswith(("int", "uint"))


# Of one tensor.


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
        if _is_integer(dtype):
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
    if _is_integer(dtype):
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
    return _negated(g, g.tensor(x, "bool"))


@converts("bitwise_not")
def _bitwise_not(g: Graph, x: Any) -> Any:
    x = g.tensor(x)
    return _negated(g, x) if static_type(x)[1] == "bool" else R.bitwise_not(x)


def _negated(g: Graph, x: Any) -> Any:
    """Choose the other truth: TVM makes ``y <= x`` of not ``x < y``, which NaN tells apart."""
    no, yes = (tirx.const(value, "bool") for value in (False, True))
    return elementwise(g, lambda x: tirx.Select(x, no, yes), x, name="logical_not")


def _of_floats(name: str, function: Callable[[Any], Any], otherwise: bool) -> None:
    """Ask something of floats; the answer for integers is always the same."""

    def convert(g: Graph, x: Any) -> Any:
        x = g.tensor(x)
        dtype = static_type(x)[1]
        if _is_integer(dtype):
            return R.full(shape_of(x), scalar(otherwise, "bool"), "bool")
        return elementwise(g, function, g.cast(x, computed_in(dtype)), name=name)

    CONVERTERS[f"aten.{name}"] = convert


def _is_inf(x: Any) -> Any:
    return tirx.abs(x) == tirx.infinity(str(x.ty.dtype))


def _is_finite(x: Any) -> Any:
    return tirx.abs(x) < tirx.infinity(str(x.ty.dtype))


@converts("isnan")
def _isnan(g: Graph, x: Any) -> Any:
    return _is_nan(g, g.tensor(x))


def _is_nan(g: Graph, x: Any) -> Any:
    """Ask TVM's own function: what compares a tensor with itself is simplified away."""
    dtype = static_type(x)[1]
    if _is_integer(dtype):
        return R.full(shape_of(x), scalar(False, "bool"), "bool")
    return R.isnan(g.cast(x, computed_in(dtype)))


_of_floats("isinf", _is_inf, False)
_of_floats("isfinite", _is_finite, True)


@converts("signbit")
def _signbit(g: Graph, x: Any) -> Any:
    x = g.tensor(x)
    dtype = static_type(x)[1]
    if _is_integer(dtype):
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


# Of two tensors, or of a tensor and a number.


def _arithmetic(name: str, function: Callable[[Any, Any], Any]) -> None:
    def convert(g: Graph, x: Any, y: Any, *_: Any) -> Any:
        return arithmetic(g, function, x, y)

    CONVERTERS[f"aten.{name}"] = convert


def arithmetic(g: Graph, function: Callable[[Any, Any], Any], x: Any, y: Any) -> Any:
    """Compute in the dtype of the result; with a number, halves are computed in float32."""
    out = dtype_of(g.out)
    has_number = any(isinstance(value, (bool, int, float)) for value in (x, y))
    wide = computed_in(out) if has_number else out
    return g.cast(g.emit(function(g.tensor(x, wide), g.tensor(y, wide))), out)


def _or_logical(function: Callable[[Any, Any], Any], logical: Any) -> Callable[[Any, Any], Any]:
    """Take an operator of bits for booleans, which have no arithmetic."""

    def either(x: Any, y: Any) -> Any:
        return (logical if static_type(x)[1] == "bool" else function)(x, y)

    return either


_arithmetic("mul", _or_logical(R.multiply, R.logical_and))
_arithmetic("maximum", _or_logical(R.maximum, R.logical_or))
_arithmetic("minimum", _or_logical(R.minimum, R.logical_and))
_arithmetic("bitwise_and", _or_logical(R.bitwise_and, R.logical_and))
_arithmetic("bitwise_or", _or_logical(R.bitwise_or, R.logical_or))
_arithmetic("bitwise_xor", _or_logical(R.bitwise_xor, R.logical_xor))
_arithmetic("bitwise_left_shift", R.left_shift)
_arithmetic("bitwise_right_shift", R.right_shift)


@converts("add")
def _add(g: Graph, x: Any, y: Any, alpha: float = 1) -> Any:
    return _scaled(g, _or_logical(R.add, R.logical_or), x, y, alpha)


@converts("sub")
def _sub(g: Graph, x: Any, y: Any, alpha: float = 1) -> Any:
    return _scaled(g, R.subtract, x, y, alpha)


@converts("rsub")
def _rsub(g: Graph, x: Any, y: Any, alpha: float = 1) -> Any:
    out = dtype_of(g.out)
    return arithmetic(g, R.subtract, y, x if alpha == 1 else _times(g, x, alpha, out))


def _scaled(g: Graph, function: Any, x: Any, y: Any, alpha: float) -> Any:
    return arithmetic(g, function, x, y if alpha == 1 else _times(g, y, alpha, dtype_of(g.out)))


def _times(g: Graph, x: Any, alpha: float, dtype: str) -> Any:
    if isinstance(x, (bool, int, float)):
        return x * alpha
    wide = computed_in(dtype)
    return g.cast(g.emit(R.multiply(g.tensor(x, wide), scalar(alpha, wide))), dtype)


def _comparison(name: str, function: Callable[[Any, Any], Any]) -> None:
    def convert(g: Graph, x: Any, y: Any) -> Any:
        dtype = common(x, y)
        if dtype == "bool":
            dtype = "int8"
        one, other = g.tensor(x, dtype), g.tensor(y, dtype)
        if name in ("eq", "ne") and one.same_as(other):
            is_nan = g.emit(_is_nan(g, one))
            return is_nan if name == "ne" else _negated(g, is_nan)
        return function(one, other)

    CONVERTERS[f"aten.{name}"] = convert


_comparison("eq", R.equal)
_comparison("ne", R.not_equal)
_comparison("lt", R.less)
_comparison("le", R.less_equal)
_comparison("gt", R.greater)
_comparison("ge", R.greater_equal)


def _logical(name: str, function: Callable[[Any, Any], Any]) -> None:
    def convert(g: Graph, x: Any, y: Any) -> Any:
        return function(g.tensor(x, "bool"), g.tensor(y, "bool"))

    CONVERTERS[f"aten.{name}"] = convert


_logical("logical_and", R.logical_and)
_logical("logical_or", R.logical_or)
_logical("logical_xor", R.logical_xor)


@converts("div")
def _div(g: Graph, x: Any, y: Any, rounding_mode: str | None = None) -> Any:
    if rounding_mode is None:
        return arithmetic(g, R.divide, x, y)
    out = dtype_of(g.out)
    wide = computed_in(out)
    x, y = g.tensor(x, wide), g.tensor(y, wide)
    if _is_integer(wide):
        function = tirx.truncdiv if rounding_mode == "trunc" else tirx.floordiv
        return elementwise(g, function, x, y, name=f"{rounding_mode}_divide")
    if rounding_mode == "trunc":
        return g.cast(g.emit(R.trunc(g.emit(R.divide(x, y)))), out)
    return g.cast(elementwise(g, _floor_divide, x, y, name="floor_divide"), out)


def _fmod_of_floats(x: Any, y: Any) -> Any:
    dtype = str(x.ty.dtype)
    return tirx.call_pure_extern(dtype, "fmod" if dtype == "float64" else "fmodf", x, y)


def _floor_divide(x: Any, y: Any) -> Any:
    """Divide what the remainder leaves, as Python does: a quotient that is rounded up is not."""
    zero, half, one = (tirx.const(value, x.ty.dtype) for value in (0, 0.5, 1))
    rest = _fmod_of_floats(x, y)
    quotient = (x - rest) / y
    crosses = tirx.Select(y < zero, rest > zero, rest < zero)
    quotient = quotient - tirx.Select(crosses, one, zero)
    floor = tirx.floor(quotient)
    floor = floor + tirx.Select(quotient - floor > half, one, zero)
    return tirx.Select(y == zero, x / y, tirx.Select(quotient == zero, zero * (x / y), floor))


@converts("floor_divide")
def _floor_divided(g: Graph, x: Any, y: Any) -> Any:
    return _div(g, x, y, "floor")


@converts("remainder")
def _remainder(g: Graph, x: Any, y: Any) -> Any:
    return _modulo(g, x, y, tirx.floormod, _signed_like_the_divisor, "remainder")


@converts("fmod")
def _fmod(g: Graph, x: Any, y: Any) -> Any:
    return _modulo(g, x, y, tirx.truncmod, _fmod_of_floats, "fmod")


def _modulo(g: Graph, x: Any, y: Any, of_integers: Any, of_floats: Any, name: str) -> Any:
    out = dtype_of(g.out)
    wide = computed_in(out)
    function = of_integers if _is_integer(wide) else of_floats
    return g.cast(elementwise(g, function, g.tensor(x, wide), g.tensor(y, wide), name=name), out)


def _signed_like_the_divisor(x: Any, y: Any) -> Any:
    zero = tirx.const(0, x.ty.dtype)
    rest = _fmod_of_floats(x, y)
    return tirx.Select(tirx.Select(y < zero, rest > zero, rest < zero), rest + y, rest)


_EXPONENT_BITS = 6
"""Of an integer's power that can be computed: higher ones of anything but 0 and 1 overflow."""


@converts("pow")
def _pow(g: Graph, x: Any, y: Any) -> Any:
    out = dtype_of(g.out)
    wide = computed_in(out)
    if _is_integer(wide):
        return _integer_power(g, x, y, wide)
    if isinstance(y, (bool, int, float)):
        if y == 0.5:
            return g.cast(g.emit(R.sqrt(g.tensor(x, wide))), out)
        if y == 1:
            return g.tensor(x, out)
    return g.cast(g.emit(R.power(g.tensor(x, wide), g.tensor(y, wide))), out)


def _integer_power(g: Graph, x: Any, y: Any, dtype: str) -> Any:
    """Square and multiply; a negative exponent leaves 1 and -1, and 0 of all else."""
    base, exponent = g.tensor(x, dtype), g.tensor(y, dtype)
    zero, one, two = (tirx.const(value, dtype) for value in (0, 1, 2))

    def power(x: Any, y: Any) -> Any:
        result, square = one, x
        for bit in range(_EXPONENT_BITS):
            taken = tirx.floormod(tirx.floordiv(y, tirx.const(1 << bit, dtype)), two) == one
            result = tirx.Select(taken, result * square, result)
            square = square * square
        odd = tirx.floormod(y, two) == one
        inverse = tirx.Select(x == one, one, tirx.Select(odd, zero - one, one))
        is_unit = tirx.any(x == one, x == zero - one)
        return tirx.Select(y < zero, tirx.Select(is_unit, inverse, zero), result)

    return elementwise(g, power, base, exponent, name="integer_power")


@converts("where")
def _where(g: Graph, condition: Any, x: Any, y: Any) -> Any:
    dtype = dtype_of(g.out)
    return R.where(g.tensor(condition, "bool"), g.tensor(x, dtype), g.tensor(y, dtype))


@converts("prelu", "_prelu_kernel")
def _prelu(g: Graph, x: Any, slope: Any) -> Any:
    dtype = dtype_of(g.out)
    x, slope = g.tensor(x, dtype), g.tensor(slope, dtype)
    if len(shape_of(slope)) == 1 and len(shape_of(x)) > 1 and shape_of(slope) != (1,):
        slope = g.emit(R.reshape(slope, [1, -1, *[1] * (len(shape_of(x)) - 2)]))
    below = g.emit(R.multiply(slope, x))
    return R.where(g.emit(R.greater(x, scalar(0, dtype))), x, below)
