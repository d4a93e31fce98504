"""What a compiler makes of the innermost loops of tiled programs, thousands at a time.

It unrolls them up to some number of statements; what is then the innermost loop it vectorizes,
where the iterations of that lie side by side.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from costlib.features.nest import REGISTERS, Integers, Reals

COLUMNS = ("swept", "registers", "moved_per_operation", "reduction", "cycles")

Bools = np.ndarray[Any, np.dtype[np.bool_]]


@dataclass(frozen=True)
class TiledLoops:
    """The loops of `n` programs, `l` each, those of one iteration among them.

    Attributes
    ----------
    extents, parallel
        int64 and bool `n x l`.
    reduces
        bool `l`: whether a loop stays at the element that is stored.
    innermost
        int64 `n`: the innermost loop of more than one iteration.
    vector
        float64 `n`: how many elements an instruction of that loop works on.
    lanes
        How many fit into a vector register.
    strides
        float64 `accesses x n x l`: how far a step of a loop moves, the store first.
    registers, loaded
        float64 `n x (l + 1)`: what the loops from one inwards store and load.
    """

    extents: Integers
    parallel: Bools
    reduces: Bools
    innermost: Integers
    vector: Reals
    lanes: int
    strides: Reals
    registers: Reals
    loaded: Reals

    def describe(self, limit: Integers, work: float) -> tuple[list[Reals], Reals]:
        """Describe the loops that unroll to at most so many statements.

        Parameters
        ----------
        limit
            int64 `n`: statements.
        work
            About how many instructions an operation is.

        Returns
        -------
        columns, cycles
            An array of `n` for each of :data:`COLUMNS`; the cycles of the whole nest.
        """
        count, loops = self.extents.shape
        rows = np.arange(count)
        place = self._unrolled(limit)
        swept = self._swept(place)
        places = np.arange(loops)
        inside = np.where(places >= place[:, None], self.extents, 1).prod(1)
        runs = np.where(places < place[:, None], self.extents, 1).prod(1).astype("float64")
        reduction = self._reduction(place)
        operations = np.maximum(1.0, inside / np.minimum(self.vector, self.lanes))
        registers, loaded = self.registers[rows, place], self.loaded[rows, place]
        spilled = np.maximum(0.0, registers + 2 - REGISTERS)
        moved = loaded + 2 * registers / reduction + 2 * spilled
        cycles = (np.maximum(operations * work, moved) / 2 + 1) * runs
        outer = self.extents[rows, np.maximum(place - 1, 0)]
        cycles = cycles * np.where(swept > 1, np.ceil(outer / swept) / outer, 1)
        return [swept, registers, moved / operations, reduction, cycles], cycles

    def _unrolled(self, limit: Integers) -> Integers:
        """Return the outermost loop that is unrolled; `l` if none is."""
        count, loops = self.extents.shape
        place = np.full(count, loops)
        steps, goes_on = np.ones(count), np.ones(count, bool)
        for loop in range(loops - 1, -1, -1):
            is_vector = (self.innermost == loop) & (self.vector > 1)
            grown = steps * np.where(is_vector, 1, self.extents[:, loop])
            goes_on &= ((grown <= limit) | (self.extents[:, loop] == 1)) & ~self.parallel[:, loop]
            steps = np.where(goes_on, grown, steps)
            place = np.where(goes_on, loop, place)
        return place

    def _swept(self, place: Integers) -> Reals:
        """Return how many iterations of the loop outside ``place`` an instruction does."""
        rows, outer = np.arange(len(place)), np.maximum(place - 1, 0)
        strides = np.abs(self.strides[:, rows, outer])
        in_order = (strides[0] == 1) & (strides.max(0) == 1)
        can = in_order & (place > 0) & ~self.parallel[rows, outer] & (self.vector == 1)
        return np.where(can, np.minimum(self.extents[rows, outer], self.lanes), 1).astype("float64")

    def _reduction(self, place: Integers) -> Reals:
        """Return the iterations of the reduction loops just outside ``place``."""
        count, loops = self.extents.shape
        reduction, goes_on = np.ones(count), np.ones(count, bool)
        for loop in range(loops - 1, -1, -1):
            outside = loop < place
            reduces = self.reduces[loop] | (self.extents[:, loop] == 1)
            goes_on &= ~outside | reduces
            reduction = np.where(outside & goes_on, reduction * self.extents[:, loop], reduction)
        return reduction
