"""A tuning run: the scheduler picks a task, its search proposes, the machine decides.

What was measured is kept as a dataset in the run's folder, batch by batch, so that a run that is
killed goes on where it stopped, and can be trained on.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import polars as pl

from costlib.data.dataset import Dataset
from costlib.data.records import measurement_row
from costlib.data.task_tables import register_sketches, register_workloads
from costlib.hardware import Hardware
from costlib.hub.bundle import Bundle
from costlib.hub.priors import PriorBank, flat_extents, similarity
from costlib.measure.measurer import Candidate, Measurement
from costlib.schema import CanaryTimes, Status
from costlib.search.config import SearchConfig
from costlib.search.run_model import RunModel
from costlib.search.scheduler import TaskScheduler
from costlib.search.strategy import PRIORS, Prior, Proposal, strategy_class
from costlib.space.program import Program
from costlib.workloads.task import Task

TRIALS = "trials"
"""Folder of the dataset inside the run's."""

_CLOSING_SHARE = 1 / 8
"""Of the trials at most, to measure the best programs again that were measured only once."""


class Device(Protocol):
    """What measures; :class:`costlib.measure.measurer.Measurer`, or a simulated one."""

    reference: CanaryTimes

    def measure(
        self, task: Task, candidates: Sequence[Candidate], best_s: float | None = None
    ) -> list[Measurement]:
        """Measure programs of a task, one measurement for each."""


class Batch(NamedTuple):
    """A finished batch, for whoever watches the run.

    Attributes
    ----------
    task
        Index of the task.
    proposals, measurements
        What was proposed and what came out.
    search_s, measure_s
        Seconds spent on proposing and learning, and on building and running.
    """

    task: int
    proposals: Sequence[Proposal]
    measurements: Sequence[Measurement]
    search_s: float
    measure_s: float


