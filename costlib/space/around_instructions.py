"""What becomes of the loops around instructions, and of what is fused behind them.

TVM's postprocessors know loops of single numbers; see :mod:`costlib.space.tensorised` for the
sketches.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from costlib.space.tensorised import INTRINSIC
from costlib.tvm_compat import nodes, tirx, tvm
from costlib.tvm_compat.intrinsics import ARM_NEON, ARM_SDOT, ARM_USDOT, AVX512, BF16, VNNI

_MAKES_BLOCKS = "Blockize"
"""The step without which there is none."""

_VECTORS = (64, 48, 32, 16)
"""Steps of a loop that TVM turns into vectors."""

_UNROLLED = "pragma_auto_unroll_max_step"
_MOST_UNROLLED = 2048
"""Operations of vectors that are written out one after the other."""

_OF_VECTORS = {BF16, VNNI, AVX512, ARM_SDOT, ARM_NEON, ARM_USDOT}
"""Instructions that add to a vector of sums, in one of 32 registers."""

_MOST_SUMS = 28
"""Vectors of them; what is multiplied needs registers, too."""


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


def has_sums_in_memory(schedule: Any) -> bool:
    """Whether an instruction adds to more vectors of sums than registers hold.

    It loads and stores them each time, and takes several times as long.

    Parameters
    ----------
    schedule
        As for :func:`keep_instructions_whole`, after it.
    """
    return any(
        str(realize.block.annotations[INTRINSIC]) in _OF_VECTORS
        and _sums_at_once(schedule, realize) > _MOST_SUMS
        for realize in _instructions(schedule.mod["main"].body)
    )


def _sums_at_once(schedule: Any, realize: Any) -> int:
    """Count what is added to in turn: all spatial loops within the innermost one that reduces."""
    block = schedule.get_sblock(str(realize.block.name_hint), func_name="main")
    reduced, sums = _reduced(realize), 1
    for loop in map(schedule.get, reversed(schedule.get_loops(block))):
        if _is_one(loop.extent):
            continue
        if loop.loop_var in reduced:
            return sums
        sums *= int(loop.extent)
    return 1


def make_instructions(schedule: Any) -> bool:
    """Make the blocks that are to become instructions so, and tell whether all fit.

    ``RewriteTensorize`` does the same, but warns on stderr of one that does not fit, and goes on
    with loops.

    Parameters
    ----------
    schedule
        One to which ``RewriteTensorize`` is yet to be applied.
    """
    wanted = [
        (str(realize.block.name_hint), str(realize.block.annotations[INTRINSIC]))
        for realize in _instructions(schedule.mod["main"].body)
    ]
    for name, intrinsic in wanted:
        block = schedule.get_sblock(name, func_name="main")
        schedule.unannotate(block, INTRINSIC)
        try:
            schedule.tensorize(block, intrinsic)
        except tvm.s_tir.ScheduleError:
            return False
    return True


def let_what_follows_be_vectors(schedule: Any) -> None:
    """Split long innermost loops of what is fused behind an instruction, in multiples of a vector.

    TVM vectorises none of more than 64 steps, and unrolls it instead: hundreds of copies, one
    number each, of all that rounds and scales in a quantised network.

    Parameters
    ----------
    schedule
        As for :func:`keep_instructions_whole`.
    """
    for found in _elementwise_beside_instructions(schedule):
        loops = schedule.get_loops(schedule.get_sblock(found.name, func_name="main"))
        extent = found.loops[-1].extent if found.loops else None
        if isinstance(extent, nodes.IntImm) and int(extent) > max(_VECTORS):
            lanes = next((n for n in _VECTORS if int(extent) % n == 0), None)
            if lanes is not None:
                schedule.split(loops[-1], [None, lanes])


def unroll_no_more_than_helps(schedule: Any) -> None:
    """Keep TVM from unrolling a lot of arithmetic behind an instruction.

    It counts a statement as one step, however much it computes: what is fused behind a product in a
    quantised network takes minutes to compile for that, and is not faster.

    Parameters
    ----------
    schedule
        One to which ``RewriteParallelVectorizeUnroll`` has been applied.
    """
    for found in _elementwise_beside_instructions(schedule):
        if len(found.loops) == found.depth:  # It is unrolled by itself, and few steps of it.
            continue
        vectors = 1
        for loop in found.loops:
            if int(loop.kind) == tirx.ForKind.VECTORIZED:
                vectors *= -(-int(loop.extent) // min(_VECTORS))
        loops = schedule.get_loops(schedule.get_sblock(found.name, func_name="main"))
        steps = _MOST_UNROLLED // (found.operations * vectors)
        schedule.annotate(loops[-len(found.loops)], _UNROLLED, max(steps, 1))


class _Elementwise(NamedTuple):
    """A block that computes element by element.

    Attributes
    ----------
    name
        Of the block.
    loops
        Those around it that are around nothing else, the outermost first.
    depth
        All loops around it.
    operations
        That compute an element.
    """

    name: str
    loops: tuple[Any, ...]
    depth: int
    operations: int


def _elementwise_beside_instructions(schedule: Any) -> list[_Elementwise]:
    if not any(str(step.kind.name) == _MAKES_BLOCKS for step in schedule.trace.insts):
        return []
    return list(_elementwise(schedule.mod["main"].body, (), 0))


def _elementwise(node: Any, loops: tuple[Any, ...], depth: int) -> Iterator[_Elementwise]:
    if isinstance(node, nodes.For):
        yield from _elementwise(node.body, (*loops, node), depth + 1)
    elif isinstance(node, nodes.SeqStmt):
        for part in node.seq:
            yield from _elementwise(part, (), depth)
    elif isinstance(node, nodes.SBlockRealize):
        block = node.block
        if not block.iter_vars:
            yield from _elementwise(block.body, loops, depth)
        elif isinstance(block.body, nodes.BufferStore) and block.init is None:
            count = max(_operations(block.body.value), 1)
            yield _Elementwise(str(block.name_hint), loops, depth, count)
    elif isinstance(node, nodes.IfThenElse):
        yield from _elementwise(node.then_case, loops, depth)


def _operations(value: Any) -> int:
    """Count what is computed for a value; loads and their indices are not."""
    if isinstance(value, nodes.Call):
        parts = list(value.args)
    elif isinstance(value, nodes.Cast):
        parts = [value.value]
    elif isinstance(value, nodes.Select):
        parts = [value.condition, value.true_value, value.false_value]
    elif hasattr(value, "a"):
        parts = [value.a, value.b]
    else:
        return 0
    return 1 + sum(_operations(part) for part in parts)


def _instructions(node: Any) -> Iterator[Any]:
    if isinstance(node, nodes.For):
        yield from _instructions(node.body)
    elif isinstance(node, nodes.SeqStmt):
        for part in node.seq:
            yield from _instructions(part)
    elif isinstance(node, nodes.SBlockRealize):
        if node.block.annotations.get(INTRINSIC, ""):
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
