"""What is done to every program for a CPU between its schedule and machine code.

TVM's pipeline makes plain loops over flat buffers of blocks, and vectors of some of them. Between
the two a program is easy to read and to change. What TVM does until then is done here first; its
pipeline does not mind to find it done.
"""

from __future__ import annotations

from typing import Any

import tvm
from tvm import s_tir, tirx

from costlib.tvm_compat.odd_vectors import marked, with_whole_loads
from costlib.tvm_compat.pipeline import install_passes
from costlib.tvm_compat.prefetching import with_prefetches
from costlib.tvm_compat.vector_reductions import with_vector_reductions


def install() -> None:
    """Let every program that is compiled for a CPU from now on be changed so."""
    install_passes(before=[_changed], after=[_vectors_changed])


@tvm.transform.module_pass(opt_level=0)  # type: ignore[untyped-decorator]
def _changed(mod: Any, _context: Any) -> Any:
    functions = [one for one in mod.functions.values() if isinstance(one, tirx.PrimFunc)]
    targets = [function.attrs.get("target") for function in functions]
    if any(target is None or target.kind.name != "llvm" for target in targets):
        return mod
    changed = {}
    for variable, function in _as_loops()(mod).functions.items():
        if isinstance(function, tirx.PrimFunc):
            other = marked(with_prefetches(with_vector_reductions(function)))
            if not other.same_as(function):
                changed[variable] = other
    mod = tvm.IRModule(mod.functions, attrs=mod.attrs)
    mod.update(tvm.IRModule(changed))
    return mod


@tirx.transform.prim_func_pass(opt_level=0)  # type: ignore[untyped-decorator]
def _vectors_changed(function: Any, _mod: Any, _context: Any) -> Any:
    return with_whole_loads(function)


def _as_loops() -> Any:
    passes = s_tir.transform
    return tvm.ir.transform.Sequential(
        [
            passes.CanonicalizeLoop(),
            passes.LowerCrossThreadReduction(),
            passes.LowerInitBlock(),
            passes.PlanAndUpdateBufferAllocationLocation(),
            passes.ConvertBlocksToOpaque(),
            passes.CompactBufferAllocation(),
            passes.LowerMatchBuffer(),
            passes.LowerOpaqueBlock(),
            tirx.transform.FlattenBuffer(),
            tirx.transform.StmtSimplify(),
        ]
    )
