"""costlib's measuring as a drop-in builder and runner for MetaSchedule.

For people who keep their own tuning script::

    from costlib.metaschedule.measuring import Builder, Runner

    builder = Builder(hardware)
    ms.tune_tasks(..., builder=builder, runner=Runner(builder))
"""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

from costlib.hardware import Hardware
from costlib.measure.config import MeasureConfig
from costlib.measure.measurer import Measurer
from costlib.schema import CanaryTimes
from costlib.tvm_compat import ms
from costlib.tvm_compat.api import derived_object


@derived_object
class Builder(ms.builder.PyBuilder):  # type: ignore[misc]
    """Builds in a fork server, on all cores.

    Parameters
    ----------
    hardware
        What to compile for; this machine's CPU if not given.
    config
        Repeats, limits and racing.
    reference
        The state of the machine that latencies are corrected to, see :class:`Measurer`.
    measurer
        What builds and runs, instead of one of its own with those settings.
    """

    def __init__(
        self,
        hardware: Hardware | None = None,
        config: MeasureConfig | None = None,
        reference: CanaryTimes | None = None,
        *,
        measurer: Measurer | None = None,
    ) -> None:
        super().__init__()
        self.measurer = measurer or Measurer(hardware or Hardware.local(), config, reference)
        self._numbers = itertools.count()

    def build(self, build_inputs: list[Any]) -> list[Any]:
        """Compile each input in a process of its own."""
        jobs = [self.measurer.build_job(item.mod, self._artifact()) for item in build_inputs]
        return [
            ms.builder.BuilderResult(None if outcome.error else job.path, outcome.error)
            for job, outcome in zip(jobs, self.measurer.server.work(jobs), strict=True)
        ]

    def _artifact(self) -> Path:
        # MetaSchedule's RemoveBuildArtifact removes the folder that an artifact lies in.
        folder = self.measurer.server.folder / str(next(self._numbers))
        folder.mkdir()
        return folder / "program.so"


@derived_object
class Runner(ms.runner.PyRunner):  # type: ignore[misc]
    """Runs each program alone, between canaries, and reports its corrected latency.

    Within a batch, which MetaSchedule fills with programs of one task, a program that is much
    slower than the best before it is run once and not repeated.

    Parameters
    ----------
    builder
        The :class:`Builder` whose artifacts it runs.
    """

    def __init__(self, builder: Builder) -> None:
        super().__init__()
        self.measurer = builder.measurer

    def run(self, runner_inputs: list[Any]) -> list[Any]:
        """Run the artifacts one after the other."""
        best_s: float | None = None
        futures = []
        for item in runner_inputs:
            arguments = tuple(
                (str(info.dtype), tuple(int(n) for n in info.shape)) for info in item.args_info
            )
            outcome, latency_s = self.measurer.run_library(
                Path(str(item.artifact_path)), arguments, best_s
            )
            if outcome.timing is None or latency_s is None:
                futures.append(_Done(ms.runner.RunnerResult(None, outcome.error)))
                continue
            if not outcome.timing.raced:
                best_s = min(best_s or latency_s, latency_s)
            futures.append(_Done(ms.runner.RunnerResult([latency_s], None)))
        return futures


@derived_object
class _Done(ms.runner.PyRunnerFuture):  # type: ignore[misc]
    def __init__(self, result: Any) -> None:
        super().__init__()
        self._result = result

    def done(self) -> bool:
        return True

    def result(self) -> Any:
        return self._result
