"""Reference kernels that tell a slow program from a slow moment.

Shared machines change speed for seconds at a time: the host clocks its cores down, a neighbour
uses the other half of a core or the memory bus. Two small kernels are timed before and after
every repeat of a program: a matrix product that stays in the L1 cache and a sum over more memory
than the caches hold. Their ratio to a reference says what the machine was like at that moment, and
:func:`corrected_latency` takes that out of the program's time.

The compute kernel loads its operands, like real programs. One that works on registers alone
hardly notices the slow moments that real programs suffer.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from costlib.schema import CanaryTimes
from costlib.tvm_compat import tvm
from costlib.tvm_compat.api import build_library

VECTOR = 8
"""Elements of an innermost loop; float32, so 256 bits."""

EXTENT = 64
"""Extent of the matrix product: three matrices of 16 KiB."""

PRODUCTS = 64
"""Products that one call computes on each core."""

MEMORY_BYTES = 32 << 20
"""What the memory canary reads: more than the caches that a virtual machine can count on."""


class Canary:
    """The two kernels, loaded and ready to be called in this process.

    Parameters
    ----------
    path
        The library that :func:`build_canary` wrote.
    num_cores
        Cores that each call keeps busy.
    """

    def __init__(self, path: Path, num_cores: int) -> None:
        self._library = tvm.runtime.load_module(str(path))
        lines = MEMORY_BYTES // 4 // num_cores // VECTOR
        self._memory = tvm.runtime.tensor(np.ones((num_cores, lines, VECTOR), "float32"))
        self._sums = tvm.runtime.tensor(np.zeros((num_cores, VECTOR), "float32"))
        shape = (num_cores, EXTENT, EXTENT)
        blocked = (num_cores, EXTENT, EXTENT // VECTOR, VECTOR)
        self._matrices = [
            tvm.runtime.tensor(np.full(extents, 0.01, "float32"))
            for extents in (shape, blocked, blocked)
        ]

    def measure(self) -> CanaryTimes:
        """Time each kernel; the compute canary twice, to shrug off an interrupt."""
        return CanaryTimes(
            compute_s=min(_call_secs(self._library["compute"], *self._matrices) for _ in range(2)),
            memory_s=_call_secs(self._library["memory"], self._memory, self._sums),
        )


def _call_secs(kernel: Any, *arguments: Any) -> float:
    start = time.perf_counter()
    kernel(*arguments)
    return time.perf_counter() - start


def build_canary(path: Path, target: Any, num_cores: int) -> None:
    """Compile the kernels for a CPU target to a shared library at ``path``."""
    module = tvm.IRModule(
        {"compute": _compute_kernel(num_cores), "memory": _memory_kernel(num_cores)}
    )
    build_library(module, target, path)


def _compute_kernel(num_cores: int) -> Any:
    columns = EXTENT // VECTOR
    return _parse(f"""
@T.prim_func(s_tir=True)
def compute(
    a: T.Buffer(({num_cores}, {EXTENT}, {EXTENT}), "float32"),
    b: T.Buffer(({num_cores}, {EXTENT}, {columns}, {VECTOR}), "float32"),
    c: T.Buffer(({num_cores}, {EXTENT}, {columns}, {VECTOR}), "float32"),
):
    T.func_attr({{"global_symbol": "compute", "tirx.noalias": True}})
    for core in T.parallel({num_cores}):
        for product in range({PRODUCTS}):
            for i in range({EXTENT}):
                for k in range({EXTENT}):
                    for j in T.unroll({columns}):
                        for lane in T.vectorized({VECTOR}):
                            c[core, i, j, lane] = (
                                c[core, i, j, lane] + a[core, i, k] * b[core, k, j, lane]
                            )
""")


def _memory_kernel(num_cores: int) -> Any:
    lines = MEMORY_BYTES // 4 // num_cores // VECTOR
    return _parse(f"""
@T.prim_func(s_tir=True)
def memory(
    data: T.Buffer(({num_cores}, {lines}, {VECTOR}), "float32"),
    sums: T.Buffer(({num_cores}, {VECTOR}), "float32"),
):
    T.func_attr({{"global_symbol": "memory", "tirx.noalias": True}})
    for core in T.parallel({num_cores}):
        for line in range({lines}):
            for lane in T.vectorized({VECTOR}):
                sums[core, lane] = sums[core, lane] + data[core, line, lane]
""")


def _parse(source: str) -> Any:
    return tvm.script.from_source(source)


MEMORY_SHARE = 0.06
"""How much of a slow-down the memory canary explains beside the compute canary."""

DEAD_BAND = 0.05
"""Slow-downs up to this share are the canaries' own noise."""


def corrected_latency(
    run_secs: Sequence[float],
    canary_compute: Sequence[float],
    canary_memory: Sequence[float],
    reference: CanaryTimes,
) -> float:
    """Return a program's latency in the reference state, in seconds.

    Parameters
    ----------
    run_secs, canary_compute, canary_memory
        Seconds of the program and of each canary, one entry per repeat.
    reference
        What the canaries take in the reference state.

    Returns
    -------
    float
        The program's best repeat divided by the slow-down that the canaries saw at their best.
    """
    best = CanaryTimes(compute_s=min(canary_compute), memory_s=min(canary_memory))
    return min(run_secs) / slow_down(best, reference)


def slow_down(now: CanaryTimes, reference: CanaryTimes) -> float:
    """How many times slower than in the reference state a program runs now; at least 1."""
    compute = now.compute_s / reference.compute_s
    memory = now.memory_s / reference.memory_s
    return max(1.0, float(compute * memory**MEMORY_SHARE) / (1 + DEAD_BAND))
