"""ONNX's operators that compute, in PyTorch."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from costlib.workloads.ranges.labels import UnpaddableError
from costlib.workloads.ranges.onnx_node import (
    OPERATORS,
    Constant,
    OnnxNode,
    Operator,
    listed,
    operator_of,
)

_UNARY: dict[str, Callable[..., Any]] = {
    **{"Sqrt": torch.sqrt, "Exp": torch.exp, "Tanh": torch.tanh, "Erf": torch.erf},
    **{"Sigmoid": torch.sigmoid, "Relu": torch.relu, "Neg": torch.neg, "Abs": torch.abs},
    **{"Log": torch.log, "Cos": torch.cos, "Sin": torch.sin, "Reciprocal": torch.reciprocal},
    **{"Not": torch.logical_not, "IsNaN": torch.isnan, "Floor": torch.floor, "Ceil": torch.ceil},
}
_BINARY: dict[str, Callable[..., Any]] = {
    **{"Add": operator.add, "Sub": operator.sub, "Mul": operator.mul, "Pow": torch.pow},
    **{"Less": torch.lt, "LessOrEqual": torch.le, "Greater": torch.gt},
    **{"GreaterOrEqual": torch.ge, "And": torch.logical_and, "Or": torch.logical_or},
    **{"Min": torch.minimum, "Max": torch.maximum},
}


def _unary(function: Callable[..., Any]) -> Operator:
    return lambda node: function(node.tensor(0))


def _binary(name: str, function: Callable[..., Any]) -> Operator:
    def found(node: OnnxNode) -> Any:
        if len(node.values) != 2:
            raise UnpaddableError("it takes more than two inputs")
        if name in ("Add", "Sub", "Mul") and (sizes := _both(node)) is not None:
            return _each(function, *sizes)
        return function(node.tensor(0), node.tensor(1))

    return found


OPERATORS.update({name: _unary(function) for name, function in _UNARY.items()})
OPERATORS.update({name: _binary(name, function) for name, function in _BINARY.items()})


def _both(node: OnnxNode) -> tuple[Any, Any] | None:
    """Return both inputs as sizes if one is not a constant and neither is a tensor."""
    if all(isinstance(value, (Constant, torch.Tensor)) for value in node.values[:2]):
        return None
    a, b = node.sizes(0), node.sizes(1)
    return None if a is None or b is None else (a, b)


def _each(function: Callable[..., Any], a: Any, b: Any) -> Any:
    if not isinstance(a, list) and not isinstance(b, list):
        return function(a, b)
    count = max(len(one) for one in (a, b) if isinstance(one, list))
    pairs = ((one if len(one) == count else one * count) for one in map(listed, (a, b)))
    return [function(*pair) for pair in zip(*pairs, strict=True)]


@operator_of("Div")
def _div(node: OnnxNode) -> Any:
    if (sizes := _both(node)) is not None:
        return _each(operator.floordiv, *sizes)
    a, b = node.tensor(0), node.tensor(1)
    is_integer = isinstance(a, torch.Tensor) and not a.dtype.is_floating_point
    return torch.div(a, b, rounding_mode="trunc" if is_integer else None)


@operator_of("Equal")
def _equal(node: OnnxNode) -> Any:
    sizes = _both(node)
    return _each(_is_same, *sizes) if sizes else torch.eq(node.tensor(0), node.tensor(1))


def _is_same(a: Any, b: Any) -> bool:
    """Whether sizes are the same; a symbol is not below 0."""
    numbers = [size for size in (a, b) if isinstance(size, int)]
    if len(numbers) < 2 and not any(size < 0 for size in numbers):
        raise UnpaddableError("it compares sizes")
    return len(numbers) == 2 and a == b


@operator_of("Where")
def _where(node: OnnxNode) -> Any:
    condition = node.value(0)
    if isinstance(condition, list):
        a, b = listed(node.sizes(1)), listed(node.sizes(2))
        return [x if is_first else y for is_first, x, y in zip(condition, a, b, strict=True)]
    return torch.where(*map(node.tensor, range(3)))


@operator_of("Cast")
def _cast(node: OnnxNode) -> Any:
    dtype = _dtype(node.attributes["to"])
    found = node.value(0)
    if not isinstance(found, (torch.Tensor, Constant)):
        if dtype in (torch.int64, torch.int32):
            return found
        if isinstance(found, int):
            return torch.tensor(found, dtype=dtype)
    return node.tensor(0).to(dtype)


@operator_of("Identity", "Dropout")
def _identity(node: OnnxNode) -> Any:
    return node.value(0)


@operator_of("Clip")
def _clip(node: OnnxNode) -> Any:
    ends = [node.attributes.get(name, node.tensor(n)) for n, name in ((1, "min"), (2, "max"))]
    return torch.clamp(node.tensor(0), *ends)


@operator_of("Gelu")
def _gelu(node: OnnxNode) -> Any:
    return functional.gelu(
        node.tensor(0), approximate=node.attributes.get("approximate", b"none").decode()
    )


@operator_of("LeakyRelu")
def _leaky_relu(node: OnnxNode) -> Any:
    return functional.leaky_relu(node.tensor(0), node.attributes.get("alpha", 0.01))


@operator_of("MatMul")
def _matmul(node: OnnxNode) -> Any:
    return torch.matmul(node.tensor(0), node.tensor(1))


@operator_of("Gemm")
def _gemm(node: OnnxNode) -> Any:
    a, b, c = (node.tensor(number) for number in range(3))
    a = a.t() if node.attributes.get("transA") else a
    b = b.t() if node.attributes.get("transB") else b
    found = torch.matmul(a, b) * node.attributes.get("alpha", 1.0)
    return found if c is None else found + c * node.attributes.get("beta", 1.0)


@operator_of("Softmax")
def _softmax(node: OnnxNode) -> Any:
    return _normalised(node, torch.softmax)


@operator_of("LogSoftmax")
def _log_softmax(node: OnnxNode) -> Any:
    return _normalised(node, torch.log_softmax)


def _normalised(node: OnnxNode, function: Callable[..., Any]) -> Any:
    x = node.tensor(0)
    axis = node.attributes.get("axis", -1 if node.opset >= 13 else 1) % x.dim()
    if node.opset < 13 and axis != x.dim() - 1:
        raise UnpaddableError("it lays several axes out as one")
    return function(x, axis)


@operator_of("LayerNormalization")
def _layer_norm(node: OnnxNode) -> Any:
    x = node.tensor(0)
    axis = node.attributes.get("axis", -1) % x.dim()
    epsilon = node.attributes.get("epsilon", 1e-5)
    return functional.layer_norm(x, x.shape[axis:], node.tensor(1), node.tensor(2), epsilon)


@operator_of("BatchNormalization")
def _batch_norm(node: OnnxNode) -> Any:
    node.refuse(training_mode=0)
    x, scale, bias, mean, variance = map(node.tensor, range(5))
    epsilon = node.attributes.get("epsilon", 1e-5)
    return functional.batch_norm(x, mean, variance, scale, bias, eps=epsilon)


_REDUCTIONS: dict[str, Callable[..., Any]] = {
    **{"ReduceMean": torch.mean, "ReduceSum": torch.sum},
    **{"ReduceMax": torch.amax, "ReduceMin": torch.amin},
}


def _reduction(function: Callable[..., Any]) -> Operator:
    def found(node: OnnxNode) -> Any:
        x = node.tensor(0)
        axes = node.given("axes", 1, [])
        if not axes and node.attributes.get("noop_with_empty_axes"):
            return x
        return function(
            x, dim=axes or list(range(x.dim())), keepdim=bool(node.attributes.get("keepdims", 1))
        )

    return found


OPERATORS.update({name: _reduction(function) for name, function in _REDUCTIONS.items()})


@operator_of("Conv")
def _conv(node: OnnxNode) -> Any:
    x, weight = node.tensor(0), node.tensor(1)
    rank = x.dim() - 2
    node.refuse(auto_pad=b"NOTSET")
    pads = node.attributes.get("pads", [0] * 2 * rank)
    if pads[:rank] != pads[rank:]:
        raise UnpaddableError("its pads differ")
    convolve = (functional.conv1d, functional.conv2d, functional.conv3d)[rank - 1]
    return convolve(
        x,
        weight,
        node.tensor(2),
        stride=node.attributes.get("strides", [1] * rank),
        padding=pads[:rank],
        dilation=node.attributes.get("dilations", [1] * rank),
        groups=node.attributes.get("group", 1),
    )


@operator_of("MaxPool")
def _max_pool(node: OnnxNode) -> Any:
    x = node.tensor(0)
    node.refuse(auto_pad=b"NOTSET", ceil_mode=0, storage_order=0)
    kernel = node.attributes["kernel_shape"]
    pads = node.attributes.get("pads", [0] * 2 * len(kernel))
    if len(kernel) != 2 or pads[:2] != pads[2:]:
        raise UnpaddableError("its window is none that is written here")
    strides = node.attributes.get("strides", [1, 1])
    return functional.max_pool2d(x, kernel, strides, pads[:2], node.attributes.get("dilations", 1))


@operator_of("GlobalAveragePool")
def _global_average(node: OnnxNode) -> Any:
    x = node.tensor(0)
    return x.mean(list(range(2, x.dim())), keepdim=True)


def _dtype(number: int) -> torch.dtype:
    """Return PyTorch's dtype for ONNX's."""
    from onnx.helper import tensor_dtype_to_np_dtype

    return torch.from_numpy(np.zeros(0, tensor_dtype_to_np_dtype(number))).dtype
