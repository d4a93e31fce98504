"""Ansor's task scheduler, with its objectives, as one of MetaSchedule."""

from __future__ import annotations

from typing import Any

import numpy as np

from costlib.metaschedule.results import latency_s
from costlib.search.tasks.scheduler import Objective, TaskScheduler
from costlib.tvm_compat import ms
from costlib.tvm_compat.api import derived_object


@derived_object
class GradientScheduler(ms.task_scheduler.PyTaskScheduler):  # type: ignore[misc]
    """Ansor's task scheduler with its objectives, see :class:`TaskScheduler`.

    Parameters
    ----------
    objective
        ``"sum"`` or ``"early-stop"``: what can be said of the tasks of one network.
    """

    def __init__(self, objective: Objective = "sum") -> None:
        super().__init__()
        self._objective = objective
        self._scheduler: TaskScheduler | None = None
        self._best_s: dict[int, float] = {}
        self._running: int | None = None

    def next_task_id(self) -> int:
        """Choose the next task; -1 if all are done."""
        outer = self._outer()
        records = list(outer.tasks_)
        if self._scheduler is None:
            weights = np.array([[float(record.task_weight) for record in records]])
            flops = [float(record.flop) for record in records]
            self._scheduler = TaskScheduler(weights, self._objective, flops=flops)
        if self._running is not None:
            self._note(self._running, outer.join_running_task(self._running))
        open_tasks = [i for i, record in enumerate(outer.tasks_) if not record.is_terminated]
        choice = self._scheduler.choose(open_tasks)
        self._running = None if choice is None else choice.task
        return -1 if choice is None else choice.task

    def _note(self, task: int, results: Any) -> None:
        """Note the best latency of a task after a batch; an empty one says nothing."""
        found = [latency_s(result) for result in results or []]
        best = min([s for s in found if s is not None], default=None)
        if best is not None:
            self._best_s[task] = min(best, self._best_s.get(task, best))
        if found and self._scheduler is not None:
            self._scheduler.observe(task, self._best_s.get(task))
