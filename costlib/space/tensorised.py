"""Sketches whose innermost loops are an instruction of the processor, and what TVM needs for them.

TVM has rules for products of 8 bits; those for bfloat16 and for AMX's tiles are ours. They fit
tasks whose weights are packed for the instruction, see :mod:`costlib.workloads.packed_products`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tvm.s_tir.schedule.transform import tile_with_tensor_intrin

from costlib.processor import has_instructions
from costlib.tvm_compat import ms, nodes, tirx
from costlib.tvm_compat.api import derived_object
from costlib.tvm_compat.intrinsics import BF16
from costlib.tvm_compat.tiles import TILES

_INTRINSIC = "meta_schedule.auto_tensorize"
"""The annotation of a block that is to become an instruction."""

_INTRINSIC_BEFORE = "meta_schedule.auto_tensorize_init"
"""The same of the block that sets its sums to zero."""

_TILED = "meta_schedule.tiling_structure"
_STRUCTURE = "SSRSRS"
"""Of loops: spatial ones and those of reductions, from the outermost to the innermost."""

_MAKES_BLOCKS = "Blockize"
"""The step without which there is none."""


def rules_for_products(rules: list[Any], dtypes: set[str], target: dict[str, Any]) -> list[Any]:
    """Add rules for products of few bits to a target's schedule rules: AMX's, and AVX512-BF16's.

    Parameters
    ----------
    rules
        TVM's, which know VNNI.
    dtypes
        Of what a task takes.
    target
        As a dictionary; AMX is used where it is asked for beside the processor.
    """
    ours = [
        _OnTiles(tiles.name, tiles.zero)
        for tiles in TILES
        if {tiles.left, tiles.right} <= dtypes and f"+{tiles.feature}" in target.get("mattr", ())
    ]
    if "bfloat16" in dtypes and has_instructions(target, "avx512bf16"):
        ours.append(ms.schedule_rule.MultiLevelTilingWithIntrin(BF16, **_tiling()))
    if not ours:
        return rules
    names = [type(rule).__name__ for rule in rules]
    place = min(names.index(name) for name in names if name.startswith("MultiLevelTiling"))
    return [*rules[:place], *ours, *rules[place:]]


def _tiling() -> dict[str, Any]:
    return {
        "structure": _STRUCTURE,
        "tile_binds": None,
        "max_innermost_factor": 64,
        "vector_load_lens": None,
        "reuse_read": None,
        "reuse_write": ms.schedule_rule.ReuseType(req="may", levels=[1, 2], scope="global"),
    }


@derived_object
class _OnTiles(ms.schedule_rule.PyScheduleRule):  # type: ignore[misc]
    """Tiles a product around an intrinsic whose operands TVM's own rule does not recognise.

    That takes a variable for each axis of an operand, where rows of tiles have two.
    """

    def __init__(self, name: str, zero: str) -> None:
        super().__init__()
        self.name, self.zero = name, zero
        self.tiling = ms.schedule_rule.MultiLevelTiling(**_tiling())

    def _initialize_with_tune_context(self, context: Any) -> None:
        self.tiling._initialize_with_tune_context(context)

    def apply(self, schedule: Any, block: Any) -> list[Any]:
        """Return the sketches of a block; the schedule as it is if the intrinsic does not fit."""
        tried = schedule.copy()
        try:
            loop = tile_with_tensor_intrin(tried, block, self.name)
            if loop is None:
                return [schedule]
            tried.decompose_reduction(block, tried.get_loops(block)[0])
            tried.tensorize(loop, self.name)
        except Exception:  # Of several kinds: whatever it is, the intrinsic does not fit.
            return [schedule]
        tiled = schedule.copy()
        whole = tiled.blockize(tile_with_tensor_intrin(tiled, block, self.name))
        tiled.annotate(whole, _INTRINSIC, self.name)
        tiled.annotate(whole, _INTRINSIC_BEFORE, self.zero)
        tiled.annotate(block, _TILED, _STRUCTURE)  # Other rules leave such a block alone.
        return list(self.tiling.apply(tiled, whole))

    def clone(self) -> Any:
        """Return another one."""
        return _OnTiles(self.name, self.zero)


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
