"""Networks with channels last: NHWC, which CPUs often like better than the NCHW of PyTorch.

Convolutions, and with them everything between them that does not care, are converted; what comes
in and goes out keeps its layout.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from costlib.tvm_compat import relax, tvm
from costlib.workloads.network import Network

CHANNELS_LAST = "+nhwc"
"""What is appended to a network's name to mean this."""

_LAYOUTS = {"relax.nn.conv2d": ["NHWC", "OHWI"]}


def in_channels_last(network: Network) -> Network:
    """Convert a network; its name says so."""
    name = network.name + CHANNELS_LAST
    return replace(network, name=name, mod=channels_last(network.mod))


def has_channels_first(mod: Any) -> bool:
    """Whether a Relax module has 2-D convolutions in NCHW."""
    found = []

    def visit(node: Any) -> None:
        is_call = isinstance(node, relax.Call) and isinstance(node.op, tvm.ir.Op)
        if is_call and node.op.name in _LAYOUTS:
            found.append(str(node.attrs.data_layout) == "NCHW")

    for function in mod.functions.values():
        if isinstance(function, relax.Function):
            relax.analysis.post_order_visit(function.body, visit)
    return any(found)


def channels_last(mod: Any) -> Any:
    """Convert the 2-D convolutions of a Relax module to NHWC.

    Parameters
    ----------
    mod
        An imported ``IRModule`` with its parameters bound as constants.

    Returns
    -------
    IRModule
        It computes the same.
    """
    transform = relax.transform
    before = [
        transform.CanonicalizeBindings(),
        transform.DeadCodeElimination(),
        transform.DecomposeOpsForInference(),
        transform.CanonicalizeBindings(),
    ]
    after = [
        transform.Normalize(),
        transform.ConvertLayout(_LAYOUTS),
        transform.Normalize(),
        transform.CanonicalizeBindings(),
        transform.DeadCodeElimination(),
    ]
    with tvm.transform.PassContext(opt_level=3):
        decomposed = tvm.transform.Sequential(before)(mod)
        return tvm.transform.Sequential(after)(_without_clip(decomposed))


def _without_clip(mod: Any) -> Any:
    """Write clips as maximum and minimum, which TVM knows to carry over to another layout."""

    @relax.expr_functor.mutator
    class Rewriter(relax.PyExprMutator):  # type: ignore[misc]
        def visit_call_(self, call: Any) -> Any:
            call = super().visit_call_(call)
            if not isinstance(call.op, tvm.ir.Op) or call.op.name != "relax.clip":
                return call
            x, low, high = call.args
            dtype = str(x.ty.dtype)
            for operator, bound in ((relax.op.maximum, low), (relax.op.minimum, high)):
                limit = relax.const(float(bound.value), dtype)
                x = self.builder_.normalize(operator(x, limit))
            return x

    rewriter = Rewriter(mod)
    for name, function in mod.functions.items():
        if isinstance(function, relax.Function):
            rewriter.builder_.update_func(name, rewriter.visit_expr(function))
    return rewriter.builder_.get()
