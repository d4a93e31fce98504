"""Measure programs of many tasks into a dataset.

The tasks take turns, a batch each, so that a collection stopped early covers all of them: many
tasks with few programs teach a model more than few tasks with many (TenSet, NeurIPS'21). A task's
first batch is random; later ones are half random and half mutations of the best programs
so far, so that the fast end of the space, where a search will work, is well covered.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from costlib.data.dataset import Dataset
from costlib.errors import InputError
from costlib.hardware import Hardware
from costlib.identity import content_id
from costlib.measure.config import MeasureConfig
from costlib.measure.measurer import Candidate, Measurement, Measurer
from costlib.schema import Language, Origin
from costlib.space.design_space import DesignSpace
from costlib.space.program import Program
from costlib.tvm_compat.api import module_to_json
from costlib.workloads.task import Task

BATCH = 16
"""Programs measured between two writes: what a kill can lose."""

_PARENTS = 4
"""Mutations start from this many of a task's best programs."""

_MAX_DRAWS = 20
"""Draws for each program wanted, before a space counts as exhausted."""


@dataclass(frozen=True)
class CollectProgress:
    """Where a collection stands.

    Attributes
    ----------
    done, total
        Programs measured, and wanted, in this dataset for these tasks on this hardware.
    task
        The name of the task measured last.
    failed
        Programs that failed to build or run since the start of this session.
    """

    done: int
    total: int
    task: str
    failed: int


@dataclass
class _TaskState:
    """What is known about one task's programs."""

    task: Task
    space: DesignSpace
    weights: dict[str, int] = field(default_factory=dict)
    measured: set[str] = field(default_factory=set)
    best: list[tuple[float, Program]] = field(default_factory=list)
    exhausted: bool = False

    def add(self, program: Program, latency_s: float | None) -> None:
        self.measured.add(program.program_id)
        if latency_s is not None:
            self.best = sorted([*self.best, (latency_s, program)], key=lambda x: x[0])[:_PARENTS]

    @property
    def best_s(self) -> float | None:
        return self.best[0][0] if self.best else None


@dataclass(frozen=True)
class _Draw:
    candidate: Candidate
    origin: Origin
    parent_id: str | None = None
    direction: str | None = None


def collect(
    tasks: Sequence[Task],
    out: str | Path,
    *,
    programs_per_task: int = 64,
    hardware: Hardware | None = None,
    seed: int = 0,
    config: MeasureConfig | None = None,
    on_progress: Callable[[CollectProgress], None] | None = None,
) -> Dataset:
    """Measure programs of each task until the dataset holds enough of them.

    Called again with the same arguments it goes on where it stopped, and never measures a
    program twice. Each batch is written before the next begins.

    Parameters
    ----------
    tasks
        What to measure; equal workloads count once, and those with nothing to tune not at all.
    out
        The dataset's folder; made if it does not exist.
    programs_per_task
        How many programs of each task the dataset should hold for this hardware.
    hardware
        What to compile for; this machine's CPU with all its cores if not given.
    seed
        Decides which programs are drawn.
    config
        Repeats, limits and racing.
    on_progress
        Called after each batch.

    Returns
    -------
    Dataset
        The dataset, open.
    """
    if programs_per_task < 1:
        raise InputError(f"programs_per_task is {programs_per_task}; it must be at least 1")
    hardware = hardware or Hardware.local()
    states = _tunable(tasks)
    if not states:
        raise InputError("none of the tasks has anything to tune")
    dataset = Dataset.create(out)
    with Measurer(hardware, config, dataset.canary(hardware.hardware_id)) as measurer:
        measurer.reference = (
            dataset.add_hardware(hardware, measurer.reference) or measurer.reference
        )
        _register(dataset, states)
        _recall(dataset, hardware, states)
        failed = 0
        for round_number in itertools.count():
            unfinished = [s for s in states if len(s.measured) < programs_per_task]
            unfinished = [s for s in unfinished if not s.exhausted]
            if not unfinished:
                break
            for state in unfinished:
                wanted = min(BATCH, programs_per_task - len(state.measured))
                draws = _draw(state, wanted, _seed(seed, state, round_number))
                state.exhausted = len(draws) < wanted
                measurements = measurer.measure(
                    state.task, [draw.candidate for draw in draws], state.best_s
                )
                rows = [_row(m, d, seed) for m, d in zip(measurements, draws, strict=True)]
                dataset.append_measurements(hardware.hardware_id, rows)
                for m in measurements:
                    state.add(m.program, None if m.raced else m.latency_s)
                failed += sum(m.latency_s is None for m in measurements)
                if on_progress is not None:
                    done = sum(min(len(s.measured), programs_per_task) for s in states)
                    total = sum(
                        len(s.measured) if s.exhausted else programs_per_task for s in states
                    )
                    on_progress(CollectProgress(done, total, state.task.name, failed))
    return dataset


