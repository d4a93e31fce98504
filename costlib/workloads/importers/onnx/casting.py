"""Conversions between dtypes, and what depends on the bits of numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx

from costlib.tvm_compat import tirx
from costlib.workloads.importers.onnx.node import Node, Refused, converts
from costlib.workloads.importers.onnx.tensors import Tensor, computed, where

DTYPES = {
    *(f"{kind}int{bits}" for kind in ("", "u") for bits in (8, 16, 32, 64)),
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "bool",
}
"""Those that inputs and what is computed may have."""


def dtype_of(code: int) -> str:
    """Return the dtype of ONNX's code for it, if programs can compute with it."""
    name = onnx.TensorProto.DataType.Name(code).lower()
    dtype: str = {"float": "float32", "double": "float64"}.get(name, name)
    if dtype not in DTYPES:
        raise Refused(f"computes with {name}, which is not supported; use float or integers")
    return dtype


def cast(x: Tensor, dtype: str) -> Tensor:
    """Convert as ONNX Runtime does: too large integers wrap around, NaN is true."""
    if dtype == x.dtype:
        return x
    if x.dtype == "bool":
        return where(x, x.cast(dtype).like(1), 0).broadcast(x.shape)
    if x.is_float and dtype in ("int8", "uint8", "int16", "uint16"):
        x = x.cast("int32")
    elif x.is_float and dtype == "uint32":
        x = x.cast("int64")
    return x.cast(dtype)


@converts("Cast")
def _cast(node: Node) -> Tensor:
    return cast(node[0], dtype_of(node.attribute("to")))


@converts("CastLike")
def _cast_like(node: Node) -> Tensor:
    return cast(node[0], node[1].dtype)


@converts("BitCast")
def _bit_cast(node: Node) -> Tensor:
    x, dtype = node[0], dtype_of(node.attribute("to"))
    if x.dtype == "bool":
        return cast(x, "uint8").cast(dtype)
    return computed("bit_cast", x.shape, lambda data, *i: tirx.reinterpret(dtype, data[i]), x)


def known_or(default: Any, node: Node, index: int, what: str) -> Any:
    """Return the only value of an input, or a default where it is left out."""
    return default if node.get(index) is None else np.asarray(node.known(index, what)).item()
