"""What the kernels of a tiled GPU sketch ask of the device, from decisions alone, by the thousand.

What :mod:`costlib.features.gpu_features` tells of a lowered program, a little less exactly: blocks
and threads follow from what the sketch binds, shared memory and traffic from how far the accesses
of its main block reach within a tile.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from costlib.arrays import Float32s, Floats, Integers
from costlib.features.gpu_features import OTHER_REGISTERS, SECTOR_BYTES
from costlib.features.nest import Access, LoopNest
from costlib.features.tiling import CHOICE, Tiling
from costlib.hardware import Hardware
from costlib.space.bindings import BLOCK, THREAD, VIRTUAL, Bindings, read_bindings
from costlib.space.multiprocessor import MOST_REGISTERS, REGISTERS, WARP, Multiprocessor

_LOADS = 2
"""Loads that are told one by one, those that reach furthest."""


class TiledKernels:
    """Describes programs of one sketch of a GPU, whose instructions these are.

    Parameters
    ----------
    instructions
        Of the sketch.
    tiled
        How it tiles its main block, and that block's nest before; ``None`` if neither is known.
    hardware
        What the programs are for.

    Attributes
    ----------
    needed
        The instructions whose decisions :meth:`describe` looks at.
    """

    def __init__(
        self, instructions: Sequence[Any], tiled: tuple[Tiling, LoopNest] | None, hardware: Hardware
    ) -> None:
        self._instructions = instructions
        self._bindings = Bindings({}, (), (), warps=False)
        with suppress(TypeError, ValueError, IndexError):  # Imported ones are written otherwise.
            self._bindings = read_bindings(instructions)
        self._tiled = tiled
        self._unroll = None if tiled is None else tiled[0].unroll
        self._cores = max(hardware.num_cores, 1)
        self._processor = Multiprocessor.of_arch(str(hardware.target.get("arch", "")))
        bindings = self._bindings
        looked_at = {*bindings.tiles, *bindings.threads, *bindings.copies, self._unroll}
        self.needed = frozenset(index for index in looked_at if index is not None)

    def describe(self, decisions: Mapping[int, Any], count: int) -> Float32s:
        """Describe `n` programs, of which there are ``count``.

        That is float32 `n x` :data:`costlib.features.columns.KERNELS`.
        ``decisions`` are the values of all programs for each instruction that is :attr:`needed`.
        """
        ones = np.ones(count)
        threads, blocks, virtual, work, depth, copies = (ones.copy() for _ in range(6))
        threads *= WARP if self._bindings.warps else 1
        inside: dict[int, Integers] = {}
        extents: dict[int, int] = {}
        for index, parts in self._bindings.tiles.items():
            tile = np.array(decisions[index], "int64")
            within = np.array([tag != BLOCK for tag in parts])
            if not any(parts):
                within = np.arange(len(parts)) > 0
                depth *= tile[:, 1:].prod(1)
                copies *= tile[:, 0]
            inside[index] = tile[:, within].prod(1)
            extents[index] = int(tile[0].prod())
            for part, tag in enumerate(parts):
                threads *= tile[:, part] if tag == THREAD else 1
                blocks *= tile[:, part] if tag == BLOCK else 1
                virtual *= tile[:, part] if tag == VIRTUAL else 1
                work *= tile[:, part] if any(parts) and tag in ("", VIRTUAL) else 1
        drawn = [self._numbers(decisions, index, count) for index in self._bindings.threads]
        threads = np.max([threads, *drawn], axis=0)
        copied = np.max(
            [ones, *(self._numbers(decisions, i, count) for i in self._bindings.copies)], 0
        )
        real = self._real_axes(extents)
        loads = self._loads(inside, real)
        shared_bytes = sum((size for size, _, _ in loads), np.zeros(count))
        registers = np.minimum(OTHER_REGISTERS + work, MOST_REGISTERS)
        warps = np.ceil(threads / WARP)
        fitting = np.minimum.reduce(
            [
                np.full(count, float(self._processor.blocks)),
                self._processor.threads // (warps * WARP),
                self._processor.shared_bytes // (shared_bytes + self._processor.reserved_bytes + 1),
                REGISTERS // (warps * WARP * registers),
            ]
        )
        resident = np.minimum(fitting, np.maximum(1, blocks / self._cores))
        waves = blocks / (np.maximum(fitting, 1) * self._cores)
        fetched = sum((moved for _, moved, _ in loads), np.zeros(count)) * blocks * copies
        operations = blocks * threads * work * depth * copies
        thread_loads = self._thread_loads(decisions, real, count)
        columns: list[Floats] = [
            _log(threads),
            1 - threads / (warps * WARP),
            *map(_log, (blocks, virtual, work, depth, copied, copies, shared_bytes)),
            registers,
            _log(np.maximum(work + OTHER_REGISTERS - MOST_REGISTERS, 0)),
            resident * threads / self._processor.threads,
            waves / np.ceil(waves),
            np.minimum(1, blocks / self._cores),
            _log(fetched),
            _log(fetched / operations),
            _log(thread_loads / work),
            _log(self._numbers(decisions, self._unroll, count)),
        ]
        for number in range(_LOADS):
            size, _, row = loads[number] if number < len(loads) else (np.zeros(count),) * 3
            columns += [_log(size), _log(row)]
        return np.stack(columns, axis=1).astype("float32")

    def _real_axes(self, extents: Mapping[int, int]) -> Sequence[int]:
        """Return what draws the tiles of each loop of the main nest; none if it has others."""
        if self._tiled is None:
            return ()
        tiling, nest = self._tiled
        real = [index for index in tiling.tiles if extents.get(index, 1) > 1]
        return real if [extents[index] for index in real] == nest.extents.tolist() else ()

    def _loads(
        self, inside: Mapping[int, Integers], real: Sequence[int]
    ) -> list[tuple[Floats, Floats, Floats]]:
        """Return what each load takes of shared memory, what is fetched for it, and its rows.

        All are in bytes; those that take most come first.
        """
        found = []
        for access, tiles in self._reaching(inside, real):
            reach = _reach(access, tiles)
            size = reach.prod(1) * access.element_bytes
            row = reach[:, -1] * access.element_bytes
            fetched = size / row * np.ceil(row / SECTOR_BYTES) * SECTOR_BYTES
            found.append((size, fetched, row))
        return sorted(found, key=lambda one: -float(one[0].mean()))

    def _thread_loads(
        self, decisions: Mapping[int, Any], real: Sequence[int], count: int
    ) -> Floats:
        """Return how many elements a thread reads for each step of a reduction."""
        own = {}
        for index, parts in self._bindings.tiles.items():
            tile = np.array(decisions[index], "int64")
            free = [part for part, tag in enumerate(parts) if tag in ("", VIRTUAL)]
            own[index] = tile[:, free].prod(1) if any(parts) else np.ones(count, "int64")
        reached = (_reach(access, tiles).prod(1) for access, tiles in self._reaching(own, real))
        return np.asarray(sum(reached, np.zeros(count)))

    def _reaching(
        self, sizes: Mapping[int, Integers], real: Sequence[int]
    ) -> list[tuple[Access, Integers]]:
        """Return each load of the main block, and int64 `n x l` tile sizes of its nest's loops."""
        if self._tiled is None or not real:
            return []
        _, nest = self._tiled
        tiles = np.stack([sizes[index] for index in real], axis=1)
        loads = nest.loads[1:] if nest.accumulates else nest.loads
        return [(load, tiles) for load in loads]

    def _numbers(self, decisions: Mapping[int, Any], index: int | None, count: int) -> Floats:
        """Return the numbers that a category's decisions come to; 1 where it is none."""
        if index is None or index not in decisions or self._instructions[index][0] != CHOICE:
            return np.ones(count)
        values = np.array(self._instructions[index][2][0], "float64")
        return np.asarray(values[np.array(decisions[index])])


def _reach(access: Access, tiles: Integers) -> Floats:
    """Return how many elements a tile touches in each dimension; float64 `n x dimensions`."""
    steps = np.abs(access.steps)
    reach = 1 + (tiles - 1) @ steps.T
    return np.asarray(np.minimum(reach, np.array(access.shape)).astype("float64"))


def _log(values: Any) -> Floats:
    return np.asarray(np.log2(1 + np.asarray(values, "float64")))
