"""Numbers of a program's loop nests that tell fast programs from slow ones on a processor.

The model behind them is the usual one of hand-written kernels (Goto and van de Geijn, "Anatomy of
high-performance matrix multiplication", 2008): how many accumulators an unrolled inner nest has,
what it moves for each operation, how long a reduction keeps the accumulators in registers, and
how much comes from beyond each cache once the data of an inner nest just fits into it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from costlib.arrays import Float32s
from costlib.features.gpu_features import gpu_features
from costlib.features.loop_nest import loop_nests
from costlib.features.nest import (
    CACHE_WAYS,
    LINE_BYTES,
    LINE_CYCLES,
    PARALLEL,
    UNROLLED,
    UNROLLED_ANYWAY,
    VECTORIZED,
    Access,
    LoopNest,
    cache_sizes,
    crowding,
    vector_registers,
)
from costlib.hardware import Hardware

_INNERMOST = 5
"""Loops that are described one by one."""

_RUNS = 5
"""Runs of reduction loops, and of others, that are described one by one."""

_DEPTHS = 6
"""Loops from the innermost outwards whose data is told."""

_MOST_REGISTERS = 64

Columns = dict[str, float]


def nest_features(mod: Any, hardware: Hardware) -> Columns:
    """Describe a scheduled module: the nest that takes longest by a rough estimate, and the rest.

    Returns
    -------
    dict
        The same names for all programs. Sizes are logarithms.
    """
    nests = [_Nest(nest, hardware) for nest in loop_nests(mod)]
    nests.sort(key=lambda nest: -nest.cycles)
    cycles = sum(nest.cycles for nest in nests)
    whole = {
        "nests": float(len(nests)),
        "cycles.longest": _log(nests[0].cycles),
        "cycles.others": _log(cycles - nests[0].cycles),
        "cycles": _log(cycles),
    }
    second = nests[1].outline() if len(nests) > 1 else dict.fromkeys(nests[0].outline(), 0.0)
    return nests[0].describe() | {f"second.{k}": v for k, v in second.items()} | whole


def describe_nests(mods: Sequence[Any], hardware: Hardware) -> Float32s:
    """Describe several modules, float32 `n x k`.

    There is a column for each of :func:`nest_features`; for a GPU, those of
    :func:`costlib.features.gpu_features.gpu_features` follow.
    """
    rows = []
    for mod in mods:
        columns = nest_features(mod, hardware)
        further = gpu_features(mod, hardware) if hardware.kind == "cuda" else {}
        rows.append([*columns.values(), *further.values()])
    return np.array(rows, "float32")


class _Nest:
    """A nest on a processor, and how many cycles it takes by a rough estimate."""

    def __init__(self, nest: LoopNest, hardware: Hardware) -> None:
        self._nest = nest
        self._extents: list[int] = nest.extents.tolist()
        self._kinds: list[int] = nest.kinds.tolist()
        self._lanes = max(1, hardware.vector_bits // 32)
        self._cores = hardware.num_cores
        self._known_registers = vector_registers(hardware)
        self._vector = self._vector_length()
        lines = np.sum([access.lines for access in nest.accesses], axis=0)
        self._touched = lines * LINE_BYTES
        parallel = [e for e, k in zip(self._extents, self._kinds, strict=True) if k == PARALLEL]
        self._chunks = math.prod(parallel)
        self._speed_up = self._chunks / math.ceil(self._chunks / self._cores)
        limits = (max(nest.unroll_steps, 1), *UNROLLED_ANYWAY)
        self._regions = [self._region(limit) for limit in limits]
        self._beyond = [
            self._beyond_cache(size, ways)
            for size, ways in zip(cache_sizes(hardware), CACHE_WAYS, strict=True)
        ]
        computing = min(cycles for _, cycles in self._regions)
        fetching = sum(
            lines * cycles for (_, lines), cycles in zip(self._beyond, LINE_CYCLES, strict=True)
        )
        self.cycles = (computing + fetching) / self._speed_up

    def outline(self) -> Columns:
        """Return what is told of any nest."""
        nest = self._nest
        lanes_taken = math.ceil(self._vector / self._lanes) * self._lanes
        return {
            "iterations": _log(math.prod(self._extents)),
            "arithmetic": nest.arithmetic,
            "calls": nest.calls,
            "branches": nest.branches,
            "parallel.chunks": _log(self._chunks),
            "vector": _log(self._vector),
            "vector.full": self._vector / lanes_taken,
            "vector.power": float(self._vector & (self._vector - 1) == 0),
            "vectorized": float(VECTORIZED in self._kinds),
        }

    def describe(self) -> Columns:
        """Return all that is told of the longest nest."""
        nest, extents, kinds = self._nest, self._extents, self._kinds
        first = kinds.index(PARALLEL) if PARALLEL in kinds else len(kinds)
        columns = self.outline() | {
            "parallel.cores_idle": self._cores / self._speed_up,
            "parallel.launches": _log(math.prod(extents[:first])),
            "unroll_steps": _log(nest.unroll_steps),
        }
        columns |= self._describe_runs()
        for depth in range(1, _INNERMOST + 1):
            columns |= self._describe_loop(depth)
        for number, (region, _) in enumerate(self._regions):
            columns |= {f"region{number}.{name}": value for name, value in region.items()}
        for number, (fetched, _) in enumerate(self._beyond, 1):
            columns |= {f"cache{number}.{name}": value for name, value in fetched.items()}
        for depth in range(1, _DEPTHS + 1):
            place = max(0, len(extents) - depth)
            columns[f"depth{depth}.bytes"] = _log(self._touched[place])
            columns[f"depth{depth}.stored"] = _log(nest.store.elements[place])
        return columns

    def _vector_length(self) -> int:
        """Return how many elements a vector instruction of the innermost loop works on."""
        nest = self._nest
        if not self._extents:
            return 1
        if self._kinds[-1] == VECTORIZED:
            return self._extents[-1]
        strides = [abs(int(access.strides[-1])) for access in nest.accesses]
        if strides[0] == 1 and max(strides) <= 1:
            return min(self._extents[-1], self._lanes)
        return 1

    def _describe_loop(self, depth: int) -> Columns:
        """Describe one of the innermost loops."""
        place = len(self._extents) - depth
        names = ("extent", "kind", "loads_standing", "loads_in_order", "store_jump", "load_jump")
        values = [0.0] * len(names)
        if place >= 0:
            loads = [abs(int(access.strides[place])) for access in self._nest.loads] or [0]
            values = [
                _log(self._extents[place]),
                float(self._kinds[place]),
                loads.count(0) / len(loads),
                loads.count(1) / len(loads),
                _log(abs(int(self._nest.store.strides[place]))),
                _log(max(loads)),
            ]
        return {f"loop{depth}.{name}": value for name, value in zip(names, values, strict=True)}

    def _describe_runs(self) -> Columns:
        """Describe runs of reduction loops and of others, from the innermost outwards."""
        nest, extents = self._nest, self._extents
        names = (
            *("reduces", "size", "steps", "unrolled", "registers", "loaded"),
            *("store_lines", "most_lines", "second_lines", "third_lines"),
        )
        place, steps = len(extents) - (self._vector > 1), 1
        columns: Columns = {}
        for number in range(_RUNS):
            values = [0.0] * len(names)
            if place > 0 and self._kinds[place - 1] != PARALLEL:
                reduces = nest.store.strides[place - 1] == 0
                outside = place
                while (
                    place > 0
                    and self._kinds[place - 1] != PARALLEL
                    and (nest.store.strides[place - 1] == 0) == reduces
                ):
                    place -= 1
                size = math.prod(extents[place:outside])
                steps *= size
                lines = sorted((access.lines[place] for access in nest.loads), reverse=True)
                values = [
                    float(reduces),
                    _log(size),
                    _log(steps),
                    float(steps <= nest.unroll_steps),
                    _log(self._registers(nest.store, place)),
                    _log(sum(self._registers(access, place) for access in nest.loads)),
                    _log(nest.store.lines[place]),
                    *map(_log, [*lines, 0, 0, 0][:3]),
                ]
            columns |= {f"run{number}.{k}": v for k, v in zip(names, values, strict=True)}
        return columns

    def _region(self, limit: int) -> tuple[Columns, float]:
        """Describe the innermost loops that unroll to at most ``limit`` statements."""
        nest, extents, kinds = self._nest, self._extents, self._kinds
        place, steps = len(extents), 1
        if self._vector > 1:
            place -= 1
            if kinds[place] != VECTORIZED:
                steps = math.ceil(extents[place] / self._vector)
        while place > 0 and (
            kinds[place - 1] == UNROLLED
            or (kinds[place - 1] != PARALLEL and steps * extents[place - 1] <= limit)
        ):
            place -= 1
            steps *= extents[place]
        registers = self._registers(nest.store, place)
        loaded = sum(self._registers(access, place) for access in nest.loads)
        if nest.accumulates:
            loaded = max(0.0, loaded - registers)  # Accumulators stay in registers.
        outer = place
        while outer > 0 and nest.store.strides[outer - 1] == 0:
            outer -= 1
        reduction = math.prod(extents[outer:place])
        inside = float(math.prod(extents[place:]))
        operations = max(1.0, inside / min(self._vector, self._lanes))
        swept = self._swept(place)
        spilled = max(0.0, registers + 2 - self._known_registers)
        moved = loaded + 2 * registers / reduction + 2 * spilled
        cycles = max(operations * nest.work, moved) / 2 + 1
        cycles *= math.prod(extents[:place])
        if swept > 1:
            cycles *= math.ceil(extents[place - 1] / swept) / extents[place - 1]
        return {
            "swept": _log(swept),
            "iterations": _log(inside),
            "registers": _log(registers),
            "loaded": _log(loaded),
            "moved_per_operation": _log(moved / operations),
            "registers.linear": min(registers, _MOST_REGISTERS),
            "reduction": _log(reduction),
            "reuse": _log(inside / max(nest.store.elements[place], 1)),
            "written": _log(
                math.prod(extents[:outer]) * registers / max(nest.store.elements[0], 1)
            ),
            "cycles": _log(cycles),
        }, cycles

    def _swept(self, place: int) -> int:
        """Return how many iterations of the loop outside ``place`` a vector instruction does.

        Once all that is inside it is unrolled, it is the innermost loop, which the compiler
        vectorizes where its iterations lie side by side.
        """
        if self._vector > 1 or place == 0 or self._kinds[place - 1] == PARALLEL:
            return 1
        strides = [abs(int(access.strides[place - 1])) for access in self._nest.accesses]
        return min(self._extents[place - 1], self._lanes) if strides[0] == max(strides) == 1 else 1

    def _registers(self, access: Access, place: int) -> float:
        """Return how many registers hold what the loops from ``place`` on touch."""
        elements = float(access.elements[place])
        if self._vector == 1 or abs(int(access.strides[-1])) != 1:
            return elements
        return max(1.0, elements / self._vector) * math.ceil(self._vector / self._lanes)

    def _beyond_cache(self, cache_bytes: int, ways: int) -> tuple[Columns, float]:
        """Describe what is fetched from beyond a cache, and how many lines that are."""
        nest, extents = self._nest, self._extents
        crowded = crowding(
            np.stack([access.lines for access in nest.accesses]),
            np.stack([access.strides * access.element_bytes for access in nest.accesses]),
            nest.extents[None],
            cache_bytes // ways,
        ).max(0)
        room = int(np.argmax(self._touched <= cache_bytes))
        place = int(np.argmax((self._touched <= cache_bytes) & (crowded <= ways)))
        lines = 0.0
        for access in nest.accesses:
            stays = place > 0 and access.strides[place - 1] == 0
            lines += access.lines[place] * math.prod(extents[: place - stays])
        return {
            "bytes": _log(self._touched[place]),
            "lines": _log(lines),
            "iterations_per_line": _log(math.prod(extents) / max(lines, 1.0)),
            "loops_inside": float(len(extents) - place),
            "crowding": _log(crowded[room]),
        }, lines


def _log(value: float) -> float:
    return math.log2(1 + float(value))
