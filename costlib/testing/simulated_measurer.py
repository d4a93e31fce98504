"""A measurer whose device is not there: programs are built for it, and their latencies made up.

So the whole path of a tuning run is walked for a device that nobody has at hand. Its latencies are
a formula's and worth nothing; its hardware says that it is simulated, and so do the ids of all
records.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

from costlib.canary_times import CanaryTimes
from costlib.errors import EnvironmentMismatchError
from costlib.hardware import Hardware
from costlib.measure.config import BuildJob, Job, MeasureConfig, Outcome, RunJob, Timing
from costlib.measure.measurer import Measurer
from costlib.space.program import Program
from costlib.testing.simulated import Latency, gentle
from costlib.tvm_compat.cuda import find_compiler
from costlib.workloads.task import Task

_log = logging.getLogger(__name__)

_REFERENCE = CanaryTimes(compute_s=1e-3, memory_s=1e-3)

_UNTUNED_S = 1e-8
"""Seconds of a floating-point operation of an untuned program: more than most programs take."""


class SimulatedMeasurer(Measurer):
    """Builds programs as :class:`costlib.measure.measurer.Measurer` does, and runs none.

    Parameters
    ----------
    hardware
        A simulated one, see :meth:`costlib.hardware.Hardware.simulated`.
    config
        Limits of the builds.
    latency
        What each program takes.
    """

    def __init__(
        self, hardware: Hardware, config: MeasureConfig | None = None, latency: Latency = gentle
    ) -> None:
        super().__init__(hardware, config, _REFERENCE, _NoDevices(hardware))
        self._latency = latency
        self._leaves_source = False
        if hardware.kind == "cuda":
            try:
                find_compiler()
            except EnvironmentMismatchError as error:
                _log.warning("programs stay CUDA source that nothing has compiled: %s", error)
                self._leaves_source = True

    def build_job(self, *arguments: Any, **settings: Any) -> BuildJob:
        """Describe a build; where no CUDA compiler is installed, one to CUDA source."""
        job = super().build_job(*arguments, **settings)
        return job.model_copy(update={"leave_source": self._leaves_source})

    def run_job(self, job: Job) -> Outcome:
        """Do a job of this machine's, such as calling a network; a program does not run here."""
        if isinstance(job, RunJob):
            return self._answer(_REFERENCE.compute_s)
        return self.server.work([job])[0]

    def run_program(
        self,
        task: Task,
        program: Program | None,
        path: Path,
        arguments: Any,
        best_s: float | None = None,
    ) -> tuple[Outcome, float | None]:
        """Make up what a program takes, if it was built."""
        del arguments, best_s
        if not path.exists():
            return Outcome(error="it was not built"), None
        latency_s = self._latency(task, program) if program else _UNTUNED_S * (task.flops + 1)
        if latency_s is None:
            return Outcome(error="fails by definition"), None
        return self._answer(latency_s), latency_s

    def _answer(self, latency_s: float) -> Outcome:
        timing = Timing(
            run_secs=(latency_s,),
            canary_compute=(self.reference.compute_s,),
            canary_memory=(self.reference.memory_s,),
            raced=False,
        )
        return Outcome(timing=timing)


class _NoDevices:
    """One device that is asked for nothing."""

    def __init__(self, hardware: Hardware) -> None:
        self.target = hardware.target

    def gather(self) -> int:
        return 1

    def run(self, job: Job) -> Outcome:
        raise NotImplementedError
