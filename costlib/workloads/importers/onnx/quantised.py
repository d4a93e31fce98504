"""Quantised numbers: (q - zero point) x scale."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from costlib.workloads.importers.onnx.casting import dtype_of
from costlib.workloads.importers.onnx.convolution import convolved
from costlib.workloads.importers.onnx.node import CONVERTERS, MICROSOFT, Node, Refused, converts
from costlib.workloads.importers.onnx.pooling import average_pool
from costlib.workloads.importers.onnx.reductions import extreme
from costlib.workloads.importers.onnx.tensors import (
    Tensor,
    constant,
    emitted,
    maximum,
    minimum,
    op,
    sigmoid,
    unary,
    where,
)

_round: Callable[[Tensor], Tensor] = unary(op.round)


def quantised(x: Tensor, scale: Tensor, zero: Tensor | None, dtype: str) -> Tensor:
    """Divide, round to even, and cut off at the limits of an integer dtype.

    In float32, which holds all that is not cut off; what becomes of NaN ONNX does not say.
    """
    if dtype not in _INTEGERS:
        raise Refused(f"to {dtype} is not supported; quantise to (u)int8 or (u)int16")
    limits = np.iinfo(dtype)
    scaled = _round(x.cast("float32") / scale.cast("float32"))
    if zero is not None and (zero.array is None or zero.array.any()):
        scaled = scaled + zero.cast("float32")
    bounded = minimum(maximum(scaled, float(limits.min)), float(limits.max))
    return bounded.cast("int32").cast(dtype)


_INTEGERS = ("int8", "uint8", "int16", "uint16")


def dequantised(x: Tensor, scale: Tensor, zero: Tensor | None) -> Tensor:
    """Return the numbers that quantised ones stand for, of the scale's dtype."""
    if x.is_float:
        raise Refused("from 8-bit floating-point numbers is not supported; use (u)int8")
    whole = x.cast("int32")
    if zero is not None:
        whole = whole - zero.cast("int32")
    wide = "float64" if scale.dtype == "float64" else "float32"
    return (whole.cast(wide) * scale.cast(wide)).cast(scale.dtype)


def _along(node: Node, parameter: Tensor, x: Tensor) -> Tensor:
    """Shape scales or zero points like ``x``: one, one for each place of an axis, or of a block."""
    axis, block = x.axis(node.attribute("axis", 1)), node.attribute("block_size", 0)
    if block:
        repeated = emitted(op.repeat(parameter.expr, block, axis))
        return repeated.slice(axis, 0, x.shape[axis])
    if parameter.size == 1:
        return parameter.reshape([])
    return parameter.reshape([n if i == axis else 1 for i, n in enumerate(x.shape)])


@converts("QuantizeLinear")
@converts("QuantizeLinear", domain=MICROSOFT)
def _quantize_linear(node: Node) -> Tensor:
    x, scale, zero = node[0], node[1], node.get(2)
    code = node.attribute("output_dtype", 0)
    dtype = dtype_of(code) if code else "uint8" if zero is None else zero.dtype
    zero = None if zero is None else _along(node, zero, x)
    return quantised(x, _along(node, scale, x), zero, dtype)


@converts("DequantizeLinear")
@converts("DequantizeLinear", domain=MICROSOFT)
def _dequantize_linear(node: Node) -> Tensor:
    x, scale, zero = node[0], node[1], node.get(2)
    zero = None if zero is None else _along(node, zero, x)
    result = dequantised(x, _along(node, scale, x), zero)
    code = node.attribute("output_dtype", 0)
    return result.cast(dtype_of(code)) if code else result


@converts("DynamicQuantizeLinear")
def _dynamic_quantize_linear(node: Node) -> list[Tensor]:
    x = node[0]
    axes = list(range(x.ndim))
    low = minimum(extreme(x, axes, False).reshape([]), 0)
    high = maximum(extreme(x, axes, True).reshape([]), 0)
    scale = (high - low) / 255
    divisor = where(scale.equals(0), 1, scale)
    zero = _round(minimum(maximum(-low / divisor, 0), 255)).cast("int32").cast("uint8")
    return [quantised(x, divisor, zero, "uint8"), scale, zero]


