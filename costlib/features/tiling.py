"""How a sketch tiles its main block, read from its instructions. Knows nothing of TVM."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

CHOICE = "SampleCategorical"
_STRUCTURE = "meta_schedule.tiling_structure"


@dataclass(frozen=True)
class Tiling:
    """Which loops a sketch tiles its main block into, outermost first.

    Attributes
    ----------
    tiles
        For each axis of the block the instruction that draws its tile sizes.
    loops
        (axis, which of its tile sizes, level of the tiling) of each loop.
    shared
        How many of the loops enclose all blocks that are computed within them.
    unroll, parallel
        The instructions that decide these, if any does.
    """

    block: str
    tiles: tuple[int, ...]
    loops: tuple[tuple[int, int, int], ...]
    shared: int
    unroll: int | None
    parallel: int | None


def read_tiling(instructions: Sequence[Any]) -> Tiling | None:
    """Read how a sketch tiles its main block; ``None`` if it does not, or tiles several."""
    steps = list(enumerate(instructions))
    blocks = {outputs[0]: about[0] for _, (kind, _, about, outputs) in steps if kind == "GetSBlock"}
    annotated = {
        about[0]: (index, inputs)
        for index, (kind, inputs, about, _) in steps
        if kind == "Annotate" and len(about) == 1
    }
    tiled = [i for _, (kind, i, about, _) in steps if kind == "Annotate" and about == [_STRUCTURE]]
    if len(tiled) != 1 or tiled[0][0] not in blocks:
        return None
    block = tiled[0][0]
    axes: Sequence[str] = next(
        (out for _, (kind, i, _, out) in steps if kind == "GetLoops" and i == [block]), []
    )
    drawn = {
        inputs[0]: index
        for index, (kind, inputs, _, _) in steps
        if kind == "SamplePerfectTile" and inputs[0] in axes
    }
    splits = {
        axes.index(inputs[0]): outputs
        for _, (kind, inputs, _, outputs) in steps
        if kind == "Split" and inputs[0] in drawn
    }
    places = {loop: (axis, part) for axis, out in splits.items() for part, loop in enumerate(out)}
    order: Sequence[str] = next(
        (i for _, (kind, i, _, _) in steps if kind == "Reorder" and set(i) == set(places)), []
    )
    if not order or len(splits) != len(axes):
        return None
    within = {
        inputs[1]
        for _, (kind, inputs, _, _) in steps
        if kind in ("ComputeAt", "ReverseComputeAt") and inputs[1] in places
    }
    chosen = {outputs[0]: index for index, (kind, _, _, outputs) in steps if kind == CHOICE}
    unrolled = annotated.get("meta_schedule.unroll_explicit", (0, ["", ""]))[1][1]
    return Tiling(
        block=blocks[block],
        tiles=tuple(drawn[loop] for loop in axes),
        loops=_with_levels([places[loop] for loop in order], splits),
        shared=min((order.index(loop) + 1 for loop in within), default=len(order)),
        unroll=chosen.get(unrolled) if isinstance(unrolled, str) else None,
        parallel=annotated.get("meta_schedule.parallel", (None,))[0],
    )


def _with_levels(
    loops: Sequence[tuple[int, int]], splits: Mapping[int, Sequence[str]]
) -> tuple[tuple[int, int, int], ...]:
    """Number the levels: one ends where an axis comes again, or one of the other kind comes."""
    found: list[tuple[int, int, int]] = []
    level, seen = 0, set[int]()
    for axis, part in loops:
        if axis in seen or any(len(splits[axis]) != len(splits[other]) for other in seen):
            level, seen = level + 1, set()
        seen.add(axis)
        found.append((axis, part, level))
    return tuple(found)
