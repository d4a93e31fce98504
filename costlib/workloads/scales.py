"""Scales and zero points as arguments of kernels, so that layers share what is tuned for one.

TVM writes numbers into its kernels. Those by which a quantised network scales and moves differ from
layer to layer, and with them written into it each layer would be a task of its own.
"""

from __future__ import annotations

from typing import Any

from costlib.tvm_compat import relax, tvm
from costlib.workloads.folding import constant_of, rewritten, static_type

_SCALED_BY = {f"relax.{name}" for name in ("add", "divide", "multiply", "subtract")}
_DTYPES = ("float32", "int32")


def with_scales_as_arguments(mod: Any) -> Any:
    """Turn the numbers that tensors are scaled and moved by in a Relax module into tensors."""
    return rewritten(mod, lambda _: _Rewriter())


@relax.expr_functor.mutator
class _Rewriter(relax.PyExprMutator):  # type: ignore[misc]
    def visit_call_(self, call: Any) -> Any:
        shape, dtype = static_type(call)
        call = self.visit_expr_post_order(call)
        if not shape or dtype not in _DTYPES or getattr(call.op, "name", "") not in _SCALED_BY:
            return call
        return relax.Call(call.op, [_as_tensor(argument) for argument in call.args], call.attrs)


def _as_tensor(argument: Any) -> Any:
    """Give a number, as TVM knows it by its shape, an axis."""
    if not isinstance(argument, tvm.ir.GenericConst) or static_type(argument)[0] != ():
        return argument
    return constant_of(argument.value.numpy().reshape(1))
