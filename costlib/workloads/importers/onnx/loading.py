"""Reading and checking ONNX files, whose content anyone may have written."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from google.protobuf.message import DecodeError
from onnx.external_data_helper import load_external_data_for_model, uses_external_data

from costlib.errors import InputError, quoted

_LARGE = 1 << 16
"""Bytes of a tensor that is left out while the rest is checked."""

_MISPLACED = {"SimplifiedLayerNormalization"}
"""Operators that ONNX Runtime adds to those of ONNX itself."""


def load_model(path: Path) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """Read a model, and the tensors kept in files beside it.

    Returns
    -------
    model, weights
        The model, and those of its initializers that it refers to, which may be larger than what a
        message can hold.

    Raises
    ------
    InputError
        It is no valid ONNX model, or its data are elsewhere than in its folder.
    """
    try:
        model = onnx.load(str(path), load_external_data=False)
    except (DecodeError, ValueError, OSError) as error:
        raise InputError(f"{path}: not a valid ONNX model: {quoted(error, 0)}") from None
    check_model(model, str(path))
    try:
        return model, _weights_beside(model, str(path.parent))
    except Exception as error:
        raise InputError(f"{path}: the data beside it cannot be read: {quoted(error, 0)}") from None


def _weights_beside(model: onnx.ModelProto, folder: str) -> dict[str, np.ndarray]:
    """Read initializers from other files, and put other tensors from there into the model."""
    referring = [tensor for tensor in model.graph.initializer if uses_external_data(tensor)]
    within = [tensor for tensor in model.graph.initializer if not uses_external_data(tensor)]
    del model.graph.initializer[:]
    load_external_data_for_model(model, folder)
    model.graph.initializer.extend([*within, *referring])
    return {tensor.name: onnx.numpy_helper.to_array(tensor, folder) for tensor in referring}


def check_model(model: onnx.ModelProto, name: str) -> None:
    """Raise ``InputError`` unless a model is valid, its large tensors aside.

    Outputs without a type or shape, which ONNX Runtime takes, are valid.
    """
    try:
        onnx.checker.check_model(_skeleton(model))
    except Exception as error:
        raise InputError(f"{name}: not a valid ONNX model: {quoted(error, 0)}") from None


def _skeleton(model: onnx.ModelProto) -> onnx.ModelProto:
    """Copy a model, its large tensors replaced by inputs, so that no size is too large."""
    graph = _copied(model.graph, without="initializer")
    inputs = {value.name for value in graph.input}
    for tensor in model.graph.initializer:
        if not uses_external_data(tensor) and tensor.ByteSize() <= _LARGE:
            graph.initializer.append(tensor)
        elif tensor.name not in inputs:
            kind = onnx.helper.make_tensor_type_proto(tensor.data_type, tensor.dims)
            graph.input.append(onnx.helper.make_value_info(tensor.name, kind))
    for node in graph.node:
        if node.op_type in _MISPLACED and not node.domain:
            node.domain = "com.microsoft"
    for value in _shapeless(graph):
        kind = value.type.tensor_type
        kind.elem_type = kind.elem_type or onnx.TensorProto.FLOAT
        kind.shape.SetInParent()
    skeleton = _copied(model, without="graph")
    skeleton.graph.CopyFrom(graph)
    return skeleton


def _copied(message: Any, without: str) -> Any:
    """Copy a message without one of its fields."""
    copy = type(message)()
    for field, value in message.ListFields():
        if field.name == without:
            continue
        if field.is_repeated:
            getattr(copy, field.name).extend(value)
        elif field.type == field.TYPE_MESSAGE:
            getattr(copy, field.name).CopyFrom(value)
        else:
            setattr(copy, field.name, value)
    return copy


def _shapeless(graph: onnx.GraphProto) -> Iterator[onnx.ValueInfoProto]:
    for value in [*graph.output, *graph.value_info]:
        kind = value.type.WhichOneof("value")
        if kind is None or (
            kind == "tensor_type"
            and not (value.type.tensor_type.HasField("shape") and value.type.tensor_type.elem_type)
        ):
            yield value