def _centred(x: Tensor, zero: Tensor | None, axis: int = -2) -> Tensor:
    """Return whole numbers that zero stands for zero in."""
    x = x.cast("int32")
    if zero is None:
        return x
    if zero.ndim == 1 and zero.size > 1:
        zero = zero.reshape([n if i == x.axis(axis) else 1 for i, n in enumerate(x.shape)])
    elif zero.size == 1:
        zero = zero.reshape([])
    return x - zero.cast("int32")


def _integer_product(a: Tensor, b: Tensor) -> Tensor:
    return emitted(op.matmul(a.expr, b.expr, out_dtype="int32"))


@converts("MatMulInteger")
def _matmul_integer(node: Node) -> Tensor:
    return _integer_product(_centred(node[0], node.get(2)), _centred(node[1], node.get(3), -1))


@converts("MatMulIntegerToFloat", domain=MICROSOFT)
def _matmul_integer_to_float(node: Node) -> Tensor:
    a, b = _centred(node[0], node.get(4)), _centred(node[1], node.get(5), -1)
    product = _integer_product(a, b).cast(node[2].dtype) * node[2] * node[3]
    return product if node.get(6) is None else product + node[6]


@converts("DynamicQuantizeMatMul", domain=MICROSOFT)
def _dynamic_quantize_matmul(node: Node) -> Tensor:
    quantum, scale, zero = _dynamic_quantize_linear(Node("", "", 13, node.inputs[:1]))
    product = _integer_product(_centred(quantum, zero), _centred(node[1], node.get(3), -1))
    result = product.cast("float32") * (scale * node[2])
    return result if node.get(4) is None else result + node[4]


@converts("QLinearMatMul")
def _q_linear_matmul(node: Node) -> Tensor:
    a, a_scale, a_zero, b, b_scale, b_zero, scale, zero = node.tensors()
    if a_scale.ndim == 1 and a_scale.size > 1:
        a_scale = a_scale.expand(-1)
    product = _integer_product(_centred(a, a_zero), _centred(b, b_zero, -1)).cast("float32")
    scaled = product * (a_scale.cast("float32") * b_scale.cast("float32"))
    return quantised(scaled, scale, zero, zero.dtype)


@converts("ConvInteger")
def _conv_integer(node: Node) -> Tensor:
    weight = _centred(node[1], node.get(3), 0)
    return convolved(node, _centred(node[0], node.get(2)), weight)


@converts("QLinearConv")
def _q_linear_conv(node: Node) -> Tensor:
    x, x_scale, x_zero, weight, w_scale, w_zero, scale, zero = node.tensors()[:8]
    result = convolved(node, _centred(x, x_zero), _centred(weight, w_zero, 0))
    rest = [1] * (x.ndim - 2)
    if node.get(8) is not None:
        result = result + node[8].reshape([1, -1, *rest])
    w_scale = w_scale.reshape([1, -1, *rest]) if w_scale.size > 1 else w_scale.reshape([])
    return quantised(
        result.cast("float32") * (w_scale * x_scale.reshape([])), scale, zero, zero.dtype
    )


@converts("QLinearAdd", "QLinearMul", domain=MICROSOFT)
def _q_linear_binary(node: Node) -> Tensor:
    a, b = dequantised(node[0], node[1], node.get(2)), dequantised(node[3], node[4], node.get(5))
    result = a + b if node.operator == "QLinearAdd" else a * b
    return quantised(result, node[6], node.get(7), node[0].dtype)


