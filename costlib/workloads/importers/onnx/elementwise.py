"""Operators that compute each element from those at the same place."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from costlib.tvm_compat import tirx
from costlib.workloads.importers.onnx.node import CONVERTERS, Node, Refused, converts
from costlib.workloads.importers.onnx.tensors import (
    Tensor,
    absolute,
    computed,
    constant,
    emitted,
    erf,
    exp,
    log,
    maximum,
    minimum,
    numpy_dtype,
    op,
    sigmoid,
    sqrt,
    tanh,
    unary,
    where,
)


def _sign(x: Tensor) -> Tensor:
    zero = x.like(0)
    positive = where(x > zero, x.like(1), zero).broadcast(x.shape)
    if x.is_unsigned:
        return positive
    return with_nan(x, positive - where(x < zero, x.like(1), zero))


def negated(x: Tensor) -> Tensor:
    """Return the opposite of booleans.

    TVM turns the negation of a comparison into another one, which is wrong for NaN.
    """
    return where(x, constant(np.array(False)), constant(np.array(True)))


def with_nan(x: Tensor, result: Tensor) -> Tensor:
    """Put NaN where ``x`` is NaN."""
    return where(is_nan(x), x, result) if x.is_float else result


def is_nan(x: Tensor) -> Tensor:
    """Whether elements are NaN, in any floating dtype."""
    x = x.cast("float32") if x.dtype == "bfloat16" else x
    return emitted(op.isnan(x.expr))


_FUNCTIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "Abs": absolute,
    "Acos": unary(op.acos),
    "Acosh": unary(op.acosh),
    "Asin": unary(op.asin),
    "Asinh": unary(op.asinh),
    "Atan": unary(op.atan),
    "Atanh": unary(op.atanh),
    "BitwiseNot": lambda x: emitted(op.bitwise_not(x.expr)),
    "Ceil": unary(op.ceil),
    "Cos": unary(op.cos),
    "Cosh": unary(op.cosh),
    "Erf": erf,
    "Exp": exp,
    "Floor": unary(op.floor),
    "Identity": lambda x: x,
    "Log": log,
    "Neg": lambda x: -x,
    "Not": negated,
    "Reciprocal": lambda x: 1.0 / x,
    "Relu": lambda x: maximum(x, 0),
    "Round": unary(op.round),
    "Sigmoid": sigmoid,
    "Sign": _sign,
    "Sin": unary(op.sin),
    "Sinh": unary(op.sinh),
    "Softsign": lambda x: x / (absolute(x) + 1),
    "Sqrt": sqrt,
    "Tan": unary(op.tan),
    "Tanh": tanh,
}


@converts(*_FUNCTIONS)
def _unary(node: Node) -> Tensor:
    return _FUNCTIONS[node.operator](node[0])


@converts("Identity")
def _identity(node: Node) -> Any:
    return [node.inputs[0]]


@converts("Equal")
def _equal(node: Node) -> Tensor:
    one, other = _broadcasting(node)
    if one.dtype == "bool":
        return negated(emitted(op.logical_xor(one.expr, other.expr)))
    return one.equals(other)


@converts("IsNaN")
def _is_nan(node: Node) -> Tensor:
    return is_nan(node[0])


@converts("IsInf")
def _is_inf(node: Node) -> Tensor:
    x = node[0]
    result = constant(np.zeros(x.shape, bool))
    for name, value in (("detect_positive", math.inf), ("detect_negative", -math.inf)):
        if node.attribute(name, 1):
            found = x.equals(value)
            result = emitted(op.logical_or(result.expr, found.expr))
    return result


def _broadcasting(node: Node) -> tuple[Tensor, Tensor]:
    """Return the two inputs; before opset 7 the second is aligned at an axis."""
    one, other = node[0], node[1]
    if node.opset < 7 and node.attribute("broadcast") and "axis" in node.attributes:
        rest = one.ndim - one.axis(node.attribute("axis")) - other.ndim
        other = other.reshape([*other.shape, *[1] * rest])
    return one, other


def _operator(name: str, function: Callable[[Tensor, Tensor], Tensor]) -> None:
    CONVERTERS["", name] = lambda node: function(*_broadcasting(node))


def _relax(function: Callable[..., Any]) -> Callable[[Tensor, Tensor], Tensor]:
    return lambda one, other: emitted(function(one.expr, other.expr))


for _name, _binary in {
    "Add": op.add,
    "Sub": op.subtract,
    "Mul": op.multiply,
    "And": op.logical_and,
    "Or": op.logical_or,
    "Xor": op.logical_xor,
    "Less": op.less,
    "LessOrEqual": op.less_equal,
    "Greater": op.greater,
    "GreaterOrEqual": op.greater_equal,
    "BitwiseAnd": op.bitwise_and,
    "BitwiseOr": op.bitwise_or,
    "BitwiseXor": op.bitwise_xor,
}.items():
    _operator(_name, _relax(_binary))


def elementwise(name: str, function: Callable[..., Any], dtype: str, *inputs: Tensor) -> Tensor:
    """Apply a function on expressions of TIR to broadcast inputs."""
    shape = np.broadcast_shapes(*(x.shape for x in inputs))

    def element(*arguments: Any) -> Any:
        tensors, indices = arguments[: len(inputs)], arguments[len(inputs) :]
        values = []
        for x, tensor in zip(inputs, tensors, strict=True):
            own = indices[len(indices) - x.ndim :]
            values.append(
                tensor[tuple(0 if n == 1 else i for i, n in zip(own, x.shape, strict=True))]
            )
        return function(*values)

    result = computed(name, shape, element, *inputs)
    assert result.dtype == dtype, (result.dtype, dtype)
    return result


@converts("Div")
def _div(node: Node) -> Tensor:
    one, other = _broadcasting(node)
    if one.is_float:
        return one / other
    return elementwise("divide", tirx.truncdiv, one.dtype, one, other)


@converts("Mod")
def _mod(node: Node) -> Tensor:
    one, other = node[0], node[1]
    if one.is_float:
        if not node.attribute("fmod", 0):
            raise Refused("of floating-point numbers needs fmod=1")
        wide = "float64" if one.dtype == "float64" else "float32"
        name = "fmod" if wide == "float64" else "fmodf"

        def remainder(x: Any, y: Any) -> Any:
            return tirx.call_pure_extern(wide, name, x, y)

        return elementwise("fmod", remainder, wide, one.cast(wide), other.cast(wide)).cast(
            one.dtype
        )
    function = tirx.truncmod if node.attribute("fmod", 0) else tirx.floormod
    return elementwise("mod", function, one.dtype, one, other)


@converts("BitShift")
def _bit_shift(node: Node) -> Tensor:
    x, count = node[0], node[1]
    bits = numpy_dtype(x.dtype).itemsize * 8
    shift = op.left_shift if node.attribute("direction") == "LEFT" else op.right_shift
    is_inside = count < bits
    if not x.is_unsigned:
        is_inside = emitted(op.logical_and(is_inside.expr, (count >= 0).expr))
    shifted = emitted(shift(x.expr, where(is_inside, count, bits - 1).expr))
    if node.attribute("direction") == "RIGHT" and not x.is_unsigned:
        return shifted
    return where(is_inside, shifted, 0)


@converts("Pow")
def _pow(node: Node) -> Tensor:
    base, exponent = _broadcasting(node)
    value = None if exponent.array is None or exponent.size != 1 else exponent.array.item()
    shape = np.broadcast_shapes(base.shape, exponent.shape)
    if value in (1, 2, 3) and shape == base.shape:
        return functools.reduce(lambda x, _: x * base, range(int(value) - 1), base)
    if base.is_float:
        if value == 0.5 and shape == base.shape:
            root = sqrt(base)
            return where(base.equals(-math.inf), math.inf, root)
        wide = "float64" if base.dtype == "float64" or exponent.dtype in _WIDE else "float32"
        return emitted(op.power(base.cast(wide).expr, exponent.cast(wide).expr)).cast(base.dtype)
    if exponent.is_float:
        power = op.power(base.cast("float64").expr, exponent.cast("float64").expr)
        return emitted(power).cast(base.dtype)
    return _integer_power(base, exponent)


_WIDE = ("float64", "int64", "uint64", "int32", "uint32")


def _integer_power(base: Tensor, exponent: Tensor) -> Tensor:
    """Multiply by squares, so that large results are exact; negative exponents give fractions."""
    bits = 6 if exponent.array is None else int(np.max(exponent.array, initial=0)).bit_length()

    def number(value: int) -> Any:
        return tirx.const(value, base.dtype)

    def element(x: Any, n: Any) -> Any:
        one, minus, zero, two = number(1), number(-1), number(0), number(2)
        result, square = one, x
        for bit in range(bits):
            is_set = tirx.truncmod(tirx.truncdiv(n, number(1 << bit)), two) == one
            result = result * tirx.Select(is_set, square, one)
            square = square * square
        odd = tirx.truncmod(n, two) != zero
        of_minus = tirx.Select(odd, minus, one)
        fraction = tirx.Select(x == one, one, tirx.Select(x == minus, of_minus, zero))
        return tirx.Select(n < zero, fraction, result)

    return elementwise("power", element, base.dtype, base, exponent.cast(base.dtype))


@converts("Max", "Min", "Sum", "Mean")
def _of_several(node: Node) -> Tensor:
    tensors = node.tensors()
    if node.operator in ("Sum", "Mean"):
        total = functools.reduce(lambda x, y: x + y, tensors)
        return total / len(tensors) if node.operator == "Mean" else total
    shape = np.broadcast_shapes(*(x.shape for x in tensors))
    return functools.reduce(_extreme(node.operator), tensors).broadcast(shape)


def _extreme(operator: str) -> Callable[[Tensor, Tensor], Tensor]:
    function = maximum if operator == "Max" else minimum

    def combine(one: Tensor, other: Tensor) -> Tensor:
        if one.is_float and other.array is None:
            return where(is_nan(other), other, function(one, other))
        return function(one, other)

    return combine


@converts("Where")
def _where(node: Node) -> Tensor:
    condition, one, other = node.tensors()
    return emitted(op.where(condition.expr, one.expr, other.expr))


@converts("Clip")
def _clip(node: Node) -> Tensor:
    x = node[0]
    low, high = node.get(1), node.get(2)
    if node.opset < 11:
        low = x.like(max(node.attribute("min", -math.inf), -3.4028234663852886e38))
        high = x.like(min(node.attribute("max", math.inf), 3.4028234663852886e38))
    if low is not None:
        x = maximum(x, low.reshape([]))
    return x if high is None else minimum(x, high.reshape([]))
