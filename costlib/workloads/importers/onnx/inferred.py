"""What ONNX itself says about a node: whether it is valid, what comes out of it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
from onnx import TensorProto, TypeProto

from costlib.errors import quoted
from costlib.workloads.importers.onnx.node import Refused, Value
from costlib.workloads.importers.onnx.tensors import Tensor

_MOST_KNOWN = 1024

_ROUNDED = ("AveragePool", "LpPool", "MaxPool")
"""Before opset 22 ONNX counts windows that start in the padding, which nobody computes."""

_SCALED = ("Resize", "Upsample")
"""ONNX takes the product of extent and scale in double precision, so that 0.7 of 10 is 6."""


def type_of(value: Value) -> TypeProto:
    """Return ONNX's type of a value."""
    if isinstance(value, list):
        element = type_of(value[0]) if value else onnx.helper.make_tensor_type_proto(1, None)
        return onnx.helper.make_sequence_type_proto(element)
    assert value is not None
    return onnx.helper.make_tensor_type_proto(code_of(value), value.shape)


def code_of(x: Tensor) -> int:
    """Return ONNX's number for a tensor's dtype."""
    if x.array is not None and x.array.dtype.kind in "OUS":
        return int(TensorProto.STRING)
    if x.dtype == "bfloat16":
        return int(TensorProto.BFLOAT16)
    dtype = x.array.dtype if x.array is not None else np.dtype(x.dtype)
    return int(onnx.helper.np_dtype_to_tensor_dtype(dtype))


def inferred(
    node: onnx.NodeProto, values: Sequence[Value], opsets: dict[str, int]
) -> dict[str, TypeProto]:
    """Return the types of a node's outputs, as far as ONNX infers them."""
    try:
        schema = onnx.defs.get_schema(node.op_type, opsets.get(node.domain, 1), node.domain)
    except onnx.defs.SchemaError:
        return {}
    pairs = [(n, v) for n, v in zip(node.input, values, strict=True) if n and v is not None]
    types = {name: type_of(value) for name, value in pairs}
    data = {
        name: onnx.numpy_helper.from_array(value.array, name)
        for name, value in pairs
        if isinstance(value, Tensor)
        and value.array is not None
        and value.array.size <= _MOST_KNOWN
        and value.array.dtype.kind in "iub"
    }
    data |= {
        name: onnx.numpy_helper.from_array(np.ascontiguousarray(value.array), name)
        for name, value in pairs
        if isinstance(value, Tensor)
        and value.array is not None
        and value.array.dtype in (np.float32, np.float64)
        and value.array.size <= _MOST_KNOWN
    }
    imports = [onnx.helper.make_opsetid(domain, version) for domain, version in opsets.items()]
    try:
        found: dict[str, TypeProto] = onnx.shape_inference.infer_node_outputs(
            schema, node, types, data, None, imports
        )
    except onnx.shape_inference.InferenceError as error:
        text = quoted(error, 0).rpartition("] ")[2]
        raise Refused(f"is not valid here: {text}") from None
    is_rounded = any(a.name == "ceil_mode" and a.i for a in node.attribute)
    if (node.op_type in _ROUNDED and is_rounded) or node.op_type in _SCALED:
        for kind in found.values():
            kind.tensor_type.ClearField("shape")
    return found


def disagreement(expected: TypeProto | None, value: Value) -> str | None:
    """Say how a value is not what ONNX infers, or None if it is."""
    if expected is None or not isinstance(value, Tensor) or not expected.HasField("tensor_type"):
        return None
    kind = expected.tensor_type
    if kind.elem_type and kind.elem_type != code_of(value):
        name = TensorProto.DataType.Name(kind.elem_type).lower()
        return f"gives {value.dtype}, not {name}"
    if not kind.HasField("shape"):
        return None
    extents = [dim.dim_value if dim.HasField("dim_value") else None for dim in kind.shape.dim]
    if len(extents) != value.ndim or any(
        n is not None and n != m for n, m in zip(extents, value.shape, strict=True)
    ):
        return f"gives the shape {list(value.shape)}, not {extents}"
    return None
