"""Measure programs of many tasks into a dataset.

The tasks take turns, a batch each, so that a collection stopped early covers all of them: many
tasks with few programs teach a model more than few tasks with many (TenSet, NeurIPS'21). What a
batch consists of is up to :mod:`costlib.collecting.proposals`.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from costlib.collecting.claims import claimed
from costlib.collecting.plan import Mix
from costlib.collecting.proposals import Draw, Proposer
from costlib.collecting.retry import FailedPrograms
from costlib.collecting.task_state import TaskState
from costlib.data.dataset import Dataset
from costlib.data.parts import PART_PATTERN, polars_schema, read_columns
from costlib.data.records import measurement_row
from costlib.data.task_tables import register_sketches, register_workloads
from costlib.errors import InputError, MeasureError
from costlib.hardware import Hardware
from costlib.hub.bundle import Bundle
from costlib.measure.config import MeasureConfig
from costlib.measure.measurement import Measurement
from costlib.measure.measurer import Measurer
from costlib.schema import MEASUREMENTS, Origin
from costlib.space.program import Program
from costlib.tuning.interrupt import Interruptible
from costlib.tuning.workplace import measurer_for
from costlib.workloads.task import Task

if TYPE_CHECKING:
    from costlib.measure.fleet import Fleet

BATCH = 16
"""Programs measured between two writes: what a kill can lose."""

_RECALLED = pl.Schema(
    {
        name: polars_schema(MEASUREMENTS)[name]
        for name in (
            *("workload_id", "sketch_id", "decisions", "origin", "latency_s", "raced"),
            "cache",
        )
    }
)
_PATIENCE_SECS = 1.0
"""How long to wait while other processes are at work on all that is left."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class CollectProgress:
    """Where a collection stands.

    Attributes
    ----------
    done, total
        Programs measured, and wanted, in this dataset for these tasks on this hardware; at first,
        those measured again, and all that failed earlier.
    task
        The title of the task measured last.
    failed
        Programs that failed to build or run since the start of this session.
    """

    done: int
    total: int
    task: str
    failed: int


def collect(
    tasks: Sequence[Task],
    out: str | Path,
    *,
    programs_per_task: int = 64,
    hardware: Hardware | None = None,
    seed: int = 0,
    mix: Mix | None = None,
    bundle: Bundle | None = None,
    minutes: float | None = None,
    retry_failed: bool = False,
    config: MeasureConfig | None = None,
    fleet: Fleet | None = None,
    on_progress: Callable[[CollectProgress], None] | None = None,
) -> Dataset:
    """Measure programs of each task until the dataset holds enough of them.

    Called again with the same arguments it goes on where it stopped, and never measures a
    program twice. Each batch is written before the next begins; the first Ctrl-C waits for that,
    and says so, a second one does not. Several processes may collect into one dataset: each task
    is measured by one of them at a time.

    Parameters
    ----------
    tasks
        What to measure; equal workloads count once, and those with nothing to tune not at all.
    out
        The dataset's folder; made if it does not exist.
    programs_per_task
        How many programs of each task the dataset should hold for this hardware.
    hardware
        What to compile for; this machine's CPU with all its cores, or what the fleet is, if not
        given.
    seed
        Decides which programs are drawn.
    mix
        How the programs are made.
    bundle
        Searches for the evolved programs and writes the generated ones.
    minutes
        Stop after the batch in which this is over.
    retry_failed
        First measure those programs of the tasks again whose records say that they failed to build
        or to run. The new records take the place of the old ones.
    config
        Repeats, limits and racing.
    fleet
        Measure on its devices of this hardware, not here.
    on_progress
        Called after each batch.

    Returns
    -------
    Dataset
        The dataset, open.

    Raises
    ------
    InputError
        A number makes no sense, nothing can be tuned, or the mix takes a bundle that is not given.
    MeasureError
        The machine fails, not the programs. What was measured before is kept.
    KeyboardInterrupt
        Ctrl-C was pressed. What was measured before is kept.
    """
    if programs_per_task < 1:
        raise InputError(f"programs_per_task is {programs_per_task}; it must be at least 1")
    hardware = hardware or (fleet.only_hardware() if fleet else Hardware.local())
    if bundle is not None:
        bundle.check_kind(hardware)
    proposer = Proposer(mix or Mix(), hardware, bundle, seed)
    states = _tunable(tasks)
    if not states:
        raise InputError("none of the tasks has anything to tune")
    dataset = Dataset.create(out)
    register_workloads(dataset, tasks, {state.task.workload_id for state in states})
    register_sketches(dataset, [sketch for state in states for sketch in state.space.sketches])
    again = FailedPrograms(dataset, hardware.hardware_id, states if retry_failed else ())
    collection = _Collection(
        dataset, hardware, states, programs_per_task, seed, proposer, on_progress, again
    )
    collection.recall()
    if not again.ids and not collection.unfinished():
        return dataset
    deadline = None if minutes is None else time.monotonic() + 60 * minutes
    reference = dataset.canary(hardware.hardware_id)
    with measurer_for(hardware, config or MeasureConfig(), reference, fleet) as measurer:
        measurer.reference = (
            dataset.add_hardware(hardware, measurer.reference) or measurer.reference
        )
        proposer.canary = measurer.reference
        with Interruptible(_log.warning) as interruptible:
            end = _End(deadline, interruptible)
            if collection.retry(measurer, end):
                collection.run(measurer, end)
    return dataset


