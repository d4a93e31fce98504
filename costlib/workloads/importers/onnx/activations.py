"""Activation functions."""

from __future__ import annotations

import math

import numpy as np

from costlib.workloads.importers.onnx.elementwise import with_nan
from costlib.workloads.importers.onnx.node import MICROSOFT, Node, Refused, converts
from costlib.workloads.importers.onnx.tensors import (
    Tensor,
    absolute,
    constant,
    erf,
    exp,
    in_float32,
    log,
    maximum,
    minimum,
    numpy_dtype,
    sigmoid,
    tanh,
    where,
)


@converts("Elu")
def _elu(node: Node) -> Tensor:
    x, alpha = node[0], node.attribute("alpha", 1.0)
    return where(x > 0, x, (exp(minimum(x, 0)) - 1) * alpha)


@converts("Selu")
def _selu(node: Node) -> Tensor:
    x, gamma = node[0], node.attribute("gamma", 1.05070102214813232421875)
    alpha = node.attribute("alpha", 1.67326319217681884765625)
    negative = (exp(minimum(x, 0)) - 1) * alpha
    return where(x > 0, x, negative) * float(gamma)


@converts("Celu")
def _celu(node: Node) -> Tensor:
    x, alpha = node[0], node.attribute("alpha", 1.0)
    return maximum(x, 0) + minimum((exp(x / alpha) - 1) * alpha, 0)


@converts("LeakyRelu")
def _leaky_relu(node: Node) -> Tensor:
    x = node[0]
    return where(x < 0, x * node.attribute("alpha", 0.01), x)


@converts("PRelu")
def _prelu(node: Node) -> Tensor:
    x, slope = node[0], node[1]
    if node.opset < 7 and slope.ndim == 1:
        slope = slope.reshape([-1, *[1] * (x.ndim - 2)])
    return where(x < 0, x * slope, x)


@converts("ThresholdedRelu")
def _thresholded_relu(node: Node) -> Tensor:
    return where(node[0] > node.attribute("alpha", 1.0), node[0], 0)


@converts("HardSigmoid")
def _hard_sigmoid(node: Node) -> Tensor:
    return hard_sigmoid(node[0], node.attribute("alpha", 0.2), node.attribute("beta", 0.5))


def hard_sigmoid(x: Tensor, alpha: float, beta: float) -> Tensor:
    """Return a line cut off below 0 and above 1."""
    return minimum(maximum(x * alpha + beta, 0), 1)


@converts("HardSwish")
def _hard_swish(node: Node) -> Tensor:
    return node[0] * hard_sigmoid(node[0], 1 / 6, 0.5)


@converts("Shrink")
def _shrink(node: Node) -> Tensor:
    x, threshold = node[0], node.attribute("lambd", 0.5)
    bias = x.like(node.attribute("bias", 0.0))
    inside = with_nan(x, x * 0) if x.is_float else x * 0
    below = x if x.is_unsigned else where(x < x.like(-threshold), x + bias, inside)
    return where(x > x.like(threshold), x - bias, below)


def softplus(x: Tensor) -> Tensor:
    """Return log(1 + exp(x)) without overflow, exact where the exponential is small."""
    return in_float32(lambda y: maximum(y, 0) + _log1p(exp(-absolute(y))))(x)


def _log1p(x: Tensor) -> Tensor:
    """Return log(1 + x) for x between 0 and 1, exact near 0."""
    return where(x < 1e-4, x - x * x * 0.5, log(x + 1))


@converts("Softplus")
def _softplus(node: Node) -> Tensor:
    return softplus(node[0])


@converts("Mish")
def _mish(node: Node) -> Tensor:
    return node[0] * tanh(softplus(node[0]))


@converts("Swish")
def _swish(node: Node) -> Tensor:
    return node[0] * sigmoid(node[0] * node.attribute("alpha", 1.0))


@converts("Gelu")
def _gelu(node: Node) -> Tensor:
    x = node[0]
    return tanh_gelu(x) if node.attribute("approximate", "none") == "tanh" else gelu(x)


gelu = in_float32(lambda x: x * (erf(x * math.sqrt(0.5)) + 1) * 0.5)
tanh_gelu = in_float32(
    lambda x: x * (tanh((x * x * x * 0.044715 + x) * math.sqrt(2 / math.pi)) + 1) * 0.5
)


@converts("Gelu", "FastGelu", "BiasGelu", "QuickGelu", domain=MICROSOFT)
def _microsoft_gelu(node: Node) -> Tensor:
    x, bias = node[0], node.get(1)
    if bias is not None:
        x = x + bias
    if node.operator == "QuickGelu":
        return x * sigmoid(x * node.attribute("alpha", 1.702))
    return tanh_gelu(x) if node.operator == "FastGelu" else gelu(x)


@converts("Dropout")
def _dropout(node: Node) -> list[Tensor]:
    is_training = node.get(2)
    if node.opset < 7 and not node.attribute("is_test", 0):
        raise Refused("in training mode draws random numbers; export the model in evaluation mode")
    if is_training is not None and bool(node.known(2, "training_mode").any()):
        ratio = 0.5 if node.get(1) is None else node.known(1, "ratio").item()
        if ratio > 0:
            raise Refused("in training mode draws random numbers; export the model for inference")
    mask = "bool" if node.opset >= 10 else node[0].dtype
    return [node[0], constant(np.ones(node[0].shape, numpy_dtype(mask)))]
