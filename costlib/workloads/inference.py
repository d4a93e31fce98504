"""The inference pipeline: from an imported network to the functions that are tuned."""

from __future__ import annotations

from functools import partial, reduce
from typing import Any

from costlib.errors import CostlibError, UnsupportedModelError, quoted
from costlib.hardware import Hardware
from costlib.tvm_compat import relax, tirx, tvm
from costlib.tvm_compat.rewriting import without_argument_names
from costlib.workloads.attention import with_attention
from costlib.workloads.behind_products import moved_behind_products
from costlib.workloads.filled_vectors import with_filled_vectors
from costlib.workloads.grouped_sums import with_grouped_sums
from costlib.workloads.half_precision import (
    allowing_tf32,
    check_half,
    with_half_products,
    with_rounded_products,
)
from costlib.workloads.importers.primitive import with_root
from costlib.workloads.interface import with_interface
from costlib.workloads.joined import joined_products
from costlib.workloads.layout import decomposed, legalize_conv2d
from costlib.workloads.looked_up import legalize_take
from costlib.workloads.means import legalize_mean
from costlib.workloads.network import Network
from costlib.workloads.norms import with_norms
from costlib.workloads.packed_products import with_packed_products
from costlib.workloads.phased import with_phases
from costlib.workloads.repeated_codes import without_repeated_codes
from costlib.workloads.rounded_first import rounded_first
from costlib.workloads.scales import with_scales_as_arguments
from costlib.workloads.small_weights import with_rounded_weights, with_small_weights
from costlib.workloads.views import products_through_views
from costlib.workloads.winograd_fusion import with_what_follows


def prepare_network(
    network: Network, hardware: Hardware | None = None, *, in_float: bool = False
) -> Any:
    """Bring a network into the form in which its subgraphs are tuned and compiled.

    Batch norms and operations on weights are folded, transposed convolutions with a stride
    replaced by ordinary ones, operators lowered and fused; weights that only one function reads
    are marked so that tuning may choose their layout.

    Parameters
    ----------
    network
        What :func:`costlib.workloads.load_network` returns.
    hardware
        What to prepare it for; this machine by default.
    in_float
        Whether what the network keeps or multiplies in fewer bits is only rounded to these, and
        computed in float32: what such a network is held against.

    Returns
    -------
    IRModule
        A Relax ``main`` that calls one ``PrimFunc`` for each fused subgraph, which are those of
        the tasks that :func:`costlib.workloads.extract_tasks` lists: what was tuned for them can
        be applied to it and compiled.

    Raises
    ------
    TargetError
        This TVM cannot build for the hardware, or the hardware cannot compute in the network's
        type.
    UnsupportedModelError
        TVM has no program for an operator.
    """
    transform = relax.transform
    passes = [
        transform.DeadCodeElimination(),
        transform.FoldConstant(),
        transform.LegalizeOps(
            {
                "relax.mean": legalize_mean,
                "relax.nn.conv2d": legalize_conv2d,
                "relax.take": legalize_take,
            }
        ),
        _anonymous,
        transform.AnnotateTIROpPattern(),
        transform.FoldConstant(),
        transform.FuseOps(),
        transform.FuseTIR(),
        with_what_follows,
        transform.DeadCodeElimination(),
        transform.AttachAttrLayoutFreeBuffers(),
    ]
    hardware = hardware or Hardware.local()
    if network.dtype is not None and not in_float:
        check_half(network.dtype, hardware.target)
    small = with_rounded_weights if in_float else with_small_weights
    half = with_rounded_products if in_float else with_half_products
    with hardware.tvm_target(), tvm.transform.PassContext(opt_level=3):
        try:
            plain = with_phases(decomposed(network.mod))
            if _is_one_dataflow(plain):  # What is moved must be known where it is moved to.
                moved = partial(moved_behind_products, rounding=network.precision == "int8")
                if network.precision == "int8":
                    plain = rounded_first(_cleaned(without_repeated_codes(_cleaned(plain))))
                for rewrite in (with_norms, moved, joined_products):
                    plain = rewrite(_cleaned(plain))
                plain = with_attention(_cleaned(plain), hardware)
                plain = products_through_views(_cleaned(plain))
            if network.weights is not None:
                plain = small(_cleaned(plain), network.weights)
            if network.dtype is not None:
                plain = half(_cleaned(plain), network.dtype)
            plain = with_grouped_sums(_cleaned(plain), hardware)
            plain = with_packed_products(_cleaned(plain), hardware.target)
            plain = with_filled_vectors(_cleaned(plain), hardware)
            if network.precision == "int8":
                plain = with_scales_as_arguments(plain)
            prepared = _without_noise(tvm.transform.Sequential(passes)(plain))
            if network.dtype == "tf32" and not in_float:
                prepared = allowing_tf32(prepared)
        except (CostlibError, MemoryError):
            raise
        except Exception as error:
            raise UnsupportedModelError(
                f"{network.name}: TVM cannot lower it: {quoted(error)}"
            ) from None
    return with_interface(prepared, network)


def _is_one_dataflow(mod: Any) -> bool:
    """Whether each Relax function is a single dataflow block: no branches, nothing before it."""
    bodies = [f.body.blocks for f in mod.functions.values() if isinstance(f, relax.Function)]
    return all(len(b) == 1 and isinstance(b[0], relax.DataflowBlock) for b in bodies)


def _cleaned(mod: Any) -> Any:
    transform = relax.transform
    passes = [transform.CanonicalizeBindings(), transform.DeadCodeElimination()]
    return tvm.transform.Sequential(passes)(mod)


@tvm.transform.module_pass(opt_level=0)  # type: ignore[untyped-decorator]
def _anonymous(mod: Any, _context: Any) -> Any:
    """Drop the names of arguments from those of blocks, by which tasks would differ."""
    result = tvm.IRModule(mod.functions, attrs=mod.attrs)
    for name, function in mod.functions.items():
        if isinstance(function, tirx.PrimFunc):
            result.update_func(name, without_argument_names(function))
    return result


def _without_noise(mod: Any) -> Any:
    """Drop the attributes that make equal functions differ, and say nothing after fusion."""
    for name, function in mod.functions.items():
        if not isinstance(function, tirx.PrimFunc):
            continue
        noise = ["op_pattern"]
        if not function.attrs.get("layout_free_buffers", ()):
            noise.append("layout_free_buffers")
        plain = reduce(tirx.PrimFunc.without_attr, noise, function)
        mod.update_func(name, with_root(plain))
    return mod
