"""Numbers of a scheduled GPU program that tell fast programs from slow ones on a device.

How full the multiprocessors are, how much of what a warp fetches it wants, how often its threads
want the same bank of shared memory, and what is fetched for each operation (Volkov, "Understanding
Latency Hiding on GPUs", 2016). They stand behind the columns that all programs have, in the
features of GPU programs alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from costlib.features.loop_nest import loop_nests
from costlib.features.nest import VECTORIZED, Access, LoopNest
from costlib.hardware import Hardware
from costlib.space.kernels import Kernel, kernels
from costlib.space.multiprocessor import MOST_REGISTERS, WARP, Multiprocessor

SECTOR_BYTES = 32
"""What global memory is fetched in."""

BANKS, BANK_BYTES = 32, 4

OTHER_REGISTERS = 24
"""About how many a thread takes beside its arrays: indices, operands, what is in flight."""

Columns = dict[str, float]


def gpu_features(mod: Any, hardware: Hardware) -> Columns:
    """Describe a scheduled module: the kernel with most threads at work, and the traffic of all.

    Returns
    -------
    dict
        The same names for all programs. Sizes are logarithms.
    """
    launches = kernels(mod) or [Kernel()]
    nests = loop_nests(mod)
    heaviest = max(launches, key=lambda one: (one.local_bytes, one.threads * one.blocks))
    return _launch(heaviest, launches, hardware) | _traffic(nests)


def occupancy(
    threads: int, shared_bytes: float, registers: float, blocks: float, hardware: Hardware
) -> tuple[float, float, float]:
    """Return how full a device is, each a share.

    Returns
    -------
    resident, last, busy
        Threads at work of those that there is room for; how full the last wave of blocks is; and
        how many of the multiprocessors have work at all.
    """
    processor = Multiprocessor.of_arch(str(hardware.target.get("arch", "")))
    fitting = processor.fitting(threads, shared_bytes, registers)
    room = max(fitting, 1) * max(hardware.num_cores, 1)
    waves = blocks / room
    return (
        min(fitting, max(1.0, blocks / max(hardware.num_cores, 1))) * threads / processor.threads,
        waves / math.ceil(waves),
        min(1.0, blocks / max(hardware.num_cores, 1)),
    )


def registers_of(local_bytes: float) -> float:
    """Estimate the registers of a thread from what its arrays take."""
    return min(OTHER_REGISTERS + local_bytes / 4, MOST_REGISTERS)


def _launch(kernel: Kernel, launches: Sequence[Kernel], hardware: Hardware) -> Columns:
    registers = registers_of(kernel.local_bytes)
    resident, last, busy = occupancy(
        kernel.threads, kernel.shared_bytes, registers, kernel.blocks, hardware
    )
    return {
        "kernels": float(len(launches)),
        "threads": _log(kernel.threads),
        "threads.idle": 1 - kernel.threads / (WARP * math.ceil(kernel.threads / WARP)),
        "blocks": _log(kernel.blocks),
        "virtual_threads": _log(kernel.virtual_threads),
        "shared_bytes": _log(kernel.shared_bytes),
        "local_bytes": _log(kernel.local_bytes),
        "registers": registers,
        "spilled": _log(max(0.0, kernel.local_bytes / 4 + OTHER_REGISTERS - MOST_REGISTERS)),
        "tensor_cores": float(kernel.on_tensor_cores),
        "occupancy": resident,
        "wave.last": last,
        "multiprocessors.busy": busy,
    }


def _traffic(nests: Sequence[LoopNest]) -> Columns:
    """Add up over all nests what moves between memories, and how well it does."""
    fetched = wanted = stored = shared = conflicts = operations = 0.0
    widest, narrowest, worst = 1, 16, 1.0
    unrolled = 0
    for nest in nests:
        times = _iterations(nest)
        operations += times * nest.arithmetic
        unrolled = max(unrolled, nest.unroll_steps)
        lanes = _vector(nest)
        for access in nest.accesses:
            is_store = access is nest.store
            if access.scope == "global":
                share, moved = _warp_bytes(access, lanes)
                wanted += times * share
                moved *= times
                fetched += 0 if is_store else moved
                stored += moved if is_store else 0
                if nest.store.scope.startswith("shared"):
                    widest = max(widest, lanes)
                    narrowest = min(narrowest, lanes)
            elif access.scope.startswith("shared"):
                ways = bank_conflicts(access, lanes)
                shared += times
                conflicts += times * ways
                worst = max(worst, ways)
    return {
        "global.fetched": _log(fetched),
        "global.stored": _log(stored),
        "global.wanted": wanted / max(fetched + stored, 1.0),
        "global.per_operation": _log(fetched / max(operations, 1.0)),
        "shared.accesses": _log(shared),
        "shared.per_operation": _log(shared / max(operations, 1.0)),
        "shared.conflicts": conflicts / max(shared, 1.0),
        "shared.conflicts.worst": worst,
        "copied.widest": float(widest),
        "copied.narrowest": float(min(narrowest, widest)),
        "unroll_steps": _log(unrolled),
    }


def bank_conflicts(access: Access, lanes: int = 1) -> float:
    """Return how often shared memory must be asked until each thread of a warp has its word."""
    if not len(access.lanes):
        return 1.0
    words = np.unique(access.lanes * access.element_bytes // BANK_BYTES)
    per_thread = max(1, lanes * access.element_bytes // BANK_BYTES)
    _, counts = np.unique(words % BANKS, return_counts=True)
    return max(1.0, float(counts.max()) / per_thread)


def sectors(access: Access, lanes: int = 1) -> int:
    """Return how many sectors a warp fetches for one access of ``lanes`` elements a thread."""
    starts = access.lanes if len(access.lanes) else np.zeros(1, "int64")
    reached = (starts[:, None] + np.arange(lanes)) * access.element_bytes // SECTOR_BYTES
    return len(np.unique(reached))


def _warp_bytes(access: Access, lanes: int) -> tuple[float, float]:
    """Return the bytes that a warp wants and that it fetches, for one element of one thread."""
    threads = max(len(access.lanes), 1)
    wanted = max(len(np.unique(access.lanes)), 1) * access.element_bytes / threads
    return wanted, sectors(access, lanes) * SECTOR_BYTES / (threads * lanes)


def _iterations(nest: LoopNest) -> float:
    """Return how often all threads together execute a store; a loop of threads counts once."""
    seen: Mapping[str, int] = {
        thread: int(extent)
        for thread, extent in zip(nest.threads, nest.extents, strict=True)
        if thread and not thread.startswith("vthread")
    }
    others = [
        int(extent)
        for thread, extent in zip(nest.threads, nest.extents, strict=True)
        if not thread or thread.startswith("vthread")
    ]
    return float(math.prod(others) * math.prod(seen.values()))


def _vector(nest: LoopNest) -> int:
    return int(nest.extents[-1]) if len(nest.kinds) and nest.kinds[-1] == VECTORIZED else 1


def _log(value: float) -> float:
    return math.log2(1 + float(value))
