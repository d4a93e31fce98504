"""A tuning run: the scheduler picks a task, its search proposes, the machine decides.

What was measured is kept as a dataset in the run's folder, batch by batch, so that a run that is
killed goes on where it stopped, and can be trained on.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import polars as pl

from costlib.data.dataset import Dataset
from costlib.data.records import measurement_of, measurement_row
from costlib.data.task_tables import register_sketches, register_workloads
from costlib.hardware import Hardware
from costlib.hub.bundle import Bundle
from costlib.hub.priors import PriorBank
from costlib.measure.building import Building
from costlib.measure.measurement import Candidate, Measurement
from costlib.schema import CanaryTimes
from costlib.search.config import SearchConfig
from costlib.search.run_model import RunModel
from costlib.search.strategy import Proposal, strategy_class
from costlib.search.tasks.planning import Plan, Planner
from costlib.search.tasks.relatives import Relatives
from costlib.search.tasks.scheduler import TaskScheduler
from costlib.workloads.task import Task

TRIALS = "trials"
"""Folder of the dataset inside the run's."""


class Device(Protocol):
    """What measures; :class:`costlib.measure.measurer.Measurer`, or a simulated one."""

    reference: CanaryTimes

    def begin(self, task: Task, candidates: Sequence[Candidate]) -> Building[Any]:
        """Begin to build programs of a task, to be run when the caller asks for it."""


class Batch(NamedTuple):
    """A finished batch, for whoever watches the run.

    Attributes
    ----------
    task
        Index of the task.
    proposals, measurements
        What was proposed and what came out.
    search_s, measure_s
        Seconds spent on proposing and learning while nothing was built, and on building and
        running.
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
        known = [memory, bundle.priors if bundle else None] if self.config.bank else []
        banks = [bank for bank in known if bank is not None]
        self.searches = [
            strategy_class(self.config.strategy)(task, hardware, self._model, self.config, seed)
            for task in tasks
        ]
        relatives = Relatives(self.searches, banks, self.config.diffusion)
        self._planner = Planner(self.searches, scheduler, relatives, self.config)
        self._dataset = Dataset.create(folder / TRIALS)
        register_workloads(self._dataset, tasks, {task.workload_id for task in tasks})
        register_sketches(
            self._dataset, [sketch for s in self.searches for sketch in s.space.sketches]
        )
        reference = self._dataset.add_hardware(hardware, device.reference)
        device.reference = reference or device.reference
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
        planned: Plan | None = None
        while self.trials < trials:
            if interrupted is not None and interrupted():
                return "it was interrupted"
            if deadline is not None and time.monotonic() > deadline:
                return "time is up"
            plan = planned or self._planner.next(trials, trials - self.trials, min_gain)
            if isinstance(plan, str):
                return plan
            batch, planned = self._measured(plan, trials, min_gain)
            if on_batch is not None:
                on_batch(batch)
        return "all trials were spent"

    def _measured(self, plan: Plan, trials: int, min_gain: float) -> tuple[Batch, Plan | None]:
        """Measure a batch and learn from it; the next one is planned while it is built."""
        task, proposals, search_s = plan
        search = self.searches[task]
        search.begin(proposals)
        began = time.perf_counter()
        with self._device.begin(search.task, [p.candidate for p in proposals]) as building:
            following = self._planner.ahead(plan, trials, trials - self.trials, min_gain)
            planned = time.perf_counter()
            measurements = building.run(search.best_s)
        measured = time.perf_counter()
        self._dataset.append_measurements(
            self._hardware.hardware_id,
            [
                measurement_row(measurement, self._seed, proposal.origin)
                for proposal, measurement in zip(proposals, measurements, strict=True)
            ],
        )
        before_s = search.best_s
        search.observe(proposals, measurements)
        self._model.refit()
        for best_s in self._steps(before_s, measurements, search.best_s):
            self._scheduler.observe(task, best_s)
        self.trials += len(measurements)
        waited = max(0.0, planned - building.built_at)
        search_s += waited + time.perf_counter() - measured
        return Batch(task, proposals, measurements, search_s, measured - began - waited), following

    def _steps(
        self, best_s: float | None, measurements: Sequence[Measurement], after_s: float | None
    ) -> list[float | None]:
        """The best latency after each part of a batch, the parts being of the first ones' size."""
        known = [best_s, *(measurement.latency_s for measurement in measurements)]
        ends = range(self.config.batch, len(measurements), self.config.batch)
        parts = [[s for s in known[: end + 1] if s is not None] for end in ends]
        return [*(min(part, default=None) for part in parts), after_s]

    def _recall(self) -> list[tuple[int, Measurement]]:
        rows = self._dataset.scan().filter(pl.col("hardware") == self._hardware.hardware_id)
        numbers = {s.task.workload_id: i for i, s in enumerate(self.searches)}
        by_task: dict[int, list[Measurement]] = {}
        for row in rows.sort("measured_at").collect().iter_rows(named=True):
            if row["workload_id"] in numbers:
                by_task.setdefault(numbers[row["workload_id"]], []).append(measurement_of(row))
        for task, measurements in by_task.items():
            search = self.searches[task]
            search.recall(measurements)
            for _ in range(0, len(measurements), self.config.batch):
                self._scheduler.observe(task, search.best_s)
            self.trials += len(measurements)
        self._model.refit()
        return [(task, m) for task, measurements in by_task.items() for m in measurements]
