"""Which tasks a run leaves as TVM compiles them, and why."""

from __future__ import annotations

from collections.abc import Sequence

from costlib.search.strategy import Strategy
from costlib.space.design_space import DesignSpace
from costlib.tuning.session import Baseline
from costlib.workloads.task import Task

_NOT_WORTH_IT = "it takes too little of the time to be worth a trial"
_NOT_REACHED = "the run ended before its turn came"
WRONG = "with a tuned program of it the network computes something else"
_NONE_VALID = "none of its programs is valid"


def reasons_to_leave(tasks: Sequence[Task], baseline: Baseline) -> list[str | None]:
    """Say of each task why it is not searched; ``None`` of those that are."""
    return [
        DesignSpace(task).left if task.workload_id in baseline.chosen else _NOT_WORTH_IT
        for task in tasks
    ]


def outcome_to_leave(search: Strategy) -> str | None:
    """Say why a task that was searched keeps its untuned program; ``None`` if it need not."""
    if search.history.best is not None:
        return None
    if count := len(search.history.programs):
        return f"none of the {count} programs that were measured runs"
    return _NONE_VALID if search.exhausted else _NOT_REACHED
