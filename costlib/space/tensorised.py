"""Sketches whose innermost loops are an instruction of the processor, and what TVM needs for them.

TVM has rules for products of 8 bits, and on a GPU of float16; those for bfloat16 and TF32 are ours.
On a CPU they fit tasks whose weights are packed for the instruction, see
:mod:`costlib.workloads.packed_products`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from costlib.processor import has_instructions
from costlib.tvm_compat import ms, nodes, tirx, wmma
from costlib.tvm_compat.intrinsics import BF16
from costlib.workloads.half_precision import TF32, has_tf32
from costlib.workloads.task import Task

_INTRINSIC = "meta_schedule.auto_tensorize"
"""The annotation of a block that is to become an instruction."""

_MAKES_BLOCKS = "Blockize"
"""The step without which there is none."""


def instructions_of(task: Task) -> str | None:
    """Return what is multiplied by instructions that TVM has no rule for; ``None`` if nothing."""
    if any(dtype == "bfloat16" for dtype, _ in task.arguments):
        return "bfloat16"
    if has_tf32(task.target) and TF32 in (task.mod["main"].attrs or {}):
        return "float32"
    return None


def rules_with(dtype: str, rules: list[Any], target: dict[str, Any]) -> list[Any]:
    """Add a rule for products of a type to a target's schedule rules, if it has instructions."""
    if has_tf32(target):
        groups = [wmma.group(dtype, transposed=either) for either in (False, True)]
        return [_on_tensor_cores(groups), *rules]
    if dtype != "bfloat16" or not has_instructions(target, "avx512bf16"):
        return rules
    place = [type(rule).__name__ for rule in rules].index("MultiLevelTiling")
    rule = ms.schedule_rule.MultiLevelTilingWithIntrin(
        BF16,
        structure="SSRSRS",
        tile_binds=None,
        max_innermost_factor=64,
        vector_load_lens=None,
        reuse_read=None,
        reuse_write=ms.schedule_rule.ReuseType(req="may", levels=[1, 2], scope="global"),
    )
    return [*rules[:place], rule, *rules[place:]]


def _on_tensor_cores(groups: list[dict[str, str]]) -> Any:
    """Tile a product as TVM's own rules for tensor cores do."""
    reuse = ms.schedule_rule.ReuseType
    return ms.schedule_rule.MultiLevelTilingTensorCore(
        intrin_groups=groups,
        structure="SSSRRSRS",
        tile_binds=["blockIdx.y", "blockIdx.x", "threadIdx.y"],
        max_innermost_factor=4,
        vector_load_lens=[1, 2, 4, 8],  # TVM writes no code for an odd number of bfloat16.
        reuse_read=reuse(req="must", levels=[4], scope=wmma.SHARED),
        reuse_write=reuse(req="must", levels=[2], scope=wmma.SHARED),
        use_software_pipeline=False,
    )


def keep_instructions_whole(schedule: Any) -> None:
    """Keep TVM from vectorising the loop around an instruction, which is a vector already.

    It takes the innermost loops if they are spatial; a reduction loop of one step, which tiling
    leaves behind, is made the innermost.

    Parameters
    ----------
    schedule
        A ``tvm.s_tir.Schedule`` to which ``RewriteParallelVectorizeUnroll`` is yet to be applied.
    """
    if not any(str(step.kind.name) == _MAKES_BLOCKS for step in schedule.trace.insts):
        return
    for realize in list(_instructions(schedule.mod["main"].body)):
        block = schedule.get_sblock(str(realize.block.name_hint), func_name="main")
        loops = schedule.get_loops(block)
        for place in reversed(range(len(loops) - 1)):
            loop = schedule.get(loops[place])
            if _is_one(loop.extent) and loop.loop_var in _reduced(realize):
                schedule.reorder(*loops[place + 1 :], loops[place])
                break


def _instructions(node: Any) -> Iterator[Any]:
    if isinstance(node, nodes.For):
        yield from _instructions(node.body)
    elif isinstance(node, nodes.SeqStmt):
        for part in node.seq:
            yield from _instructions(part)
    elif isinstance(node, nodes.SBlockRealize):
        if node.block.annotations.get(_INTRINSIC, ""):
            yield node
        else:
            yield from _instructions(node.block.body)
    elif isinstance(node, nodes.IfThenElse):
        yield from _instructions(node.then_case)


def _reduced(realize: Any) -> set[Any]:
    """Return the loop variables that the reduction axes of a block depend on."""
    return {
        variable
        for axis, value in zip(realize.block.iter_vars, realize.iter_values, strict=True)
        if int(axis.iter_type) == tirx.IterVar.CommReduce
        for variable in tirx.analysis.undefined_vars(value)
    }


def _is_one(extent: Any) -> bool:
    return isinstance(extent, nodes.IntImm) and int(extent) == 1
