"""Reductions that are computed again and again, which TVM's own postprocessor gets wrong.

Where a sum is computed inside a loop that has nothing to do with it (the mean of a row, for each
element of the row), it starts from 0 each time. ``RewriteReductionBlock`` takes such a loop for one
of the reduction's and moves the start out of it: the sum goes on growing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from costlib.tvm_compat import nodes, tirx

_MOVES = "ComputeAt"
"""The one instruction that puts a reduction into the loops of its consumer."""


class _Reduction(NamedTuple):
    """A block that reduces.

    Attributes
    ----------
    name
        Of the block.
    loops
        The loops around it, the outermost first.
    bound, reduced
        The loops that any of its axes, and that a reduction axis, depends on.
    """

    name: str
    loops: tuple[Any, ...]
    bound: frozenset[Any]
    reduced: frozenset[Any]


def start_where_computed(schedule: Any) -> None:
    """Split such reductions into start and sum at the right loop; see the module.

    Parameters
    ----------
    schedule
        A ``tvm.s_tir.Schedule`` to which ``RewriteReductionBlock`` is yet to be applied.
    """
    if not any(str(step.kind.name) == _MOVES for step in schedule.trace.insts):
        return
    for found in list(_reductions(schedule.mod["main"].body, ())):
        unrelated = [
            place
            for place, loop in enumerate(found.loops)
            if loop.loop_var not in found.bound and not _is_one(loop.extent)
        ]
        if not unrelated:
            continue
        block = schedule.get_sblock(found.name, func_name="main")
        first = unrelated[-1] + 1
        inside = [p for p in range(first, len(found.loops)) if _reduces(found, p)]
        if inside or first < len(found.loops):
            loop = schedule.get_loops(block)[inside[0] if inside else first]
        else:
            loop = schedule.add_unit_loop(block)
        schedule.decompose_reduction(block, loop)


def _reductions(node: Any, loops: tuple[Any, ...]) -> Iterator[_Reduction]:
    if isinstance(node, nodes.For):
        yield from _reductions(node.body, (*loops, node))
    elif isinstance(node, nodes.SeqStmt):
        for part in node.seq:
            yield from _reductions(part, loops)
    elif isinstance(node, nodes.SBlockRealize):
        if node.block.init is not None:
            axes = list(zip(node.block.iter_vars, node.iter_values, strict=True))
            every = [(axis, tirx.analysis.undefined_vars(value)) for axis, value in axes]
            yield _Reduction(
                str(node.block.name_hint),
                loops,
                frozenset(v for _, variables in every for v in variables),
                frozenset(
                    v
                    for axis, variables in every
                    if int(axis.iter_type) == tirx.IterVar.CommReduce
                    for v in variables
                ),
            )
        yield from _reductions(node.block.body, ())
    elif isinstance(node, nodes.IfThenElse):
        yield from _reductions(node.then_case, loops)


def _reduces(found: _Reduction, place: int) -> bool:
    return found.loops[place].loop_var in found.reduced


def _is_one(extent: Any) -> bool:
    return isinstance(extent, nodes.IntImm) and int(extent) == 1
