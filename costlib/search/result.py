"""What a tuning run reports: while it goes on, and at its end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from pydantic import BaseModel, ConfigDict

from costlib.search.comparison import Comparison
from costlib.workloads.task import Task


class TaskResult(BaseModel):
    """What tuning did for one task.

    Attributes
    ----------
    latency_before_s, latency_after_s
        Seconds of one call, untuned and with the best program found; ``None`` if it did not run
        or was not tuned.
    """

    model_config = ConfigDict(frozen=True)

    name: str
    workload_id: str
    weight: int
    flops: float
    trials: int
    latency_before_s: float | None
    latency_after_s: float | None

    @property
    def gflops_per_s(self) -> float | None:
        """Throughput of the best program."""
        return self.flops / self.latency_after_s / 1e9 if self.latency_after_s else None


class CurvePoint(BaseModel):
    """One trial of a tuning run.

    Attributes
    ----------
    elapsed_s
        Seconds since the run began.
    task
        Index into the result's tasks.
    latency_s
        What was measured; ``None`` if the program failed.
    """

    model_config = ConfigDict(frozen=True)

    elapsed_s: float
    task: int
    latency_s: float | None


class TuneResult(Comparison):
    """What a tuning run found, with the whole-network figures of :class:`Comparison`.

    Attributes
    ----------
    trials
        Programs measured.
    elapsed_s
        Seconds that everything took.
    tasks, curve
        What was done for each task, and each trial in order.
    library
        The compiled network.
    """

    network: str
    bundle: str
    hardware_id: str
    seed: int
    trials: int
    elapsed_s: float
    tasks: tuple[TaskResult, ...]
    curve: tuple[CurvePoint, ...]
    library: str


@dataclass
class TuneProgress:
    """Where a tuning run stands; the same object is updated all along.

    Attributes
    ----------
    stage
        What is being done, in words.
    tasks
        The network's tasks.
    trials, total
        Programs measured, and to be measured.
    best_s
        Best latency of each task so far, in seconds; ``None`` if nothing ran yet.
    task_trials
        Programs measured of each task.
    elapsed_s
        Seconds since the run began.
    """

    stage: str
    total: int
    tasks: Sequence[Task] = ()
    trials: int = 0
    best_s: list[float | None] = field(default_factory=list)
    task_trials: list[int] = field(default_factory=list)
    elapsed_s: float = 0.0
