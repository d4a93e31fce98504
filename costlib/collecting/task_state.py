"""A task while its programs are collected."""

from __future__ import annotations

from costlib.search.history import TaskHistory
from costlib.space.design_space import DesignSpace
from costlib.workloads.task import Task


class TaskState:
    """A task, its design space and what was measured of it.

    Parameters
    ----------
    task
        The task.

    Attributes
    ----------
    history
        What was measured.
    exhausted
        Whether the space has no more programs.
    """

    def __init__(self, task: Task) -> None:
        self.task = task
        self.space = DesignSpace(task)
        self.history = TaskHistory()
        self.exhausted = False

    @property
    def best_s(self) -> float | None:
        """The best latency known that is not rough, in seconds."""
        timed = self.history.timed_well
        return timed[0][0] if timed else None
