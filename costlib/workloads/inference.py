"""The inference pipeline: from an imported network to the functions that are tuned."""

from __future__ import annotations

from functools import reduce
from typing import Any

from costlib.hardware import make_target
from costlib.tvm_compat import relax, tirx, tvm
from costlib.workloads.folding import fold_constants
from costlib.workloads.layout import legalize_conv2d
from costlib.workloads.transposed import without_transposed_convolutions


def prepare(mod: Any, target: dict[str, Any] | Any) -> Any:
    """Bring a network into the form in which its subgraphs are tuned and compiled.

    Batch norms and operations on weights are folded, transposed convolutions with a stride
    replaced by ordinary ones, operators lowered and fused; weights that only one function reads
    are marked so that tuning may choose their layout.

    Parameters
    ----------
    mod
        A Relax ``IRModule`` with its parameters bound as constants.
    target
        A ``tvm.target.Target``, or the dictionary that describes one.

    Returns
    -------
    IRModule
        A Relax ``main`` that calls one ``PrimFunc`` for each fused subgraph.

    Raises
    ------
    TargetError
        This TVM cannot build for the target.
    """
    transform = relax.transform
    target = target if isinstance(target, tvm.target.Target) else make_target(target)
    passes = [
        transform.CanonicalizeBindings(),
        transform.DeadCodeElimination(),
        transform.DecomposeOpsForInference(),
        transform.CanonicalizeBindings(),
        transform.FoldConstant(),
        transform.LegalizeOps({"relax.nn.conv2d": legalize_conv2d}),
        transform.AnnotateTIROpPattern(),
        transform.FoldConstant(),
        transform.FuseOps(),
        transform.FuseTIR(),
        transform.DeadCodeElimination(),
        transform.AttachAttrLayoutFreeBuffers(),
    ]
    folded = without_transposed_convolutions(fold_constants(mod))
    with target, tvm.transform.PassContext(opt_level=3):
        return _without_noise(tvm.transform.Sequential(passes)(folded))


def _without_noise(mod: Any) -> Any:
    """Drop the attributes that make equal functions differ, and say nothing after fusion."""
    for name, function in mod.functions.items():
        if not isinstance(function, tirx.PrimFunc):
            continue
        noise = ["op_pattern"]
        if not function.attrs.get("layout_free_buffers", ()):
            noise.append("layout_free_buffers")
        mod.update_func(name, reduce(tirx.PrimFunc.without_attr, noise, function))
    return mod
