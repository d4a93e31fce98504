"""Nodes whose inputs are all known, computed while a model is imported."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TypeProto

from costlib.errors import quoted
from costlib.workloads.importers.onnx.node import Refused

_FOLDED = """
Abs Add And ArgMax ArgMin BitShift BitwiseAnd BitwiseNot BitwiseOr BitwiseXor BlackmanWindow
Cast CastLike Ceil Clip Compress Concat Constant ConstantOfShape CumSum DequantizeLinear Div
Equal Expand EyeLike Flatten Floor Gather GatherElements GatherND Greater GreaterOrEqual
HammingWindow HannWindow Identity Less LessOrEqual Max MelWeightMatrix Min Mod Mul Neg
NonZero Not OneHot Or Pow Range Reciprocal ReduceMax ReduceMean ReduceMin ReduceProd
ReduceSum Reshape ScatterElements ScatterND Shape Sign Size Slice Split Sqrt Squeeze
StringConcat StringSplit Sub Sum Tile TopK Transpose Trilu Unique Unsqueeze Where Xor
"""

FOLDED = frozenset(_FOLDED.split())
"""Operators that onnx's reference evaluator computes, if their inputs are known."""

_LISTS = (
    onnx.AttributeProto.INTS,
    onnx.AttributeProto.FLOATS,
    onnx.AttributeProto.STRINGS,
)

_BYTES = ("int8", "uint8")

MOST_FOLDED = 1 << 27
"""Elements; larger results are computed by the program."""


def is_folded(node: onnx.NodeProto, arrays: Sequence[np.ndarray | None]) -> bool:
    """Whether a node of which all inputs are known is computed while a model is imported.

    Not what expands bytes: products are computed on them.
    """
    if node.op_type == "DequantizeLinear":
        return arrays[0] is not None and arrays[0].dtype.name not in _BYTES
    return node.op_type in FOLDED


def folded(
    node: onnx.NodeProto, arrays: Sequence[np.ndarray | None], opsets: dict[str, int]
) -> list[np.ndarray]:
    """Compute a node of which all inputs are known."""
    from onnx.reference import ReferenceEvaluator

    names = [name for name in dict.fromkeys(node.input) if name]
    imports = [onnx.helper.make_opsetid(domain, version) for domain, version in opsets.items()]
    function = onnx.helper.make_function(
        "costlib", "fold", names, list(node.output), [node], imports
    )
    feeds = {name: array for name, array in zip(node.input, arrays, strict=True) if name}
    try:
        with np.errstate(all="ignore"):
            results = ReferenceEvaluator(function).run(None, feeds, attributes={})
    except Exception as error:
        raise Refused(f"cannot be computed: {quoted(error, 0)}") from None
    return [np.asarray(result) for result in results]


def elements(kind: TypeProto | None) -> int:
    """Return how many elements an inferred tensor has, 0 where that is not known."""
    if kind is None or not kind.HasField("tensor_type") or not kind.tensor_type.HasField("shape"):
        return 0
    return math.prod(dim.dim_value for dim in kind.tensor_type.shape.dim)


def attribute_values(node: onnx.NodeProto) -> dict[str, Any]:
    """Return a node's attributes as Python values: tensors as arrays, text decoded."""
    values = {}
    for attribute in node.attribute:
        value = onnx.helper.get_attribute_value(attribute)
        if isinstance(value, onnx.TensorProto):
            value = onnx.numpy_helper.to_array(value)
        elif isinstance(value, bytes):
            value = value.decode(errors="replace")
        elif isinstance(value, (list, tuple)) or attribute.type in _LISTS:
            value = [v.decode(errors="replace") if isinstance(v, bytes) else v for v in value]
        values[attribute.name] = value
    return values
