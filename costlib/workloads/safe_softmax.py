"""Softmax that is 0 where all is minus infinity, as in a row that attention masks entirely."""

from __future__ import annotations

from typing import Any

import numpy as np

from costlib.tvm_compat import te, tirx, topi
from costlib.tvm_compat.rewriting import are_alike

TINY = float(np.finfo("float32").tiny)
"""What is added up is at least that."""


def safe_softmax(x: Any, axis: int) -> Any:
    """Compute it of a tensor of TE."""
    dtype = str(x.dtype)
    largest = topi.maximum(topi.max(x, axis=axis, keepdims=True), te.min_value(dtype))
    powers = topi.exp(topi.subtract(x, largest))
    total = topi.sum(powers, axis=axis, keepdims=True)
    return topi.divide(powers, topi.maximum(total, tirx.const(TINY, dtype)))


def is_safe_softmax(function: Any) -> bool:
    """Whether a ``PrimFunc`` of one tensor of floats computes that alone, over the last axis."""
    parameter = function.params[0]
    x = te.placeholder(parameter.shape, str(parameter.dtype))
    other = te.create_prim_func([x, safe_softmax(x, -1)], index_dtype_override="int64")
    return are_alike(function, other)
