"""A tuning run: the scheduler picks a task, its search proposes, the machine decides.

What was measured is kept in the run's folder, batch by batch. A run that is killed goes through it
again exactly as it did the first time, without measuring, and then on from there.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, Protocol

from costlib.canary_times import CanaryTimes
from costlib.errors import MeasureError
from costlib.hardware import Hardware
from costlib.hub.bundle import Bundle
from costlib.hub.priors import PriorBank
from costlib.measure.building import Building
from costlib.measure.measurement import Candidate, Measurement
from costlib.schema import Origin
from costlib.search.config import SearchConfig
from costlib.search.run_model import RunModel
from costlib.search.strategy import Proposal
from costlib.search.tasks.planning import Plan, Planner
from costlib.search.tasks.relatives import Relatives
from costlib.search.tasks.scheduler import TaskScheduler
from costlib.tuning.trials import Record, Trials
from costlib.workloads.task import Task

_MOST_CHECKS = 4
"""Measurements of a task's best programs beyond its trials."""


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
    proposals, measurements, best_after_s
        What was proposed, what came out, and the task's best latency after each of them.
    search_s, measure_s, elapsed_s
        See :class:`costlib.tuning.trials.Record`; what was learnt in this session adds to
        ``search_s``.
    """

    task: int
    proposals: Sequence[Proposal]
    measurements: Sequence[Measurement]
    best_after_s: Sequence[float | None]
    search_s: float
    measure_s: float
    elapsed_s: float


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
    trials
        Keeps what was measured; what an earlier session measured is taken up.
    bundle
        Models and priors; none for a cold start.
    config, seed
        How to search.
    memory
        The best programs of the user's earlier runs.
    lesser
        Tasks that come last, with few trials each: they begin with programs of the others.

    Attributes
    ----------
    searches
        The state of each task.
    measured
        Programs measured, those of earlier sessions included.
    """

    def __init__(
        self,
        tasks: Sequence[Task],
        scheduler: TaskScheduler,
        hardware: Hardware,
        device: Device,
        trials: Trials,
        *,
        bundle: Bundle | None = None,
        config: SearchConfig | None = None,
        seed: int = 0,
        memory: PriorBank | None = None,
        lesser: Collection[int] = (),
    ) -> None:
        config = config or SearchConfig()
        self._scheduler = scheduler
        self._device = device
        self._trials = trials
        self._first_batch = config.planning.batch
        device.reference = trials.keep_reference(device.reference)
        self._model = RunModel(bundle, config.models, seed, device.reference)
        self.searches = [config.strategy.start(task, hardware, self._model, seed) for task in tasks]
        shipped = bundle.priors_for(hardware) if bundle else None
        banks = [bank for bank in (memory, shipped) if bank is not None]
        relatives = Relatives(self.searches, banks, config.relatives)
        self._planner = Planner(self.searches, scheduler, relatives, config.planning, lesser)
        trials.register(tasks, [sketch for s in self.searches for sketch in s.space.sketches])
        self.measured = 0
        self._began = time.perf_counter()
        self._earlier_s = 0.0

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
            Called after each batch, those of earlier sessions included.

        Returns
        -------
        str
            Why it stopped.
        """
        tell = on_batch or (lambda batch: None)
        planned: Plan | None = None
        recorded = list(self._recorded())
        for number, (task, record) in enumerate(recorded, start=1):
            is_last = number == len(recorded)
            batch, planned = self._replay(task, record, is_last, trials, min_gain)
            tell(batch)
        self._began = time.perf_counter()
        while self.measured < trials:
            if interrupted is not None and interrupted():
                return "it was interrupted"
            if deadline is not None and time.monotonic() > deadline:
                return "time is up"
            plan = planned or self._planner.next(trials, trials - self.measured, min_gain)
            if isinstance(plan, str):
                return plan
            following = partial(self._following, plan, trials, min_gain)
            batch, planned = self._measured(plan, following)
            tell(batch)
        return "all trials were spent"

    def check_best(
        self,
        interrupted: Callable[[], bool] | None = None,
        on_batch: Callable[[Batch], None] | None = None,
    ) -> None:
        """Measure best programs once more that may owe their place to luck; these are no trials.

        Where one turns out to be slower, the next best takes its place and is looked at as well.
        """
        for task, search in enumerate(self.searches):
            for _ in range(_MOST_CHECKS):
                if not search.is_unsure or (interrupted is not None and interrupted()):
                    break
                batch, _ = self._measured(Plan(task, search.best(Origin.CHECKED)), lambda: None)
                if on_batch is not None:
                    on_batch(batch)

    def expected_gain(self, trials: int) -> float | None:
        """Return what the scheduler expects of so many more trials: a share of the objective."""
        open_tasks = [task for task, search in enumerate(self.searches) if not search.exhausted]
        return self._scheduler.forecast(open_tasks, -(-trials // self._first_batch))

    def _following(self, plan: Plan, trials: int, min_gain: float) -> Plan | None:
        return self._planner.ahead(plan, trials, trials - self.measured, min_gain)

    def _measured(
        self, plan: Plan, following: Callable[[], Plan | None]
    ) -> tuple[Batch, Plan | None]:
        """Measure a batch and learn from it; the next one is planned while it is built.

        Of a batch that the machine fails at, what was measured before is kept.
        """
        search = self.searches[plan.task]
        search.begin(plan.proposals)
        began = time.perf_counter()
        with self._device.begin(search.task, [p.candidate for p in plan.proposals]) as building:
            next_plan = following()
            planned = time.perf_counter()
            failure = None
            try:
                measurements = building.run(search.best_s)
            except MeasureError as error:
                measurements, failure = list(error.finished), error
        measured = time.perf_counter()
        waited = max(0.0, planned - building.built_at)
        record = Record(
            search.task.workload_id,
            measurements,
            [proposal.origin for proposal in plan.proposals[: len(measurements)]],
            plan.refused,
            plan.search_s + waited,
            measured - began - waited,
            self._earlier_s + measured - self._began,
        )
        if measurements:
            self._trials.append(record)
        if failure is not None:
            raise failure
        batch = self._observed(plan.task, plan.proposals, record)
        learning_s = time.perf_counter() - measured
        return batch._replace(search_s=batch.search_s + learning_s), next_plan

    def _recorded(self) -> Iterator[tuple[int, Record]]:
        """Yield the batches of earlier sessions, with their tasks."""
        numbers = {s.task.workload_id: number for number, s in enumerate(self.searches)}
        for record in self._trials.recorded():
            if record.workload_id in numbers:
                yield numbers[record.workload_id], record

    def _replay(
        self, task: int, record: Record, is_last: bool, trials: int, min_gain: float
    ) -> tuple[Batch, Plan | None]:
        """Do as :meth:`_measured` did, but for the measuring.

        What was planned during the last batch is planned again; during the others it is known.
        """
        search = self.searches[task]
        search.refused.update(record.refused)
        programs = [one.program for one in record.measurements]
        found = search.replayed(list(zip(programs, record.origins, strict=True)))
        proposals = [proposal for proposal in found if proposal is not None]
        valid = [one for one, p in zip(record.measurements, found, strict=True) if p is not None]
        search.begin(proposals)
        following = None
        if is_last:
            following = self._following(Plan(task, proposals), trials, min_gain)
        self._earlier_s = max(self._earlier_s, record.elapsed_s)
        self.measured += len(programs) - len(valid)
        return self._observed(task, proposals, replace(record, measurements=valid)), following

    def _observed(self, task: int, proposals: Sequence[Proposal], record: Record) -> Batch:
        """Learn from a batch."""
        search = self.searches[task]
        before = len(search.history)
        before_s = search.best_s
        search.observe(proposals, record.measurements)
        self._model.refit()
        for best_s in self._steps(before_s, record.measurements, search.best_s):
            self._scheduler.observe(task, best_s)
        self.measured += sum(proposal.origin is not Origin.CHECKED for proposal in proposals)
        return Batch(
            task,
            proposals,
            record.measurements,
            search.history.best_after_s[before:],
            record.search_s,
            record.measure_s,
            record.elapsed_s,
        )

    def _steps(
        self, best_s: float | None, measurements: Sequence[Measurement], after_s: float | None
    ) -> list[float | None]:
        """The best latency after each part of a batch, the parts being of the first ones' size."""
        known = [best_s, *(measurement.latency_s for measurement in measurements)]
        ends = range(self._first_batch, len(measurements), self._first_batch)
        parts = [[s for s in known[: end + 1] if s is not None] for end in ends]
        return [*(min(part, default=None) for part in parts), after_s]