@dataclass(frozen=True)
class _End:
    deadline: float | None
    interruptible: Interruptible

    def has_come(self) -> bool:
        """Whether time is up, between two batches; Ctrl-C is raised here that waited for this."""
        if self.interruptible.asked():
            raise KeyboardInterrupt
        return self.deadline is not None and time.monotonic() > self.deadline


@dataclass
class _Collection:
    dataset: Dataset
    hardware: Hardware
    states: list[TaskState]
    programs_per_task: int
    seed: int
    proposer: Proposer
    on_progress: Callable[[CollectProgress], None] | None
    again: FailedPrograms
    failed: int = 0
    _recalled: set[Path] = field(default_factory=set)

    def recall(self) -> None:
        """Take up what the dataset holds by now, but for what is to be measured again."""
        folder = self.dataset.path / "measurements" / f"hardware={self.hardware.hardware_id}"
        new = sorted(set(folder.glob(PART_PATTERN)) - self._recalled)
        self._recalled.update(new)
        by_id = {state.task.workload_id: state for state in self.states}
        for part in new:
            try:
                rows = read_columns(part, _RECALLED)
            except FileNotFoundError:  # Compacted meanwhile: the next recall finds its rows.
                continue
            for workload, sketch, decisions, origin, latency_s, raced, cache in rows.iter_rows():
                if workload in by_id and cache == by_id[workload].task.cache:
                    program = Program.from_row(workload, sketch, decisions)
                    name, history = program.program_id, by_id[workload].history
                    if name not in history.measured and name not in self.again.ids:
                        history.add(program, latency_s, Origin(origin), raced=raced)

    def unfinished(self) -> list[TaskState]:
        """The tasks that want more programs and have more."""
        return [
            state
            for state in self.states
            if len(state.history.measured) < self.programs_per_task and not state.exhausted
        ]

    def retry(self, measurer: Measurer, end: _End) -> bool:
        """Measure failed programs again; return whether there was time for all of them."""
        waiting = [state for state in self.states if self.again.ids]
        failed = len(self.again.ids)
        while waiting:
            state = waiting.pop(0)
            with self._claimed(state) as ours:
                done = self.again.measure(state, measurer, BATCH) if ours else []
            if done or not ours:
                waiting.append(state)
            if done:
                self._note(state, done, (failed - len(self.again.ids), failed))
            elif not ours:
                time.sleep(_PATIENCE_SECS)
            if end.has_come():
                return False
        self.again.ids.clear()  # Another process has measured those that are left.
        self._recalled.clear()
        self.recall()
        return True

    def run(self, measurer: Measurer, end: _End) -> None:
        """Let the tasks take turns, those with the fewest programs first."""
        while unfinished := self.unfinished():
            fewest = min(len(state.history.measured) for state in unfinished) + BATCH
            worked = False
            for state in unfinished:
                with self._claimed(state) as ours:
                    self.recall()
                    if ours and len(state.history.measured) < min(fewest, self.programs_per_task):
                        self._measure_batch(measurer, state)
                        worked = True
                if end.has_come():
                    return
            if not worked:
                time.sleep(_PATIENCE_SECS)

    def _measure_batch(self, measurer: Measurer, state: TaskState) -> None:
        wanted = min(BATCH, self.programs_per_task - len(state.history.measured))
        draws = self.proposer.draw(state, wanted)
        state.exhausted = len(draws) < wanted
        try:
            measurements = measurer.measure(state.task, [d.candidate for d in draws], state.best_s)
        except MeasureError as error:
            self._append(error.finished, draws)
            raise
        self._append(measurements, draws)
        self._note(state, measurements)

    def _claimed(self, state: TaskState) -> AbstractContextManager[bool]:
        hardware_id = self.hardware.hardware_id
        return claimed(self.dataset.scratch, state.task.workload_id, hardware_id)

    def _note(
        self,
        state: TaskState,
        measurements: Sequence[Measurement],
        again: tuple[int, int] | None = None,
    ) -> None:
        """Take up what was written down, and tell whoever watches how far it is."""
        self.recall()
        self.failed += sum(m.latency_s is None for m in measurements)
        if self.on_progress is not None:
            done, total = again or self._counts()
            self.on_progress(CollectProgress(done, total, state.task.title, self.failed))

    def _append(self, measurements: Sequence[Measurement], draws: Sequence[Draw]) -> None:
        """Write down what was measured of the first draws."""
        rows = [
            measurement_row(m, self.seed, d.origin, d.parent_id, d.direction)
            for m, d in zip(measurements, draws, strict=False)
        ]
        self.dataset.append_measurements(self.hardware.hardware_id, rows)

    def _counts(self) -> tuple[int, int]:
        done = sum(min(len(s.history.measured), self.programs_per_task) for s in self.states)
        missing = sum(
            max(0, self.programs_per_task - len(s.history.measured))
            for s in self.states
            if not s.exhausted
        )
        return done, done + missing


def _tunable(tasks: Sequence[Task]) -> list[TaskState]:
    """Each workload once; those with nothing to tune are left out."""
    distinct: dict[str, Task] = {}
    for task in tasks:
        distinct.setdefault(task.workload_id, task)
    states = [TaskState(task) for task in distinct.values()]
    for state in states:
        if not state.space.is_tunable:
            _log.warning("%s is left out: it has nothing to tune", state.task.title)
    return [state for state in states if state.space.is_tunable]
