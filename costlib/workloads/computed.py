"""Kernels that networks call for products whose weights are kept in another way."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from costlib.tvm_compat import relax, te
from costlib.workloads.folding import static_type

FUSED_WITH_WHAT_FOLLOWS = 4
"""TVM's kOutEWiseFusable, which products are."""


def call_computed(
    builder: Any, name: str, compute: Callable[..., Any], arguments: Sequence[Any]
) -> Any:
    """Add a kernel to a module, and return a call of it.

    Parameters
    ----------
    builder
        A block builder of the module.
    name
        What to call it.
    compute
        Takes a tensor of TE for each argument and returns the result; what comes after it in the
        network may be fused into it.
    arguments
        Tensors of Relax whose shapes are static.
    """
    inputs = [te.placeholder(*static_type(argument)) for argument in arguments]
    result = compute(*inputs)
    kernel = te.create_prim_func([*inputs, result], index_dtype_override="int64")
    kernel = kernel.with_attr("op_pattern", FUSED_WITH_WHAT_FOLLOWS)
    function = builder.add_func(kernel.without_attr("global_symbol"), name)
    shape = [int(extent) for extent in result.shape]
    return relax.call_tir(function, list(arguments), relax.TensorType(shape, str(result.dtype)))


def cut(whole: Any, shape: Sequence[int]) -> Any:
    """Keep of a tensor of TE what is wanted of its last axis."""
    if int(whole.shape[-1]) == shape[-1]:
        return whole
    return te.compute(shape, whole, name="cut")
