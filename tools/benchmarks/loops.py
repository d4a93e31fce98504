"""The loops of a scheduled program, a line a block: two programs can be laid side by side."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from costlib.tvm_compat import nodes, tirx

_KINDS = {0: "", 1: "parallel ", 2: "vector ", 3: "unrolled ", 4: "thread "}
"""TVM's ``ForKind``."""
_UNROLLING = "pragma_auto_unroll_max_step"


def loops_of(mod: Any) -> list[str]:
    """Describe each block of a scheduled module by the loops around it, the outermost first.

    A loop is its extent, with its kind before it; that of a reduction has a ``k``. Loops that run
    once are left out. The end says up to how many steps the compiler unrolls.
    """
    return list(_blocks(mod["main"].body, ()))


def _blocks(node: Any, loops: tuple[Any, ...]) -> Iterator[str]:
    if isinstance(node, nodes.For):
        yield from _blocks(node.body, (*loops, node))
    elif isinstance(node, nodes.SeqStmt):
        for part in node.seq:
            yield from _blocks(part, loops)
    elif isinstance(node, nodes.IfThenElse):
        yield from _blocks(node.then_case, loops)
    elif isinstance(node, nodes.SBlockRealize):
        inner = list(_blocks(node.block.body, loops))
        name = str(node.block.name_hint)
        yield from inner or [f"{name}: {' · '.join(_described(node, loops))}"]


def _described(realize: Any, loops: tuple[Any, ...]) -> Iterator[str]:
    reduced = {
        variable
        for axis, value in zip(realize.block.iter_vars, realize.iter_values, strict=True)
        if int(axis.iter_type) == tirx.IterVar.CommReduce
        for variable in tirx.analysis.undefined_vars(value)
    }
    for loop in loops:
        if (extent := str(loop.extent)) != "1":
            yield f"{_KINDS[int(loop.kind)]}{'k' if loop.loop_var in reduced else ''}{extent}"
    steps = [int(loop.annotations[_UNROLLING]) for loop in loops if _UNROLLING in loop.annotations]
    if any(steps):
        yield f"unroll {max(steps)}"
