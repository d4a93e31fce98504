"""Which parts of a sketch's tiles a GPU's blocks and threads take, read from its instructions.

Knows nothing of TVM.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

BLOCK, THREAD, VIRTUAL = "blockIdx", "threadIdx", "vthread"


@dataclass(frozen=True)
class Bindings:
    """What the decisions of a sketch are bound to.

    Attributes
    ----------
    tiles
        For each instruction that draws tile sizes, what each part of the tile is bound to:
        ``"blockIdx"``, ``"threadIdx"``, ``"vthread"`` or ``""``.
    threads
        The instructions that draw how many threads a block has.
    copies
        Those that draw how many elements a thread copies to shared memory at once.
    warps
        Whether a thread of the tiles stands for a whole warp, as where tensor cores are used.
    """

    tiles: Mapping[int, tuple[str, ...]]
    threads: tuple[int, ...]
    copies: tuple[int, ...]
    warps: bool

    @property
    def binds_any(self) -> bool:
        """Whether it is the sketch of a GPU program."""
        return bool(self.threads) or any(any(parts) for parts in self.tiles.values())


def read_bindings(instructions: Sequence[Any]) -> Bindings:
    """Read what a sketch binds; nothing of a CPU's."""
    bound: dict[str, str] = {}
    for kind, inputs, about, _ in instructions:
        if kind == "Bind":
            bound[inputs[0]] = str(about[0]).partition(".")[0]
    for kind, inputs, _, outputs in instructions:
        if kind == "Fuse" and outputs[0] in bound:
            bound |= dict.fromkeys(inputs, bound[outputs[0]])
    splits = [(inputs, outputs) for kind, inputs, _, outputs in instructions if kind == "Split"]
    tiles: dict[int, tuple[str, ...]] = {}
    threads, copies = [], []
    fetched = {
        inputs[1]
        for kind, inputs, about, _ in instructions
        if kind == "Annotate" and about == ["meta_schedule.cooperative_fetch"]
    }
    for index, (kind, _, _, outputs) in enumerate(instructions):
        if kind == "SamplePerfectTile":
            parts = next((out for inputs, out in splits if inputs[1:] == outputs), ())
            tiles[index] = tuple(bound.get(loop, "") for loop in parts)
        elif kind == "SampleCategorical":
            (variable,) = outputs
            if any(
                variable in inputs and bound.get(out[inputs.index(variable) - 1]) == THREAD
                for inputs, out in splits
            ):
                threads.append(index)
            if variable in fetched:
                copies.append(index)
    warps = any(
        kind == "Annotate" and about == ["warp_execution"] for kind, _, about, _ in instructions
    )
    return Bindings(tiles, tuple(threads), tuple(copies), warps)