@converts("QLinearSigmoid", "QLinearLeakyRelu", domain=MICROSOFT)
def _q_linear_unary(node: Node) -> Tensor:
    x = dequantised(node[0], node[1], node.get(2))
    if node.operator == "QLinearSigmoid":
        result = sigmoid(x)
    else:
        result = where(x < 0, x * node.attribute("alpha", 0.01), x)
    return quantised(result, node[3], node.get(4), node[0].dtype)


@converts("QLinearGlobalAveragePool", domain=MICROSOFT)
def _q_linear_global_average_pool(node: Node) -> Tensor:
    node.refuse_attributes(channels_last=0)
    x = dequantised(node[0], node[1], node.get(2))
    return quantised(x.mean(list(range(2, x.ndim))), node[3], node.get(4), node[0].dtype)


@converts("QLinearAveragePool", domain=MICROSOFT)
def _q_linear_average_pool(node: Node) -> Tensor:
    node.refuse_attributes(channels_last=0)
    x = dequantised(node[0], node[1], node.get(2))
    pooled = average_pool(Node("AveragePool", "", 19, (x,), node.attributes))
    return quantised(pooled, node[3], node.get(4), node[0].dtype)


@converts("QLinearSoftmax", domain=MICROSOFT)
def _q_linear_softmax(node: Node) -> Tensor:
    x = dequantised(node[0], node[1], node.get(2))
    version = node.attribute("opset", 13)
    given = Node("Softmax", "", version, (x,), {"axis": node.attribute("axis", -1)})
    result: Tensor = CONVERTERS["", "Softmax"](given)
    return quantised(result, node[3], node.get(4), node[0].dtype)


@converts("QGemm", domain=MICROSOFT)
def _q_gemm(node: Node) -> Tensor:
    a, b = node[0], node[3]
    a = a.swap() if node.attribute("transA", 0) else a
    b = b.swap() if node.attribute("transB", 0) else b
    product = _integer_product(_centred(a, node.get(2)), _centred(b, node.get(5), -1))
    product = product if node.get(6) is None else product + node[6]
    alpha: float = node.attribute("alpha", 1.0)
    result = product.cast("float32") * (node[1] * node[4] * alpha)
    if node.get(7) is None:
        return result
    return quantised(result, node[7], node.get(8), node[0].dtype)


@converts("QLinearConcat", domain=MICROSOFT)
def _q_linear_concat(node: Node) -> Tensor:
    from costlib.workloads.importers.onnx.tensors import concatenated

    rest = node.tensors()[2:]
    parts = [dequantised(*rest[i : i + 3]) for i in range(0, len(rest), 3)]
    joined = concatenated(parts, node.attribute("axis"))
    return quantised(joined, node[0], node[1], node[1].dtype)


@converts("MatMulNBits", domain=MICROSOFT)
def _matmul_n_bits(node: Node) -> Tensor:
    """Unpack weights of few bits, which are constants, and multiply by them as they are."""
    node.refuse_attributes(bits=4)
    x, block = node[0], node.attribute("block_size")
    columns, depth = node.attribute("N"), node.attribute("K")
    packed, scale = node.known(1, "weight"), node.known(2, "scale")
    if node.get(4) is not None:
        raise Refused("with a group index is not supported")
    count = math.ceil(depth / block)
    nibbles = np.stack([packed & 15, packed >> 4], -1).reshape(columns, count, block)
    zero = np.full((columns, count), 8.0, np.float32)
    if node.get(3) is not None:
        given = node.known(3, "zero point")
        if given.dtype == np.uint8:
            rows = given.reshape(columns, -1)
            zero = np.stack([rows & 15, rows >> 4], -1).reshape(columns, -1)[:, :count]
        else:
            zero = given.reshape(columns, count)
    weight = (nibbles - zero.astype(np.float32)[..., None]) * scale.reshape(columns, count, 1)
    matrix = weight.reshape(columns, -1)[:, :depth].T.astype(scale.dtype)
    from costlib.workloads.importers.onnx.tensors import matmul

    product = matmul(x, constant(matrix).cast(x.dtype))
    return product if node.get(5) is None else product + node[5]
