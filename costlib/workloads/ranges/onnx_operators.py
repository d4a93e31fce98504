"""ONNX's operators in PyTorch, for models whose extents have names.

Extents are computed with as PyTorch does while it exports: a size is a number or a symbol, and a
shape a list of them, not a tensor. What is not written here is refused.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from costlib.workloads.ranges.labels import UnpaddableError

Operator = Callable[["OnnxNode"], Any]
OPERATORS: dict[str, Operator] = {}
"""By ONNX's names."""

_MOST_SIZES = 16
_OPEN_END = 1 << 31


@dataclass(frozen=True)
class Constant:
    """A tensor that is known, and the same as an array."""

    tensor: torch.Tensor
    array: np.ndarray


@dataclass(frozen=True)
class OnnxNode:
    """A node of an ONNX graph.

    Attributes
    ----------
    values
        Its inputs, each a tensor, a :class:`Constant`, a size, a list of sizes, or ``None``.
    attributes
        Its attributes, by their names.
    opset
        What says what they mean.
    outputs
        How many results it has.
    """

    values: Sequence[Any]
    attributes: dict[str, Any]
    opset: int
    outputs: int = 1

    def value(self, number: int) -> Any:
        """Return an input, ``None`` if it is left out."""
        return self.values[number] if number < len(self.values) else None

    def tensor(self, number: int) -> Any:
        """Return an input as a tensor, or as the size that it is."""
        found = self.value(number)
        if isinstance(found, Constant):
            return found.tensor
        if isinstance(found, list):
            if not all(isinstance(n, int) for n in found):
                raise UnpaddableError("it computes with a shape")
            return torch.tensor(found)
        return found

    def sizes(self, number: int) -> Any:
        """Return an input as a size or a list of them; ``None`` if it is no such thing."""
        found = self.value(number)
        if not isinstance(found, Constant):
            return None if isinstance(found, torch.Tensor) else found
        is_shape = found.array.dtype.kind in "iu" and found.array.ndim < 2
        return found.array.tolist() if is_shape and found.array.size <= _MOST_SIZES else None

    def given(self, name: str, number: int, default: Any = None) -> Any:
        """Return sizes that are an attribute in old opsets and an input in new ones."""
        found = self.attributes.get(name)
        if found is None and (found := self.sizes(number)) is None and self.value(number):
            raise UnpaddableError(f"its {name} depend on data")
        return default if found is None else found

    def refuse(self, **allowed: Any) -> None:
        """Raise unless attributes are left out or have the one value that is written here."""
        for name, value in allowed.items():
            if self.attributes.get(name, value) != value:
                raise UnpaddableError(f"its {name} is {self.attributes[name]}")


def operator_of(*names: str) -> Callable[[Operator], Operator]:
    """Enter operators."""

    def enter(function: Operator) -> Operator:
        OPERATORS.update(dict.fromkeys(names, function))
        return function

    return enter


def dtype_of(number: int) -> torch.dtype:
    """Return PyTorch's dtype for ONNX's."""
    from onnx.helper import tensor_dtype_to_np_dtype

    return torch.from_numpy(np.zeros(0, tensor_dtype_to_np_dtype(number))).dtype


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
    pairs = ((one if len(one) == count else one * count) for one in map(_listed, (a, b)))
    return [function(*pair) for pair in zip(*pairs, strict=True)]


def _listed(sizes: Any) -> list[Any]:
    return sizes if isinstance(sizes, list) else [sizes]


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
        a, b = _listed(node.sizes(1)), _listed(node.sizes(2))
        return [x if is_first else y for is_first, x, y in zip(condition, a, b, strict=True)]
    return torch.where(*map(node.tensor, range(3)))


@operator_of("Cast")
def _cast(node: OnnxNode) -> Any:
    dtype = dtype_of(node.attributes["to"])
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


@operator_of("Shape")
def _shape(node: OnnxNode) -> Any:
    value = node.value(0)
    shape = [len(value)] if isinstance(value, list) else list(node.tensor(0).shape)
    return shape[node.attributes.get("start", 0) : node.attributes.get("end")]


@operator_of("Reshape")
def _reshape(node: OnnxNode) -> Any:
    x, shape = node.value(0), node.sizes(1)
    if isinstance(x, (int, torch.SymInt, list)):
        return _listed(x)[0] if shape == [] else _listed(x)
    if shape is None:
        raise UnpaddableError("its shape depends on data")
    x = node.tensor(0)
    if not node.attributes.get("allowzero"):
        shape = [x.shape[n] if _is_0(size) else size for n, size in enumerate(shape)]
    return x.reshape(shape)


def _is_0(size: Any) -> bool:
    return isinstance(size, int) and size == 0


@operator_of("Flatten")
def _flatten(node: OnnxNode) -> Any:
    x = node.tensor(0)
    axis = node.attributes.get("axis", 1)
    axis = axis + x.dim() if axis < 0 else axis
    return x.reshape(math.prod(x.shape[:axis]), math.prod(x.shape[axis:]))


