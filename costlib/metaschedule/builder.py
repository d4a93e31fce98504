"""costlib's fork server as a builder of MetaSchedule."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

from costlib.canary_times import CanaryTimes
from costlib.hardware import Hardware
from costlib.measure.config import MeasureConfig
from costlib.measure.known_good import check_machine
from costlib.measure.measurer import Measurer
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
        """Compile each input in a process of its own.

        Raises
        ------
        MeasureError
            The machine is at fault for what failed; TVM passes it on as a ``RuntimeError``.
        """
        jobs = [self.measurer.build_job(item.mod, self._artifact()) for item in build_inputs]
        outcomes = self.measurer.server.work(jobs)
        if outcomes and all(outcome.error is not None for outcome in outcomes):
            check_machine(self.measurer)
        return [
            ms.builder.BuilderResult(None if outcome.error else job.path, outcome.error)
            for job, outcome in zip(jobs, outcomes, strict=True)
        ]

    def close(self) -> None:
        """Stop the measuring process; nothing can be built or run after that."""
        self.measurer.close()

    def _artifact(self) -> Path:
        # MetaSchedule's RemoveBuildArtifact removes the folder that an artifact lies in.
        folder = self.measurer.server.folder / str(next(self._numbers))
        folder.mkdir()
        return folder / "program.so"