def _tunable(tasks: Sequence[Task]) -> list[_TaskState]:
    """Each workload once, with all its sources; those with nothing to tune are left out."""
    states: dict[str, _TaskState] = {}
    for task in tasks:
        state = states.setdefault(task.workload_id, _TaskState(task, DesignSpace(task)))
        if task.source:
            state.weights[task.source] = task.weight
    return [state for state in states.values() if state.space.is_tunable]


def _seed(seed: int, state: _TaskState, round_number: int) -> int:
    """Differs by what is measured already, so that a resumed collection draws new programs."""
    parts = content_id(seed, state.task.workload_id, round_number, len(state.measured))
    return int(parts[:8], 16)


def _draw(state: _TaskState, wanted: int, seed: int) -> list[_Draw]:
    """Draw programs that are valid, distinct and not measured yet."""
    mutated = wanted // 2 if state.best else 0
    draws: dict[str, _Draw] = {}
    for stream, count in ((_mutations(state, seed), mutated), (_random(state, seed), wanted)):
        for draw in itertools.islice(stream, count * _MAX_DRAWS):
            program = draw.candidate.program
            if program.program_id in state.measured or draw.candidate.schedule is None:
                continue
            draws.setdefault(program.program_id, draw)
            if len(draws) >= count:
                break
    return list(draws.values())


def _random(state: _TaskState, seed: int) -> Iterator[_Draw]:
    for program, schedule in state.space.sample(seed):
        yield _Draw(Candidate(program, schedule), Origin.RANDOM)


def _mutations(state: _TaskState, seed: int) -> Iterator[_Draw]:
    rng = np.random.default_rng(seed)
    for _ in range(BATCH * _MAX_DRAWS):
        _, parent = state.best[rng.integers(len(state.best))]
        mutation = state.space.mutate(parent, int(rng.integers(2**31)))
        if mutation is not None:
            program, direction = mutation
            candidate = Candidate(program, state.space.lower(program))
            yield _Draw(candidate, Origin.MUTATION, parent.program_id, direction)


def _register(dataset: Dataset, states: Sequence[_TaskState]) -> None:
    dataset.append_workloads([_workload_row(state.task) for state in states])
    dataset.append_networks(
        [
            {"network": network, "workload_id": state.task.workload_id, "weight": weight}
            for state in states
            for network, weight in state.weights.items()
        ]
    )
    sketches = {s.sketch_id: s for state in states for s in state.space.sketches}
    dataset.append_sketches(
        [
            {
                "sketch_id": sketch_id,
                "language": str(Language.METASCHEDULE),
                "instructions": sketch.to_json(),
            }
            for sketch_id, sketch in sketches.items()
        ]
    )


def _workload_row(task: Task) -> dict[str, Any]:
    return {
        "workload_id": task.workload_id,
        "name": task.name,
        "arguments": [{"dtype": d, "shape": list(shape)} for d, shape in task.arguments],
        "flops": task.flops,
        "mod_json": module_to_json(task.mod),
        "mod_script": task.mod.script(show_meta=False),
    }


def _recall(dataset: Dataset, hardware: Hardware, states: Sequence[_TaskState]) -> None:
    """Take up what the dataset holds already."""
    by_id = {state.task.workload_id: state for state in states}
    columns = ["workload_id", "sketch_id", "decisions", "latency_s", "raced"]
    records = (
        dataset.scan()
        .filter(pl.col("hardware") == hardware.hardware_id)
        .filter(pl.col("workload_id").is_in(list(by_id)))
        .select(columns)
        .collect()
    )
    for workload, sketch, decisions, latency_s, raced in records.iter_rows():
        program = Program.from_row(workload, sketch, decisions)
        by_id[workload].add(program, None if raced else latency_s)


def _row(measurement: Measurement, draw: _Draw, seed: int) -> dict[str, Any]:
    program = measurement.program
    return {
        "program_id": program.program_id,
        "workload_id": program.workload_id,
        "sketch_id": program.sketch_id,
        "decisions": program.decisions_json(),
        "status": str(measurement.status),
        "latency_s": measurement.latency_s,
        "run_secs": list(measurement.run_secs),
        "canary_compute": list(measurement.canary_compute),
        "canary_memory": list(measurement.canary_memory),
        "raced": measurement.raced,
        "build_secs": measurement.build_secs,
        "error": measurement.error,
        "origin": str(draw.origin),
        "parent_id": draw.parent_id,
        "direction": draw.direction,
        "seed": seed,
        "measured_at": datetime.now(UTC),
    }