@operator_of("Transpose")
def _transpose(node: OnnxNode) -> Any:
    x = node.tensor(0)
    return x.permute(node.attributes.get("perm", list(reversed(range(x.dim())))))


@operator_of("Unsqueeze")
def _unsqueeze(node: OnnxNode) -> Any:
    axes = node.given("axes", 1)
    x = node.value(0)
    if isinstance(x, (int, torch.SymInt)):
        return [x]
    x = node.tensor(0)
    rank = x.dim() + len(axes)
    for axis in sorted(axis % rank for axis in axes):
        x = x.unsqueeze(axis)
    return x


@operator_of("Squeeze")
def _squeeze(node: OnnxNode) -> Any:
    axes = node.given("axes", 1)
    x = node.value(0)
    if isinstance(x, list):
        return x[0]
    x = node.tensor(0)
    if axes is None:
        raise UnpaddableError("it does not say which axes")
    return x.squeeze([axis % x.dim() for axis in axes])


@operator_of("Concat")
def _concat(node: OnnxNode) -> Any:
    if any(isinstance(value, list) for value in node.values):
        parts = [node.sizes(number) for number in range(len(node.values))]
        if any(part is None for part in parts):
            raise UnpaddableError("it joins sizes with data")
        return [size for part in parts for size in part]
    return torch.cat([node.tensor(n) for n in range(len(node.values))], node.attributes["axis"])


@operator_of("Split")
def _split(node: OnnxNode) -> Any:
    x = node.tensor(0)
    axis = node.attributes.get("axis", 0)
    parts = node.given("split", 1)
    if parts is None and not isinstance(x.shape[axis], int):
        raise UnpaddableError("how large its parts are depends on the size")
    return tuple(x.split(parts or -(-x.shape[axis] // node.outputs), axis))


@operator_of("Slice")
def _slice(node: OnnxNode) -> Any:
    starts, ends = node.given("starts", 1), node.given("ends", 2)
    x = node.value(0)
    rank = 1 if isinstance(x, list) else node.tensor(0).dim()
    axes = node.given("axes", 3, list(range(len(starts))))
    if any(step != 1 for step in node.given("steps", 4, [1])):
        raise UnpaddableError("it leaves out elements")
    places = [slice(None)] * rank
    for axis, start, end in zip(axes, starts, ends, strict=True):
        is_open = isinstance(end, int) and end >= _OPEN_END
        places[axis % rank] = slice(start, None if is_open else end)
    return x[places[0]] if isinstance(x, list) else node.tensor(0)[tuple(places)]


@operator_of("Gather")
def _gather(node: OnnxNode) -> Any:
    x, places = node.value(0), node.sizes(1)
    if isinstance(x, list) and places is not None:
        return [x[n] for n in places] if isinstance(places, list) else x[places]
    table, indices = node.tensor(0), node.tensor(1)
    axis = node.attributes.get("axis", 0) % table.dim()
    if isinstance(places, int):
        return table.select(axis, places)
    indices = torch.where(indices < 0, indices + table.shape[axis], indices)
    if axis == 0 and table.dim() == 2:
        return functional.embedding(indices, table)
    if indices.dim() != 1:
        raise UnpaddableError("it looks up along several axes")
    return table.index_select(axis, indices)


@operator_of("Expand")
def _expand(node: OnnxNode) -> Any:
    x, shape = node.tensor(0), node.sizes(1)
    if shape is None:
        raise UnpaddableError("its shape depends on data")
    rank = max(x.dim(), len(shape))
    own = [1] * (rank - x.dim()) + list(x.shape)
    wanted = [1] * (rank - len(shape)) + shape
    is_one = [isinstance(size, int) and size == 1 for size in wanted]
    return x.expand([a if one else b for a, b, one in zip(own, wanted, is_one, strict=True)])


@operator_of("ConstantOfShape")
def _constant_of_shape(node: OnnxNode) -> Any:
    from onnx.numpy_helper import to_array

    shape = node.sizes(0)
    value = node.attributes.get("value")
    filling = np.zeros(1, "float32") if value is None else to_array(value)
    if shape is None:
        raise UnpaddableError("its shape depends on data")
    is_short = len(shape) == 1 and isinstance(shape[0], int) and shape[0] <= _MOST_SIZES
    if is_short and filling.dtype.kind in "iu":
        return filling.tolist() * shape[0]
    return torch.full(shape, filling.item(), dtype=torch.from_numpy(filling).dtype)


@operator_of("Range")
def _range(node: OnnxNode) -> Any:
    ends = [node.sizes(number) for number in range(3)]
    if any(end is None or isinstance(end, list) for end in ends):
        raise UnpaddableError("it counts as data say")
    return torch.arange(*ends)
