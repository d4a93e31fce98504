"""Operators on two tensors, or on a tensor and a number: arithmetic, comparisons, choices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from costlib.tvm_compat import relax, tirx
from costlib.workloads.folding import static_type
from costlib.workloads.importers.aten.elementwise import (
    computed_in,
    elementwise,
    is_integer,
    is_nan,
    negated,
)
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


def common(*values: Any) -> str:
    """Return the dtype that PyTorch promotes tensors and numbers to."""
    dtype = torch.result_type(*(_stand_in(value) for value in values))
    return str(dtype).removeprefix("torch.")


def _stand_in(value: Any) -> Any:
    if isinstance(value, (bool, int, float, torch.Tensor)):
        return value
    shape, dtype = static_type(value)
    return torch.empty(shape or (), dtype=getattr(torch, dtype), device="meta")


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


def _of_numbers(name: str, function: Callable[[Any, Any], Any]) -> None:
    """Take the other where one is NaN."""

    def convert(g: Graph, x: Any, y: Any) -> Any:
        dtype = dtype_of(g.out)
        x, y = g.tensor(x, dtype), g.tensor(y, dtype)
        if is_integer(dtype):
            return arithmetic(g, function, x, y)
        one, other = g.emit(is_nan(g, x)), g.emit(is_nan(g, y))
        best = g.emit(function(x, y))
        return R.where(one, y, g.emit(R.where(other, x, best)))

    CONVERTERS[f"aten.{name}"] = convert


_of_numbers("fmax", _or_logical(R.maximum, R.logical_or))
_of_numbers("fmin", _or_logical(R.minimum, R.logical_and))


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
            differs = g.emit(is_nan(g, one))
            return differs if name == "ne" else negated(g, differs)
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
    if is_integer(wide):
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
    function = of_integers if is_integer(wide) else of_floats
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
    if is_integer(wide):
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
