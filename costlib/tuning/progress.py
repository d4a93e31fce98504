"""Where a tuning run stands, for whoever watches it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from costlib.schema import Origin
from costlib.tuning.result import CurvePoint
from costlib.tuning.run import Batch
from costlib.workloads.task import Task


@dataclass
class TuneProgress:
    """Where a tuning run stands; the same object is updated all along.

    Attributes
    ----------
    stage
        What is being done, in words.
    tasks
        The tasks of all networks, with the calls of all together as their weight.
    trials, total
        Programs measured, and to be measured; ``None`` until that is known.
    best_s
        Best latency of each task so far, in seconds; ``None`` if nothing ran yet.
    task_trials
        Programs measured of each task.
    elapsed_s, search_s, measure_s
        See :class:`costlib.tuning.result.TuneResult`.
    curve
        Each trial in order.
    """

    stage: str
    total: int | None
    tasks: Sequence[Task] = ()
    trials: int = 0
    best_s: list[float | None] = field(default_factory=list)
    task_trials: list[int] = field(default_factory=list)
    elapsed_s: float = 0.0
    search_s: float = 0.0
    measure_s: float = 0.0
    curve: list[CurvePoint] = field(default_factory=list)


class Progress:
    """Keeps a run's :class:`TuneProgress` up to date.

    Parameters
    ----------
    on_progress
        Called whenever there is something new to show.
    """

    def __init__(self, on_progress: Callable[[TuneProgress], None] | None) -> None:
        self.state = TuneProgress("loading", None)
        self._began = time.monotonic()
        self._tell = on_progress or (lambda state: None)

    def elapsed_s(self) -> float:
        """Return the seconds since the session began."""
        return time.monotonic() - self._began

    def begin(self, tasks: Sequence[Task], trials: int) -> None:
        """Take note of the tasks, and of how many programs are to be measured."""
        self.state.tasks, self.state.total = tasks, trials
        self.state.best_s = [None] * len(tasks)
        self.state.task_trials = [0] * len(tasks)

    def report(self, stage: str) -> None:
        """Say what is being done."""
        self.state.stage = stage
        self.state.elapsed_s = self.elapsed_s()
        self._tell(self.state)

    def add(self, batch: Batch) -> None:
        """Take up a finished batch; its task is an index into all tasks."""
        state, task = self.state, batch.task
        trials = 0
        for proposal, one, best_s in zip(
            batch.proposals, batch.measurements, batch.best_after_s, strict=True
        ):
            if proposal.origin is Origin.CHECKED:
                continue
            trials += 1
            state.curve.append(
                CurvePoint(
                    elapsed_s=batch.elapsed_s, task=task, latency_s=one.latency_s, best_s=best_s
                )
            )
        state.trials += trials
        state.task_trials[task] += trials
        state.best_s[task] = batch.best_after_s[-1] if batch.best_after_s else state.best_s[task]
        state.search_s += batch.search_s
        state.measure_s += batch.measure_s
        self.report(state.stage)
