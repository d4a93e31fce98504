"""ONNX's operators that lay elements out, look them up or make them, in PyTorch."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from costlib.workloads.ranges.labels import UnpaddableError
from costlib.workloads.ranges.onnx_node import MOST_SIZES, OnnxNode, listed, operator_of

_OPEN_END = 1 << 31
"""From here on a slice goes to the end."""


@operator_of("Shape")
def _shape(node: OnnxNode) -> Any:
    value = node.value(0)
    shape = [len(value)] if isinstance(value, list) else list(node.tensor(0).shape)
    return shape[node.attributes.get("start", 0) : node.attributes.get("end")]


@operator_of("Reshape")
def _reshape(node: OnnxNode) -> Any:
    x, shape = node.value(0), node.sizes(1)
    if isinstance(x, (int, torch.SymInt, list)):
        return listed(x)[0] if shape == [] else listed(x)
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
    is_short = len(shape) == 1 and isinstance(shape[0], int) and shape[0] <= MOST_SIZES
    if is_short and filling.dtype.kind in "iu":
        return filling.tolist() * shape[0]
    return torch.full(shape, filling.item(), dtype=torch.from_numpy(filling).dtype)


@operator_of("Range")
def _range(node: OnnxNode) -> Any:
    ends = [node.sizes(number) for number in range(3)]
    if any(end is None or isinstance(end, list) for end in ends):
        raise UnpaddableError("it counts as data say")
    return torch.arange(*ends)
