"""Exponential and error functions that compile to vector instructions.

TVM leaves both to the C library, one number at a time: 2 to 12 ns each, which is most of a
softmax's time and half of that of a small matrix product with a GELU. Polynomials, good to a few
units in the last place, take a tenth. ``tanh`` and the logistic function, which TVM makes of
exponentials, gain as well. Figures: ``docs/results/vector-math.md``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tvm
from tvm import tirx
from tvm.ir import register_op_attr

_LEVEL = 20
"""Above TVM's own rules, which have 10."""

_VECTORS = ("erf", "nearbyint")
"""What TVM would compute number by number in a vectorised loop, and unroll."""

_LOG2_E = 1.44269504
_LN_2 = (0.693359375, -2.12194440e-4)
"""In two parts, of which the first times a small integer is exact."""
_EXP = (
    1.9875691500e-4,
    1.3981999507e-3,
    8.3334519073e-3,
    4.1665795894e-2,
    1.6666665459e-1,
    5.0000001201e-1,
    1.0,
    1.0,
)
"""Exponential for arguments up to ln(2)/2, from Cephes (``expf.c``), highest power first."""
_SMALLEST_EXP = -87.3365
"""Below, the result is no normal number and becomes 0."""
_EXPONENTS = (-126.0, 127.0)
_EXPONENT_BIAS, _FRACTION_BITS = 127, 23

_ERF_NUMERATOR = (
    -2.72614225801306e-10,
    2.77068142495902e-08,
    -2.10102402082508e-06,
    -5.69250639462346e-05,
    -7.34990630326855e-04,
    -2.95459980854025e-03,
    -1.60960333262415e-02,
)
_ERF_DENOMINATOR = (
    -1.45660718464996e-05,
    -2.13374055278905e-04,
    -1.68282697438203e-03,
    -7.37332916720468e-03,
    -1.42647390514189e-02,
)
"""In the square of the argument, from Eigen, highest power first."""
_ERF_IS_ONE = 4.0


def install() -> None:
    """Let every program that is compiled for a CPU from now on use them."""
    for name in _VECTORS:
        register_op_attr(f"tirx.{name}", "TVectorizable", True)
    tirx.register_intrin_lowering("tirx.exp", target="llvm", f=_exp, level=_LEVEL)
    tirx.register_intrin_lowering("tirx.erf", target="llvm", f=_erf, level=_LEVEL)


def _exp(call: Any) -> Any:
    dtype = str(call.ty)
    if not dtype.startswith("float32"):
        return tirx.call_llvm_pure_intrin(dtype, "llvm.exp", call.args[0])
    lowest, highest = (tirx.const(value, dtype) for value in _EXPONENTS)
    integers = dtype.replace("float", "int")

    def of(x: Any) -> Any:
        nearest = tirx.floor(x * tirx.const(_LOG2_E, dtype) + tirx.const(0.5, dtype))
        return _let(dtype, tirx.max(tirx.min(nearest, highest), lowest), lambda n: scaled(x, n))

    def scaled(x: Any, n: Any) -> Any:
        rest = x - n * tirx.const(_LN_2[0], dtype) - n * tirx.const(_LN_2[1], dtype)
        exponent = tirx.Cast(integers, n) + tirx.const(_EXPONENT_BIAS, integers)
        power = tirx.reinterpret(dtype, exponent << tirx.const(_FRACTION_BITS, integers))
        value = _let(dtype, rest, lambda r: _polynomial(r, _EXP, dtype)) * power
        return tirx.Select(x < tirx.const(_SMALLEST_EXP, dtype), tirx.const(0.0, dtype), value)

    return _let(dtype, call.args[0], of)


def _erf(call: Any) -> Any:
    dtype = str(call.ty)
    if not dtype.startswith("float32"):
        return _one_by_one(call)
    one, end = tirx.const(1.0, dtype), tirx.const(_ERF_IS_ONE, dtype)

    def of(x: Any) -> Any:
        def quotient(square: Any) -> Any:
            numerator = _polynomial(square, _ERF_NUMERATOR, dtype)
            return x * numerator / _polynomial(square, _ERF_DENOMINATOR, dtype)

        within = _let(dtype, x * x, quotient)
        return tirx.Select(x > end, one, tirx.Select(x < -end, -one, within))

    return _let(dtype, call.args[0], of)


def _one_by_one(call: Any) -> Any:
    """Leave a function to the C library, which takes one number."""
    kind = tvm.DataType(str(call.ty))
    if kind.lanes == 1:
        return call
    numbers = [tirx.Shuffle([call.args[0]], [lane]) for lane in range(kind.lanes)]
    one = str(kind.with_lanes(1))
    return tirx.Shuffle(
        [tirx.call_intrin(one, call.op, number) for number in numbers], list(range(kind.lanes))
    )


def _polynomial(x: Any, coefficients: Sequence[float], dtype: str) -> Any:
    value = tirx.const(coefficients[0], dtype)
    for coefficient in coefficients[1:]:
        value = value * x + tirx.const(coefficient, dtype)
    return value


def _let(dtype: str, value: Any, body: Callable[[Any], Any]) -> Any:
    """Name a value that an expression uses more than once."""
    name = tirx.Var("value", dtype)
    return tirx.Let(name, value, body(name))
