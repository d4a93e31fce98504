"""Programs of one sketch as arrays, and the numbers that tell fast ones from slow ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from costlib.arrays import Bools, Floats, Integers
from costlib.features import tiled_regions
from costlib.features.nest import (
    CACHE_WAYS,
    LINE_BYTES,
    LINE_CYCLES,
    UNROLLED_ANYWAY,
    Access,
    LoopNest,
    cache_sizes,
    crowding,
    vector_registers,
)
from costlib.features.tiling import Tiling
from costlib.hardware import Hardware

_LEVELS = 6
"""Of a tiling that are told, from the innermost outwards; more than these are left out."""

_LOADS = 3
_MOST_VECTORIZED = 64
_REGIONS = 1 + len(UNROLLED_ANYWAY)

_PER_LEVEL = (
    *("size", "steps", "unrolled", "registers", "loaded", "store_lines", "bytes"),
    *(f"lines{number}" for number in range(_LOADS)),
)
_PER_CACHE = ("bytes", "lines", "iterations_per_line", "crowding")
_WHOLE = (
    *("tiled", "vector", "vector.full", "vector.power", "chunks", "cores_idle", "unroll_steps"),
    *("moved_per_operation", "reduction", "computing", "fetching", "cycles"),
)
COLUMNS = (
    *_WHOLE,
    *(f"level{level}.{name}" for level in range(_LEVELS) for name in _PER_LEVEL),
    *(f"cache{cache}.{name}" for cache in range(len(LINE_CYCLES)) for name in _PER_CACHE),
    *(f"region{number}.{name}" for number in range(_REGIONS) for name in tiled_regions.COLUMNS),
)


class TiledPrograms:
    """The nests of `n` programs as arrays: `l` loops, those of one iteration among them.

    Parameters
    ----------
    nest
        The nest before it is tiled.
    tiling
        How the sketch tiles it.
    tiles
        int64 `n x levels` of each axis.
    real
        The axes of more than one iteration, in the order of the nest's loops.
    unroll_steps, parallel_limit
        int64 `n`: statements that may be unrolled, and iterations that run in parallel at most.
    hardware
        What the programs are for.
    """

    def __init__(
        self,
        nest: LoopNest,
        tiling: Tiling,
        tiles: Sequence[Integers],
        real: Sequence[int],
        unroll_steps: Integers,
        parallel_limit: Integers,
        hardware: Hardware,
    ) -> None:
        self._nest = nest
        self._unroll_steps = unroll_steps
        self._parallel_limit = parallel_limit
        self._hardware = hardware
        self._lanes = max(1, hardware.vector_bits // 32)
        loops = [loop for loop in tiling.loops if loop[0] in real]
        self._shared = sum(loop[0] in real for loop in tiling.loops[: tiling.shared])
        self._axes = [real.index(axis) for axis, _, _ in loops]
        self._levels = [level for _, _, level in loops]
        self._extents = np.stack([tiles[axis][:, part] for axis, part, _ in loops], 1)
        self._store_strides = nest.store.strides[self._axes]
        of_axis = np.array(self._axes)[:, None] == np.arange(len(real))
        sizes = np.where(of_axis, self._extents[:, :, None], 1)
        self._inner = np.ones((len(sizes), len(loops) + 1, len(real)))
        self._inner[:, :-1] = np.cumprod(sizes[:, ::-1], axis=1)[:, ::-1]
        self._iterations = self._inner.prod(2)
        self._innermost = self._innermost_loops()
        self._vector = self._vector_lengths()
        self._parallel = self._parallel_loops()

    def columns(self) -> list[Floats]:
        """Return an array of `n` for each of :data:`COLUMNS`."""
        nest = self._nest
        accesses = (nest.store, *sorted(nest.loads, key=lambda load: -load.elements[0]))
        touched = [self._touched(access) for access in accesses]
        lines = np.stack([lines for _, lines in touched])
        total_bytes = lines.sum(0) * LINE_BYTES
        places = self._level_places()
        levels: list[Floats] = []
        registers = [self._registers(a, e) for a, (e, _) in zip(accesses, touched, strict=True)]
        loaded = sum(registers[1:], np.zeros_like(registers[0]))
        if nest.accumulates:
            loaded = loaded - registers[0]
        steps = np.ones(len(self._extents))
        outside = self._extents.shape[1]
        for number in range(_LEVELS):
            if number >= len(places):
                levels += [np.zeros(len(self._extents))] * len(_PER_LEVEL)
                continue
            place = places[number]
            size = self._extents[:, place:outside].prod(1) / (self._vector if number == 0 else 1)
            outside = place
            steps = steps * np.maximum(size, 1)
            loads = [lines[min(1 + load, len(lines) - 1), :, place] for load in range(_LOADS)]
            levels += [
                _log(size),
                _log(steps),
                (steps <= self._unroll_steps).astype("float64"),
                _log(registers[0][:, place]),
                _log(loaded[:, place]),
                _log(lines[0, :, place]),
                _log(total_bytes[:, place]),
                *(_log(load) for load in loads),
            ]
        whole, computing, speed_up = self._whole(places, registers[0], loaded)
        strides = np.stack(
            [self._strides(a, e) for a, (e, _) in zip(accesses, touched, strict=True)]
        )
        regions, unrolled = self._regions(strides, registers[0], loaded)
        computing = np.minimum(computing, unrolled)
        caches, fetching = self._caches(accesses, lines, strides, total_bytes)
        cycles = (computing + fetching) / speed_up
        whole += [_log(computing), _log(fetching), _log(cycles)]
        return [*whole, *levels, *caches, *regions]

    def _regions(
        self, strides: Floats, registers: Floats, loaded: Floats
    ) -> tuple[list[Floats], Floats]:
        """Describe what is unrolled at each limit; the fewest cycles."""
        loops = tiled_regions.TiledLoops(
            extents=self._extents,
            parallel=self._parallel,
            reduces=self._store_strides == 0,
            innermost=self._innermost,
            vector=self._vector,
            lanes=self._lanes,
            known_registers=vector_registers(self._hardware),
            strides=strides,
            registers=registers,
            loaded=loaded,
        )
        asked = np.maximum(self._unroll_steps, 1)
        limits = np.stack([asked, *(np.full_like(asked, most) for most in UNROLLED_ANYWAY)])
        values, cycles = loops.describe(limits, self._nest.work)
        logs = [_log(value) for value in values]
        return [log[number] for number in range(_REGIONS) for log in logs], cycles.min(0)

    def _strides(self, access: Access, elements: Floats) -> Floats:
        """Return how many elements a step of each loop moves by, `n x l`."""
        inner = self._inner[:, 1:][:, np.arange(len(self._axes)), self._axes]
        strides = access.strides[self._axes] * inner
        return np.where(strides != 0, elements[:, 1:], 0) if access.packed else strides

    def _whole(
        self, places: Sequence[int], registers: Floats, loaded: Floats
    ) -> tuple[list[Floats], Floats, Floats]:
        """Describe vectors, parallel chunks and the innermost tile; cycles and speed-up."""
        count = len(self._extents)
        chunks = np.where(self._parallel, self._extents, 1).prod(1).astype("float64")
        cores = self._hardware.num_cores
        speed_up = chunks / np.ceil(chunks / cores)
        tile = places[0] if places else self._extents.shape[1]
        reduction = np.ones(count)
        if len(places) > 1:
            reduction = self._extents[:, places[1] : places[0]].prod(1).astype("float64")
        operations = np.maximum(
            1.0, self._iterations[:, tile] / np.minimum(self._vector, self._lanes)
        )
        held = registers[:, tile]
        spilled = np.maximum(0.0, held + 2 - vector_registers(self._hardware))
        moved = loaded[:, tile] + 2 * held / reduction + 2 * spilled
        runs = self._iterations[:, 0] / self._iterations[:, tile]
        computing = (np.maximum(operations * self._nest.work, moved) / 2 + 1) * runs
        full = self._vector / (np.ceil(self._vector / self._lanes) * self._lanes)
        power = np.log2(self._vector) % 1 == 0
        columns = [
            np.ones(count),
            _log(self._vector),
            full,
            power.astype("float64"),
            _log(chunks),
            cores / speed_up,
            _log(self._unroll_steps),
            _log(moved / operations),
            _log(reduction),
        ]
        return columns, computing, speed_up

    def _caches(
        self, accesses: Sequence[Access], lines: Floats, strides: Floats, total_bytes: Floats
    ) -> tuple[list[Floats], Floats]:
        """Describe what comes from beyond each cache; and the cycles that takes."""
        rows = np.arange(len(self._extents))
        element_bytes = np.array([access.element_bytes for access in accesses])
        steps_bytes = strides.astype("int64") * element_bytes[:, None, None]
        stands = np.stack([access.strides[self._axes] == 0 for access in accesses])
        fetching = np.zeros(len(rows))
        columns: list[Floats] = []
        sizes = cache_sizes(self._hardware)
        for size, ways, cycles in zip(sizes, CACHE_WAYS, LINE_CYCLES, strict=True):
            crowded = crowding(lines, steps_bytes, self._extents, size // ways).max(0)
            room = np.argmax(total_bytes <= size, axis=1)
            place = np.argmax((total_bytes <= size) & (crowded <= ways), axis=1)
            runs = self._iterations[rows, 0] / self._iterations[rows, place]
            outer = np.maximum(place - 1, 0)
            stays = (place > 0) & stands[:, outer]
            repeated = runs / np.where(stays, self._extents[rows, outer], 1)
            fetched = (lines[:, rows, place] * repeated).sum(0)
            columns += [
                _log(total_bytes[rows, place]),
                _log(fetched),
                _log(self._iterations[:, 0] / np.maximum(fetched, 1)),
                _log(crowded[rows, room]),
            ]
            fetching += fetched * cycles
        return columns, fetching

    def _touched(self, access: Access) -> tuple[Floats, Floats]:
        """Return elements and lines that the loops from each place on touch, `n x (l + 1)`."""
        shape = self._inner.shape[:2]
        elements, rows, run = np.ones(shape), np.ones(shape), np.ones(shape)
        contiguous = np.ones(shape, bool)
        for steps, size in zip(access.steps[::-1], access.shape[::-1], strict=True):
            reach = np.minimum((self._inner - 1) @ np.abs(steps) + 1, size)
            elements *= reach
            run = np.where(contiguous, run * reach, run)
            rows = np.where(contiguous, rows, rows * reach)
            contiguous &= reach == size
        elements = np.minimum(elements, self._iterations)
        if access.packed:
            return elements, np.ceil(elements * access.element_bytes / LINE_BYTES)
        lines = rows * np.ceil(run * access.element_bytes / LINE_BYTES)
        return elements, np.minimum(lines, self._iterations)

    def _registers(self, access: Access, elements: Floats) -> Floats:
        """Return how many registers hold so many elements, `n x (l + 1)`."""
        strides = np.abs(access.strides[self._axes])[self._innermost]
        vector = np.where((strides == 1) | ((strides > 0) & access.packed), self._vector, 1)
        count = np.maximum(1.0, elements / vector[:, None])
        return np.asarray(count * np.ceil(vector / self._lanes)[:, None])

    def _innermost_loops(self) -> Integers:
        """Return the innermost loop of more than one iteration of each program."""
        longer = self._extents[:, ::-1] > 1
        return np.asarray(self._extents.shape[1] - 1 - np.argmax(longer, axis=1))

    def _vector_lengths(self) -> Floats:
        place = self._innermost
        extent = self._extents[np.arange(len(self._extents)), place]
        in_order = np.abs(self._store_strides[place]) == 1
        return np.where(in_order & (extent <= _MOST_VECTORIZED), extent, 1).astype("float64")

    def _parallel_loops(self) -> Bools:
        """Return which loops run in parallel, bool `n x l`.

        As MetaSchedule's ``RewriteParallelVectorizeUnroll`` does it, loops are taken until they
        are too many; none within which another block is computed.
        """
        reductions = np.flatnonzero(self._store_strides[: self._shared] == 0)
        end = int(reductions[0]) if len(reductions) else self._shared
        chunks = np.ones((len(self._extents), end))
        chunks[:, 1:] = np.cumprod(self._extents[:, :end], axis=1)[:, :-1]
        parallel = np.zeros(self._extents.shape, bool)
        parallel[:, :end] = chunks <= self._parallel_limit[:, None]
        return parallel

    def _level_places(self) -> list[int]:
        """Return where each level begins, from the innermost outwards."""
        levels = np.array(self._levels)
        return [int(np.flatnonzero(levels == level)[0]) for level in sorted(set(levels))[::-1]]


def _log(values: Any) -> Floats:
    return np.asarray(np.log2(1 + values), "float64")
