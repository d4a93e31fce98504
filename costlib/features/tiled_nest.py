"""The main loop nest of a tiled sketch, described from decisions alone, thousands at a time.

What :mod:`costlib.features.nest_features` tells of a lowered program follows, for the block that a
sketch tiles, from its tile sizes and from what the block accesses before it is scheduled. So it can
be computed in arrays, without replaying or lowering anything, a little less exactly: loops that
later steps fuse or move are taken as the tiling leaves them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from costlib.arrays import Float32s, Integers
from costlib.features.nest import LoopNest
from costlib.features.tiled_programs import COLUMNS, TiledPrograms
from costlib.features.tiling import CHOICE, read_tiling
from costlib.hardware import Hardware


class TiledNest:
    """Describes programs of one sketch, whose instructions these are, for a hardware.

    ``nests`` are the loop nests of the unscheduled program, by the names of their blocks.
    """

    def __init__(
        self, nests: Mapping[str, LoopNest], instructions: Sequence[Any], hardware: Hardware
    ) -> None:
        self._instructions = instructions
        self._hardware = hardware
        try:
            self._tiling = read_tiling(instructions)
        except (TypeError, ValueError, IndexError):  # Not of MetaSchedule: an imported schedule.
            self._tiling = None
        self._nest = nests.get(self._tiling.block) if self._tiling else None

    @property
    def needed(self) -> frozenset[int]:
        """The instructions whose decisions :meth:`describe` looks at."""
        if self._nest is None or self._tiling is None:
            return frozenset()
        others = (self._tiling.unroll, self._tiling.parallel)
        return frozenset(self._tiling.tiles) | {index for index in others if index is not None}

    def describe(self, decisions: Mapping[int, Any], count: int) -> Float32s:
        """Describe `n` programs, of which there are ``count``.

        Parameters
        ----------
        decisions
            For each instruction that is :attr:`needed`, and decides something, the values of
            all programs.

        Returns
        -------
        ndarray
            float32 `n x` :data:`COLUMNS`; zeros if the sketch tiles no block that is known.
        """
        nothing = np.zeros((count, len(COLUMNS)), "float32")
        if self._nest is None or self._tiling is None or not count:
            return nothing
        tiles = [np.array(decisions[index], "int64") for index in self._tiling.tiles]
        extents = [int(tile[0].prod()) for tile in tiles]
        real = [axis for axis, extent in enumerate(extents) if extent > 1]
        if [extents[axis] for axis in real] != self._nest.extents.tolist():
            return nothing
        programs = TiledPrograms(
            self._nest,
            self._tiling,
            tiles,
            real,
            self._values(decisions, self._tiling.unroll, count),
            self._values(decisions, self._tiling.parallel, count),
            self._hardware,
        )
        return np.stack(programs.columns(), axis=1).astype("float32")

    def _values(self, decisions: Mapping[int, Any], index: int | None, count: int) -> Integers:
        """Return the numbers that an instruction's decisions come to."""
        if index is None or index not in decisions:
            return np.ones(count, "int64")
        values = np.array(decisions[index], "int64")
        instruction = self._instructions[index]
        if instruction[0] == CHOICE:
            values = np.array(instruction[2][0], "int64")[values]
        return values
