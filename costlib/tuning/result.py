"""What a tuning run reports: while it goes on, and at its end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from pydantic import BaseModel, ConfigDict

from costlib.search.standings import Standings
from costlib.tuning.comparison import Comparison
from costlib.workloads.task import Task


class TaskResult(BaseModel):
    """What tuning did for one task.

    Attributes
    ----------
    calls
        How often each network calls it.
    latency_before_s, latency_after_s
        Seconds of one call, untuned and with the best program found; ``None`` if it did not run
        or was not tuned.
    """

    model_config = ConfigDict(frozen=True)

    name: str
    workload_id: str
    calls: dict[str, int]
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
        Seconds since the session began; 0 for the trials of earlier ones.
    task
        Index into the result's tasks.
    latency_s
        What was measured; ``None`` if the program failed.
    best_s
        The task's best latency after that; it rises where the best program, measured again, turns
        out to be slower.
    """

    model_config = ConfigDict(frozen=True)

    elapsed_s: float
    task: int
    latency_s: float | None
    best_s: float | None


class NetworkResult(Comparison):
    """A tuned network, measured as a whole.

    Attributes
    ----------
    network
        Its name.
    library
        The compiled network.
    """

    network: str
    library: str


class TuneResult(BaseModel):
    """What a tuning run found.

    Attributes
    ----------
    networks
        Each network, compiled and compared.
    trials
        Programs measured.
    elapsed_s, search_s, measure_s
        Seconds that everything took in this session, that proposing and learning took while nothing
        was built, and that building and running took.
    stopped
        Why it came to its end.
    tasks, curve
        What was done for each task, and each trial in order.
    """

    model_config = ConfigDict(frozen=True)

    networks: tuple[NetworkResult, ...]
    bundle: str
    hardware_id: str
    seed: int
    trials: int
    elapsed_s: float
    search_s: float
    measure_s: float
    stopped: str
    tasks: tuple[TaskResult, ...]
    curve: tuple[CurvePoint, ...]


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
        Programs measured, and to be measured.
    best_s
        Best latency of each task so far, in seconds; ``None`` if nothing ran yet.
    task_trials
        Programs measured of each task.
    elapsed_s, search_s, measure_s
        See :class:`TuneResult`.
    curve
        Each trial in order.
    """

    stage: str
    total: int
    tasks: Sequence[Task] = ()
    trials: int = 0
    best_s: list[float | None] = field(default_factory=list)
    task_trials: list[int] = field(default_factory=list)
    elapsed_s: float = 0.0
    search_s: float = 0.0
    measure_s: float = 0.0
    curve: list[CurvePoint] = field(default_factory=list)
    _standings: dict[int, Standings] = field(default_factory=dict, repr=False)

    def add(
        self, task: int, program_id: str, latency_s: float | None, elapsed_s: float = 0.0
    ) -> None:
        """Take up a trial."""
        standings = self._standings.setdefault(task, Standings())
        standings.add(program_id, latency_s)
        best_s = standings.best_s
        self.curve.append(
            CurvePoint(elapsed_s=elapsed_s, task=task, latency_s=latency_s, best_s=best_s)
        )
        self.trials += 1
        self.task_trials[task] += 1
        self.best_s[task] = best_s
