"""What a compiler makes of the innermost loops of tiled programs, thousands at a time.

It unrolls them up to some number of statements; what is then the innermost loop it vectorizes,
where the iterations of that lie side by side.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from costlib.arrays import Bools, Floats, Integers

COLUMNS = ("swept", "registers", "moved_per_operation", "reduction", "cycles")


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
    known_registers
        How many of those there are.
    strides
        float64 `accesses x n x l`: how far a step of a loop moves, the store first.
    registers, loaded
        float64 `n x (l + 1)`: what the loops from one inwards store and load.
    """

    extents: Integers
    parallel: Bools
    reduces: Bools
    innermost: Integers
    vector: Floats
    lanes: int
    known_registers: int
    strides: Floats
    registers: Floats
    loaded: Floats

    def describe(self, limits: Integers, work: float) -> tuple[list[Floats], Floats]:
        """Describe the loops that unroll to at most so many statements.

        Parameters
        ----------
        limits
            int64 `k x n`: statements.
        work
            About how many instructions an operation is.

        Returns
        -------
        columns, cycles
            An array `k x n` for each of :data:`COLUMNS`; the cycles of the whole nest.
        """
        count, loops = self.extents.shape
        rows = np.arange(count)
        place = self._unrolled(limits)
        outside = np.arange(loops) < place[..., None]
        swept = self._swept(place)
        inside = np.where(outside, 1, self.extents).prod(-1)
        runs = np.where(outside, self.extents, 1).prod(-1).astype("float64")
        reduction = self._reduction(outside)
        operations = np.maximum(1.0, inside / np.minimum(self.vector, self.lanes))
        registers, loaded = self.registers[rows, place], self.loaded[rows, place]
        spilled = np.maximum(0.0, registers + 2 - self.known_registers)
        moved = loaded + 2 * registers / reduction + 2 * spilled
        cycles = (np.maximum(operations * work, moved) / 2 + 1) * runs
        outer = self.extents[rows, np.maximum(place - 1, 0)]
        cycles = cycles * np.where(swept > 1, np.ceil(outer / swept) / outer, 1)
        return [swept, registers, moved / operations, reduction, cycles], cycles

    def _unrolled(self, limits: Integers) -> Integers:
        """Return the outermost loop that is unrolled, `k x n`; `l` if none is."""
        loops = self.extents.shape[1]
        is_vector = (np.arange(loops) == self.innermost[:, None]) & (self.vector > 1)[:, None]
        steps = np.where(is_vector, 1, self.extents)
        grown = np.cumprod(steps[:, ::-1], axis=1)[:, ::-1]
        too_many = (grown > limits[..., None]) & (self.extents > 1)
        return np.asarray(loops - _without(too_many | self.parallel).sum(-1))

    def _swept(self, place: Integers) -> Floats:
        """Return how many iterations of the loop outside ``place`` an instruction does."""
        rows, outer = np.arange(place.shape[1]), np.maximum(place - 1, 0)
        strides = np.abs(self.strides[:, rows, outer])
        in_order = (strides[0] == 1) & (strides.max(0) == 1)
        can = in_order & (place > 0) & ~self.parallel[rows, outer] & (self.vector == 1)
        return np.where(can, np.minimum(self.extents[rows, outer], self.lanes), 1).astype("float64")

    def _reduction(self, outside: Bools) -> Floats:
        """Return the iterations of the reduction loops just outside what is unrolled, `k x n`."""
        ends = outside & ~self.reduces & (self.extents > 1)
        runs = np.where(outside & _without(ends), self.extents, 1)
        return np.asarray(runs.prod(-1), "float64")


def _without(ends: Bools) -> Bools:
    """Return which loops have none of ``ends`` among them and those within, `k x n x l`."""
    return np.asarray(~np.logical_or.accumulate(ends[..., ::-1], axis=-1)[..., ::-1])
