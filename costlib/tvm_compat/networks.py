"""Whole networks: compiled with the best programs of a database, for CPUs and for GPUs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from costlib.tvm_compat import relax, tvm
from costlib.tvm_compat.concatenations import Joining, concatenations
from costlib.tvm_compat.cuda import check_compiles, find_compiler, has_compiler, why_no_runtime
from costlib.tvm_compat.direct_calls import Direct, with_direct_calls
from costlib.tvm_compat.straight_line import tensor_bytes

_CODE_BYTES = 32 << 10
"""Of a function."""


def compile_network(
    prepared: Any,
    target: Any,
    database: Any | None,
    on_direct: Callable[[Direct], None] = lambda direct: None,
) -> Any:
    """Compile a prepared Relax module, with the best programs of a database.

    Weights whose layout a program changes are rewritten once, now. On a GPU, what has no program
    in the database gets one of TVM's default schedules: without one it does not run there. Where
    TVM has no CUDA runtime the code stays source, which is compiled where it is loaded, and here
    only to see that it can be, if there is a compiler.

    Parameters
    ----------
    prepared, target
        See :func:`costlib.workloads.prepare_network`, and the ``tvm.target.Target``.
    database
        A MetaSchedule database, if there is one.
    on_direct
        Told how the network calls its kernels, if one function calls them all.

    Returns
    -------
    module
        What ``relax.VirtualMachine`` takes and ``export_library`` writes.
    """
    is_cuda = target.kind.name == "cuda"
    if is_cuda and why_no_runtime() is None:
        find_compiler()
    with target, tvm.transform.PassContext(opt_level=3):
        joinings = concatenations(prepared)
        if database is not None:
            with database:
                prepared = relax.transform.MetaScheduleApplyDatabase()(prepared)
            layout = [
                relax.transform.SplitLayoutRewritePreproc(),
                relax.transform.FoldConstant(),
                relax.transform.DeadCodeElimination(),
            ]
            prepared = tvm.transform.Sequential(layout)(prepared)
        if target.kind.name == "llvm":
            pipeline = _with_direct_calls(target, joinings, on_direct)
        else:
            prepared, pipeline = scheduled_by_default(prepared, target), "default"
        compiled = tvm.compile(prepared, target=target, relax_pipeline=pipeline)
    if is_cuda and has_compiler():
        check_compiles(compiled.mod, target)
    return compiled


def scheduled_by_default(mod: Any, target: Any) -> Any:
    """Give each function without a schedule one of TVM's, on targets where it needs one."""
    if target.kind.name == "llvm":
        return mod
    from tvm.s_tir import dlight

    mod = tvm.IRModule(mod.functions, attrs=mod.attrs)  # TVM's pass changes what it is given.
    gpu = dlight.gpu
    rules = (gpu.Matmul, gpu.GEMV, gpu.Reduction, gpu.GeneralReduction, gpu.Fallback)
    with target:
        return dlight.ApplyDefaultSchedule(*(rule() for rule in rules))(mod)


def _with_direct_calls(
    target: Any, joinings: Mapping[str, Joining], on_direct: Callable[[Direct], None]
) -> Any:
    """Return TVM's pipeline for CPUs, but that the network calls its kernels directly."""

    def direct(mod: Any, _context: Any) -> Any:
        return with_direct_calls(mod, target, joinings, on_direct)

    transform = relax.transform
    return tvm.transform.Sequential(
        [
            relax.backend.DispatchSampling(),
            relax.backend.DispatchSortScan(),
            transform.LegalizeOps(),
            transform.RewriteDataflowReshape(),
            transform.ToNonDataflow(),
            transform.RemovePurityChecking(),
            transform.CallTIRRewrite(),
            tvm.transform.module_pass(direct, opt_level=0),
            transform.StaticPlanBlockMemory(),
            transform.LowerAllocTensor(),
            transform.KillAfterLastUse(),
            transform.LowerRuntimeBuiltin(),
            transform.ComputePrimValue(),
            transform.VMShapeLower(),
            transform.AttachGlobalSymbol(),
        ]
    )


def object_bytes(prepared: Any) -> int:
    """Return how large the object files of a Relax module become: its constants, and some code."""
    sizes: list[int] = []

    def visit(node: Any) -> None:
        if isinstance(node, tvm.ir.GenericConst):
            sizes.append(tensor_bytes(node.value.shape, str(node.value.dtype)))

    for function in prepared.functions.values():
        if isinstance(function, relax.Function):
            relax.analysis.post_order_visit(function, visit)
    return sum(sizes) + _CODE_BYTES * len(prepared.functions)
