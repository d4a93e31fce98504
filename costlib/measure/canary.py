"""Reference kernels that tell a slow program from a slow moment.

Shared machines change speed: the host clocks its cores down, neighbours use the memory bus.
Two small kernels are timed before and after every repeat of a program, one bound by
arithmetic and one by memory. Their ratio to a reference says what the machine was
like at that moment, and :func:`corrected_latency` takes that out of the program's time.
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

ACCUMULATORS = 12
"""Vectors updated in turn, enough to hide the latency of an FMA."""

COMPUTE_ROUNDS = 120_000
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
        state = np.full((num_cores, ACCUMULATORS, VECTOR), 0.5, "float32")
        self._state = tvm.runtime.tensor(state)

    def measure(self) -> CanaryTimes:
        """Time each kernel once (the better of two calls, to shrug off an interrupt)."""
        return CanaryTimes(
            compute_s=_best_of_two(self._library["compute"], self._state),
            memory_s=_best_of_two(self._library["memory"], self._memory, self._sums),
        )


def _best_of_two(kernel: Any, *arguments: Any) -> float:
    seconds = []
    for _ in range(2):
        start = time.perf_counter()
        kernel(*arguments)
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def build_canary(path: Path, target: Any, num_cores: int) -> None:
    """Compile the kernels for a CPU target to a shared library at ``path``."""
    module = tvm.IRModule(
        {"compute": _compute_kernel(num_cores), "memory": _memory_kernel(num_cores)}
    )
    build_library(module, target, path)


def _compute_kernel(num_cores: int) -> Any:
    return _parse(f"""
@T.prim_func(s_tir=True)
def compute(state: T.Buffer(({num_cores}, {ACCUMULATORS}, {VECTOR}), "float32")):
    T.func_attr({{"global_symbol": "compute", "tirx.noalias": True}})
    for core in T.parallel({num_cores}):
        for step in range({COMPUTE_ROUNDS}):
            for i in T.unroll({ACCUMULATORS}):
                for lane in T.vectorized({VECTOR}):
                    state[core, i, lane] = (
                        state[core, i, lane] * T.float32(0.999) + T.float32(0.001)
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
        The median over the repeats of the time divided by the slow-down that the canaries saw.
    """
    slow_downs = [
        slow_down(CanaryTimes(compute_s=compute, memory_s=memory), reference)
        for compute, memory in zip(canary_compute, canary_memory, strict=True)
    ]
    return float(np.median(np.asarray(run_secs) / slow_downs))


def slow_down(now: CanaryTimes, reference: CanaryTimes) -> float:
    """How many times slower than in the reference state a program runs now."""
    return float(np.sqrt(now.compute_s / reference.compute_s * now.memory_s / reference.memory_s))
