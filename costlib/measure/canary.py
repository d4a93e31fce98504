"""Reference kernels that tell a slow program from a slow moment.

Shared machines change speed for seconds at a time: the host clocks its cores down, a neighbour
uses the other half of a core or the memory bus. Two small kernels are timed before and after
every repeat of a program: a matrix product that stays in the L1 cache and a sum over more memory
than the caches hold (:mod:`~costlib.measure.canary_kernels`). Their ratio to a reference says what
the machine was like at that moment, and :mod:`costlib.measure.correction` takes that out of the
program's time.

The compute kernel loads its operands, like real programs. One that works on registers alone
hardly notices the slow moments that real programs suffer.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np

from costlib.canary_times import CanaryTimes
from costlib.measure.canary_kernels import CanaryKernels, cpu_kernels, gpu_kernels
from costlib.tvm_compat import quick_parsing, tvm
from costlib.tvm_compat.api import build_library

_WARM_UP_SECS = 0.05
"""How long a GPU works on the canaries before they count: idle, it clocks itself down."""


class Canary:
    """The two kernels, loaded and ready to be called in this process.

    On a GPU they are ready only after :meth:`start_device`, which a process that will be
    forked must not call.

    Parameters
    ----------
    path
        The library that :func:`build_canary` wrote.
    target, num_cores
        What it was built for.
    """

    def __init__(self, path: Path, target: Any, num_cores: int) -> None:
        self.is_on_cpu = target.kind.name != "cuda"
        self.device = tvm.device("cpu" if self.is_on_cpu else "cuda")  # This initialises nothing.
        self._library = tvm.runtime.load_module(str(path))
        self._kernels = _kernels(target, num_cores)
        if self.is_on_cpu:
            self._allocate()

    def start_device(self) -> None:
        """Initialise the GPU in this process and warm it up; nothing to do on a CPU."""
        if self.is_on_cpu:
            return
        self._allocate()
        end = time.perf_counter() + _WARM_UP_SECS
        while time.perf_counter() < end:
            self.measure()

    def _allocate(self) -> None:
        self._data = tvm.runtime.empty(self._kernels.data, "float32", self.device)
        if self.is_on_cpu:  # Sums take the same time whatever lies in a GPU's memory.
            self._data.copyfrom(np.ones(self._kernels.data, "float32"))
        sums = np.zeros(self._kernels.sums, "float32")
        self._sums = tvm.runtime.tensor(sums, self.device)
        self._matrices = [
            tvm.runtime.tensor(np.full(shape, 0.01, "float32"), self.device)
            for shape in self._kernels.matrices
        ]

    def measure(self) -> CanaryTimes:
        """Time each kernel; the compute canary twice, to shrug off an interrupt."""
        compute, memory = self._library["compute"], self._library["memory"]
        return CanaryTimes(
            compute_s=min(self._call_secs(compute, *self._matrices) for _ in range(2)),
            memory_s=self._call_secs(memory, self._data, self._sums),
        )

    def _call_secs(self, kernel: Any, *arguments: Any) -> float:
        start = time.perf_counter()
        kernel(*arguments)
        self.device.sync()
        return time.perf_counter() - start


def build_canary(path: Path, target: Any, num_cores: int) -> None:
    """Compile the kernels for a target to a shared library at ``path``."""
    kernels = _kernels(target, num_cores)
    with quick_parsing():
        functions = {
            "compute": tvm.script.from_source(kernels.compute),
            "memory": tvm.script.from_source(kernels.memory),
        }
    build_library(tvm.IRModule(functions), target, path)


def _kernels(target: Any, num_cores: int) -> CanaryKernels:
    return gpu_kernels() if target.kind.name == "cuda" else cpu_kernels(num_cores)
