"""Programs in, measurements out: build a batch, race its programs against the best known."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from costlib.canary_times import CanaryTimes
from costlib.errors import MeasureError
from costlib.hardware import Hardware
from costlib.measure.building import Building
from costlib.measure.client import MeasureServer
from costlib.measure.config import (
    BuildJob,
    CanaryJob,
    CheckJob,
    Job,
    MeasureConfig,
    Outcome,
    RunJob,
)
from costlib.measure.device_here import check_device
from costlib.measure.known_good import believable, confirmed
from costlib.measure.launch import why_not_run
from costlib.measure.measurement import DOUBTFUL, Candidate, Measurement
from costlib.schema import Status
from costlib.space.design_space import DesignSpace
from costlib.space.program import Program
from costlib.tvm_compat.api import argument_shapes, entry_argument_shapes, module_to_json
from costlib.workloads.task import Task

_CALIBRATION_SAMPLES = 100
_REFERENCE_QUANTILE = 0.2

_PATIENCE = 4
"""How often a program is run again at most, until the machine is calm."""


class Devices(Protocol):
    """Where programs run, if not here; :class:`costlib.measure.fleet.DevicePool`, for one."""

    @property
    def target(self) -> dict[str, Any]:
        """What to build for."""

    def gather(self) -> int:
        """Look for new devices; return how many there are."""

    def run(self, job: Job) -> Outcome:
        """Do a job on one of them."""


class Measurer(AbstractContextManager["Measurer"]):
    """Measures programs on this machine, or on a fleet; use as a context manager.

    Parameters
    ----------
    hardware
        What to compile for and how many cores to use; a GPU must be the one that is here.
    config
        Repeats, limits and racing.
    reference
        What the canaries take in the state that latencies are corrected to. Measured now if
        not given; pass the one of the dataset that measurements are added to.
    devices
        Where programs run, if not here: as many at a time as there are devices. They are built
        here all the same.

    Raises
    ------
    MeasureError
        The hardware is not here, or its measuring process does not start.
    """

    def __init__(
        self,
        hardware: Hardware,
        config: MeasureConfig | None = None,
        reference: CanaryTimes | None = None,
        devices: Devices | None = None,
    ) -> None:
        self.hardware = hardware
        self.config = config or MeasureConfig()
        self.devices = devices
        if devices is None:
            check_device(hardware, self.config)
        self.server = MeasureServer(hardware.target if devices is None else Hardware.local().target)
        self.reference = reference or self._calibrate()
        self._built = 0
        self._checking = threading.Lock()
        # One for good: a measuring process that is started anew dies with the thread that did it.
        self._builder = ThreadPoolExecutor(1)

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop the measuring process."""
        self._builder.shutdown()
        self.server.close()

    def measure(
        self, task: Task, candidates: Sequence[Candidate], best_s: float | None = None
    ) -> list[Measurement]:
        """Build all candidates, then run each one alone; see :meth:`begin`."""
        with self.begin(task, candidates) as building:
            return building.run(best_s)

    def begin(self, task: Task, candidates: Sequence[Candidate]) -> Building[list[Outcome | None]]:
        """Begin to build candidates; they run when the caller asks for it.

        Until then nothing else may be measured.

        Parameters
        ----------
        task
            The task that all candidates compute.
        candidates
            The programs to measure.
        """
        jobs = [self._build_job(candidate) for candidate in candidates]

        def build() -> list[Outcome | None]:
            outcomes = iter(self.server.work([job for job in jobs if job is not None]))
            return [None if job is None else next(outcomes) for job in jobs]

        def run(builds: list[Outcome | None], best_s: float | None) -> list[Measurement]:
            def finish(number: int) -> Measurement:
                nonlocal best_s
                candidate = candidates[number]
                to_beat = best_s if candidate.race else None
                measurement = self._finish(task, candidate, jobs[number], builds[number], to_beat)
                if measurement.latency_s is not None and not measurement.raced:
                    best_s = min(best_s or measurement.latency_s, measurement.latency_s)
                return measurement

            finished: list[Measurement] = []
            try:
                if self.devices is None:
                    finished.extend(map(finish, range(len(candidates))))
                else:
                    with ThreadPoolExecutor(self.devices.gather() or 1) as threads:
                        finished.extend(threads.map(finish, range(len(candidates))))
            except MeasureError as error:
                error.finished = believable(finished)
                raise
            return confirmed(self, finished)

        return Building(self._builder, build, run)

    def run_job(self, job: Job) -> Outcome:
        """Do a job that is not a build, here or on a device of the fleet."""
        return self.server.work([job])[0] if self.devices is None else self.devices.run(job)

    def run_library(
        self, path: Path, arguments: Any, best_s: float | None = None
    ) -> tuple[Outcome, float | None]:
        """Run a built library; return the outcome and its corrected latency in seconds.

        A slow moment slows down each program differently, and one that it slows down less than the
        canaries looks too fast. One that would be the best so far in such a moment is therefore run
        again until the moment is over; the run that had to be corrected least counts.
        """
        job = RunJob(
            path=str(path),
            arguments=arguments,
            config=self.config,
            best_s=best_s,
            reference=self.reference,
        )
        outcome, latency_s = self._timed(job)
        for _ in range(_PATIENCE):
            if latency_s is None or _slow_down(outcome, latency_s) <= DOUBTFUL:
                break
            if best_s is not None and latency_s >= best_s:
                break
            again, again_s = self._timed(job)
            if again_s is not None and _slow_down(again, again_s) < _slow_down(outcome, latency_s):
                outcome, latency_s = again, again_s
        return outcome, latency_s

    def run_program(
        self,
        task: Task,
        program: Program | None,
        path: Path,
        arguments: Any,
        best_s: float | None = None,
    ) -> tuple[Outcome, float | None]:
        """Run a built program of a task, the untuned one if none is given; see :meth:`run_library`.

        A measurer that goes by what a program is, not by what it was built to, does that here.
        """
        return self.run_library(path, arguments, best_s)

    def _timed(self, job: RunJob) -> tuple[Outcome, float | None]:
        outcome = self.run_job(job)
        timing = outcome.timing
        return outcome, None if timing is None else timing.latency_s(self.reference)

    def build_job(
        self,
        mod: Any,
        path: Path,
        *,
        target: dict[str, Any] | None = None,
        keep_layout: bool = False,
    ) -> BuildJob:
        """Describe the build of a module to the library ``path``, for the hardware if no target."""
        if target is None and self.devices is not None:
            target = self.devices.target
        return BuildJob(
            mod_json=module_to_json(mod),
            path=str(path),
            target=target,
            keep_layout=keep_layout,
            timeout_secs=self.config.build_timeout_secs,
            memory_bytes=self.config.memory_bytes,
        )

    def _build_job(self, candidate: Candidate) -> BuildJob | None:
        if candidate.schedule is None:
            return None
        self._built += 1
        return self.build_job(candidate.schedule.mod, self.server.folder / f"{self._built}.so")

    def _finish(
        self,
        task: Task,
        candidate: Candidate,
        job: BuildJob | None,
        build: Outcome | None,
        best_s: float | None,
    ) -> Measurement:
        program = candidate.program
        if candidate.schedule is None or job is None or build is None:
            why = DesignSpace(task).refusal(program) or "does not pass the postprocessors"
            return Measurement(program, Status.INVALID, error=why)
        if build.error is not None:
            status = Status.BUILD_TIMEOUT if build.timed_out else Status.BUILD_ERROR
            return Measurement(program, status, error=build.error)
        veto = why_not_run(build.kernels, self.hardware.target)
        if veto is not None:
            Path(job.path).unlink()
            return Measurement(program, Status.INVALID, build_secs=build.elapsed_secs, error=veto)
        arguments = entry_argument_shapes(candidate.schedule.mod)
        run, latency_s = self.run_program(task, program, Path(job.path), arguments, best_s)
        Path(job.path).unlink()
        if run.timing is None:
            status = Status.RUN_TIMEOUT if run.timed_out else Status.RUN_ERROR
            return Measurement(
                program, status, build_secs=build.elapsed_secs, error=run.error or "no timing"
            )
        wrong = None
        if self.config.check_output:
            with self._checking:
                wrong = self._check(task, candidate.schedule)
        return Measurement(
            program,
            Status.WRONG_OUTPUT if wrong else Status.OK,
            latency_s=None if wrong else latency_s,
            run_secs=run.timing.run_secs,
            canary_compute=run.timing.canary_compute,
            canary_memory=run.timing.canary_memory,
            raced=run.timing.raced,
            build_secs=build.elapsed_secs,
            error=wrong,
        )

    def _check(self, task: Task, schedule: Any) -> str | None:
        """Compare with the unscheduled program; return what is wrong."""
        reference = self.server.folder / f"reference-{task.workload_id}.so"
        checked = self.server.folder / "checked.so"
        builds = [self.build_job(schedule.mod, checked, keep_layout=True)]
        if not reference.exists():
            target = None if self.hardware.kind == "cpu" else {"kind": "llvm"}
            builds.append(self.build_job(task.mod, reference, target=target, keep_layout=True))
        for build in self.server.work(builds):
            if build.error is not None:
                return f"could not be built for checking: {build.error}"
        check = CheckJob(
            path=str(checked),
            reference_path=str(reference),
            arguments=argument_shapes(task.mod),
            timeout_secs=self.config.run_timeout_secs + self.config.build_timeout_secs,
            memory_bytes=self.config.memory_bytes,
        )
        return self.run_job(check).error

    def _calibrate(self) -> CanaryTimes:
        """Time the canaries for a moment; the fast end of what they take is the reference."""
        outcome = self.run_job(CanaryJob(samples=_CALIBRATION_SAMPLES))
        if outcome.timing is None:
            raise MeasureError(f"the canaries do not run on this machine: {outcome.error}")
        return CanaryTimes(
            compute_s=float(np.quantile(outcome.timing.canary_compute, _REFERENCE_QUANTILE)),
            memory_s=float(np.quantile(outcome.timing.canary_memory, _REFERENCE_QUANTILE)),
        )


def _slow_down(outcome: Outcome, latency_s: float) -> float:
    """By which factor a run was corrected."""
    assert outcome.timing is not None
    return min(outcome.timing.run_secs) / latency_s
