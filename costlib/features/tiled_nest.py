"""The main loop nest of a tiled sketch, described from decisions alone, thousands at a time.

What :mod:`costlib.features.nest_features` tells of a lowered program follows, for the block that a
sketch tiles, from its tile sizes and from what the block accesses before it is scheduled. So it can
be computed in arrays, without replaying or lowering anything, a little less exactly: loops that
later steps fuse or move are taken as the tiling leaves them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from costlib.arrays import Float32s, Integers
from costlib.features.columns import KERNELS
from costlib.features.nest import LoopNest
from costlib.features.tiled_kernels import TiledKernels
from costlib.features.tiled_programs import COLUMNS, TiledPrograms
from costlib.features.tiling import CHOICE, Tiling, read_tiling
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
        self._tiled: tuple[Tiling, LoopNest] | None = None
        # Schedules that were imported are not of MetaSchedule.
        with suppress(TypeError, ValueError, IndexError):
            tiling = read_tiling(instructions)
            if tiling is not None and tiling.block in nests:
                self._tiled = (tiling, nests[tiling.block])
        self._kernels = (
            TiledKernels(instructions, self._tiled, hardware) if hardware.kind == "cuda" else None
        )

    @property
    def width(self) -> int:
        """How many columns :meth:`describe` has: those of a GPU's kernels are there for a GPU."""
        return len(COLUMNS) + (0 if self._kernels is None else len(KERNELS))

    @property
    def needed(self) -> frozenset[int]:
        """The instructions whose decisions :meth:`describe` looks at."""
        of_kernels = frozenset() if self._kernels is None else self._kernels.needed
        if self._tiled is None:
            return of_kernels
        tiling, _ = self._tiled
        looked_at = (*tiling.tiles, tiling.unroll, tiling.parallel)
        return of_kernels | {index for index in looked_at if index is not None}

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
            float32 `n x` :attr:`width`; :data:`COLUMNS`, zeros if the sketch tiles no block that
            is known, then those of :mod:`costlib.features.tiled_kernels`.
        """
        nest = self._describe_nest(decisions, count)
        if self._kernels is None:
            return nest
        return np.hstack([nest, self._kernels.describe(decisions, count)])

    def _describe_nest(self, decisions: Mapping[int, Any], count: int) -> Float32s:
        nothing = np.zeros((count, len(COLUMNS)), "float32")
        if self._tiled is None or not count:
            return nothing
        tiling, nest = self._tiled
        tiles = [np.array(decisions[index], "int64") for index in tiling.tiles]
        extents = [int(tile[0].prod()) for tile in tiles]
        real = [axis for axis, extent in enumerate(extents) if extent > 1]
        if [extents[axis] for axis in real] != nest.extents.tolist():
            return nothing
        programs = TiledPrograms(
            nest,
            tiling,
            tiles,
            real,
            self._values(decisions, tiling.unroll, count),
            self._values(decisions, tiling.parallel, count),
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
