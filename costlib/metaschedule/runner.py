"""costlib's timing, between canaries, as a runner of MetaSchedule."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from costlib.measure.known_good import check_machine
from costlib.metaschedule.builder import Builder
from costlib.tvm_compat import ms
from costlib.tvm_compat.api import derived_object


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
        """Run the artifacts one after the other.

        Raises
        ------
        MeasureError
            The machine is at fault for what failed; TVM passes it on as a ``RuntimeError``.
        """
        best_s: float | None = None
        futures = []
        failed = 0
        for item in runner_inputs:
            arguments = tuple(
                (str(info.dtype), tuple(int(n) for n in info.shape)) for info in item.args_info
            )
            outcome, latency_s = self.measurer.run_library(
                Path(str(item.artifact_path)), arguments, best_s
            )
            if outcome.timing is None or latency_s is None:
                futures.append(_Done(ms.runner.RunnerResult(None, outcome.error)))
                failed += 1
                continue
            if not outcome.timing.raced:
                best_s = min(best_s or latency_s, latency_s)
            futures.append(_Done(ms.runner.RunnerResult([latency_s], None)))
        if failed and failed == len(runner_inputs):
            check_machine(self.measurer)
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