class TuningRun:
    """A run over the tasks of one or several networks.

    Parameters
    ----------
    tasks
        What to tune, each workload once.
    scheduler
        Divides the trials among them.
    hardware
        What to tune for.
    device
        What measures.
    folder
        The run's folder; what an earlier session measured in it is taken up.
    bundle
        Models and priors; none for a cold start.
    config, seed
        How to search.
    memory
        The best programs of the user's earlier runs.

    Attributes
    ----------
    searches
        The state of each task.
    trials
        Programs measured, those of earlier sessions included.
    recalled
        What earlier sessions measured: (index of the task, measurement).
    """

    def __init__(
        self,
        tasks: Sequence[Task],
        scheduler: TaskScheduler,
        hardware: Hardware,
        device: Device,
        folder: Path,
        *,
        bundle: Bundle | None = None,
        config: SearchConfig | None = None,
        seed: int = 0,
        memory: PriorBank | None = None,
    ) -> None:
        self.config = config or SearchConfig()
        self._scheduler = scheduler
        self._hardware = hardware
        self._device = device
        self._seed = seed
        self._model = RunModel(bundle, self.config, seed)
        banks = [memory, bundle.priors if bundle else None]
        self._banks = [bank for bank in banks if bank is not None] if self.config.bank else []
        self.searches = [
            strategy_class(self.config.strategy)(task, hardware, self._model, self.config, seed)
            for task in tasks
        ]
        self._extents = [flat_extents(shape for _, shape in task.arguments) for task in tasks]
        self._dataset = Dataset.create(folder / TRIALS)
        register_workloads(self._dataset, tasks, {task.workload_id for task in tasks})
        register_sketches(
            self._dataset, [sketch for s in self.searches for sketch in s.space.sketches]
        )
        reference = self._dataset.add_hardware(hardware, device.reference)
        device.reference = reference or device.reference
        self._order = self._priors_first()
        self.trials = 0
        self.recalled = self._recall()

    def run(
        self,
        trials: int,
        *,
        deadline: float | None = None,
        min_gain: float = 0.0,
        interrupted: Callable[[], bool] | None = None,
        on_batch: Callable[[Batch], None] | None = None,
    ) -> str:
        """Measure until the budget is spent, or nothing more is to be gained.

        Parameters
        ----------
        trials
            Programs to measure in all, those of earlier sessions included.
        deadline
            Stop after the batch in which ``time.monotonic()`` passes this.
        min_gain
            Stop when another batch is expected to lower the objective by less than this share.
        interrupted
            Asked before each batch whether to stop.
        on_batch
            Called after each batch.

        Returns
        -------
        str
            Why it stopped.
        """
        while self.trials < trials:
            if interrupted is not None and interrupted():
                return "it was interrupted"
            if deadline is not None and time.monotonic() > deadline:
                return "time is up"
            unsure = [i for i in self._order if self.searches[i].is_unsure]
            left, kept = trials - self.trials, int(_CLOSING_SHARE * trials)
            closing = left <= min(len(unsure), kept)
            choice = self._scheduler.choose(
                unsure if closing else [i for i in self._order if not self.searches[i].exhausted]
            )
            if choice is None:
                return "every program of every task was measured"
            if choice.gain < min_gain and not closing:
                return (
                    f"another batch is expected to gain {choice.gain:.2%}, less than {min_gain:.2%}"
                )
            batch: Batch | None
            if closing:
                batch = self._measured(choice.task, self.searches[choice.task].best(), 0.0)
            else:
                fresh = left - min(len({*unsure, choice.task}), kept)
                batch = self._batch(choice.task, max(fresh, 1))
            if batch is not None and on_batch is not None:
                on_batch(batch)
        return "all trials were spent"

    def _batch(self, task: int, most: int) -> Batch | None:
        search = self.searches[task]
        started = time.perf_counter()
        proposals = search.repeated()
        if fresh := min(self.config.batch, most) - len(proposals):
            proposals += search.propose(fresh, self._priors(task))
        if not proposals:
            return None
        return self._measured(task, proposals, time.perf_counter() - started)

    def _measured(self, task: int, proposals: Sequence[Proposal], propose_s: float) -> Batch:
        search = self.searches[task]
        started = time.perf_counter()
        measurements = self._device.measure(
            search.task, [proposal.candidate for proposal in proposals], search.best_s
        )
        measured = time.perf_counter()
        self._dataset.append_measurements(
            self._hardware.hardware_id,
            [
                measurement_row(measurement, self._seed, proposal.origin)
                for proposal, measurement in zip(proposals, measurements, strict=True)
            ],
        )
        search.observe(proposals, measurements)
        self._model.refit()
        self._scheduler.observe(task, search.best_s)
        self.trials += len(measurements)
        search_s = propose_s + time.perf_counter() - measured
        return Batch(task, proposals, measurements, search_s, measured - started)

    def _priors(self, task: int) -> list[Prior]:
        """Good programs of tasks like this one: of this run, of earlier ones, of the bundle."""
        search = self.searches[task]
        found = []
        if self.config.diffusion:
            mates = [
                (similarity(self._extents[task], self._extents[other]), mate)
                for other, mate in enumerate(self.searches)
                if other != task and mate.elite and self._alike(task, other)
            ]
            mates.sort(key=lambda pair: -pair[0])
            found = [
                Prior(program.sketch_id, program.decisions)
                for _, mate in mates
                for _, program in mate.elite[:2]
            ]
        if not search.elite:
            for bank in self._banks:
                found += search.priors_in(bank)
        return found[: 2 * PRIORS]

    def _alike(self, one: int, other: int) -> bool:
        a, b = self.searches[one], self.searches[other]
        return a.space.cluster == b.space.cluster and len(self._extents[one]) == len(
            self._extents[other]
        )

    def _priors_first(self) -> list[int]:
        """Tasks in the order of their first batch: of each cluster the most typical one first."""
        count = len(self.searches)
        typical = np.zeros(count)
        for one in range(count):
            mates = [other for other in range(count) if other != one and self._alike(one, other)]
            if mates:
                pairs = (similarity(self._extents[one], self._extents[m]) for m in mates)
                typical[one] = np.mean(list(pairs))
        return sorted(range(count), key=lambda task: -typical[task])

    def _recall(self) -> list[tuple[int, Measurement]]:
        rows = self._dataset.scan().filter(pl.col("hardware") == self._hardware.hardware_id)
        numbers = {s.task.workload_id: i for i, s in enumerate(self.searches)}
        by_task: dict[int, list[Measurement]] = {}
        for row in rows.sort("measured_at").collect().iter_rows(named=True):
            if row["workload_id"] in numbers:
                by_task.setdefault(numbers[row["workload_id"]], []).append(_measurement(row))
        for task, measurements in by_task.items():
            search = self.searches[task]
            search.recall(measurements)
            for _ in range(0, len(measurements), self.config.batch):
                self._scheduler.observe(task, search.best_s)
            self.trials += len(measurements)
        self._model.refit()
        return [(task, m) for task, measurements in by_task.items() for m in measurements]


def _measurement(row: dict[str, Any]) -> Measurement:
    return Measurement(
        Program.from_row(row["workload_id"], row["sketch_id"], row["decisions"]),
        Status(row["status"]),
        latency_s=row["latency_s"],
        run_secs=tuple(row["run_secs"]),
        canary_compute=tuple(row["canary_compute"] or ()),
        canary_memory=tuple(row["canary_memory"] or ()),
        raced=row["raced"],
        build_secs=row["build_secs"],
        error=row["error"],
    )
