"""A dataset's programs as sequences of tokens, and others of its tasks and of invented ones."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from costlib.arrays import Bools, Integers
from costlib.data.dataset import Dataset
from costlib.data.splits import workload_keys
from costlib.data.task_tables import workload_row
from costlib.errors import DatasetError, InputError
from costlib.features.programs import programs_by_task
from costlib.generator.imagined import Judge, Programs
from costlib.generator.invented import invented_tasks
from costlib.generator.language import Grammar, prompt
from costlib.hardware import Hardware
from costlib.models.base import CostModel
from costlib.schema import CacheState, Language
from costlib.space.design_space import DesignSpace
from costlib.space.program import Program, Sketch
from costlib.space.vectors import DecisionVectors, sketch_vectors
from costlib.training.batches import Chosen, Progress, chosen_hardware, measured_rows, workload_rows

_WORTH_READING = 0.5
"""Measured programs that reach this share of their sketch's best throughput are written down."""


@dataclass
class Sentences:
    """Programs written down.

    Attributes
    ----------
    tokens
        int64, an array for each program.
    chosen
        bool, as long: which tokens the writer chose.
    """

    tokens: list[Integers] = field(default_factory=list)
    chosen: list[Bools] = field(default_factory=list)


@dataclass(frozen=True)
class _Family:
    """A sketch of a task and its measured programs, which may be none."""

    vectors: DecisionVectors
    grammar: Grammar
    measured: Programs


@dataclass(frozen=True)
class _Subject:
    """A task, as a row of a dataset's ``workloads``, on some hardware; families by sketch."""

    workload: Mapping[str, Any]
    hardware: Hardware
    families: Mapping[str, _Family]

    @property
    def is_measured(self) -> bool:
        return any(len(family.measured.latency_s) for family in self.families.values())


def write_down(
    dataset: Dataset,
    *,
    only: Chosen = None,
    hardware: Chosen = None,
    random_programs: int = 0,
    imagined_programs: int = 0,
    invented: float = 0.0,
    teacher: CostModel | None = None,
    seed: int = 0,
    on_progress: Progress = None,
) -> Sentences:
    """Write down the good programs of a dataset, and others of its tasks and of invented ones.

    How good a program is, is its share of the best throughput of its task's programs of the same
    sketch, those that were not measured included: which sketch is best is not for a writer to
    say. Measured programs below a half are left out.

    Parameters
    ----------
    only, hardware
        See :func:`costlib.training.batches.batches`.
    random_programs, imagined_programs, teacher
        How many of each task are drawn at random, and how many are those that ``teacher``, a
        model of schedules, thinks best, see :meth:`~costlib.generator.imagined.Judge.imagine`; of
        all sketches alike. None without a teacher.
    invented
        How many tasks are invented for each one of the dataset, see
        :func:`costlib.generator.invented.invented_tasks`; none without ``teacher``. None of them
        nearly equals one that is held out or not among ``only``.
    seed
        Of all that was not measured.
    on_progress
        Called with (tasks done, all tasks).

    Raises
    ------
    DatasetError
        There is no program.
    """
    found = Sentences()
    rng = np.random.default_rng(seed)
    slopes: list[float] = []
    each = pl.struct("workload_id", "hardware", "cache").n_unique()
    known = int(measured_rows(dataset, hardware, only).select(each).collect().item())
    more = round(invented * known) if teacher is not None else 0
    subjects = itertools.chain(
        _measured(dataset, only, hardware), _invented(dataset, only, hardware, more, seed)
    )
    for number, subject in enumerate(subjects, start=1):
        programs = {name: [family.measured] for name, family in subject.families.items()}
        if teacher is not None:
            vectors = {name: family.vectors for name, family in subject.families.items()}
            machine = subject.hardware
            canary = dataset.canary(machine.hardware_id)
            judge = Judge(subject.workload, machine, vectors, teacher, canary)
            imagined, slope = judge.imagine(
                {name: family.measured for name, family in subject.families.items()},
                -(-imagined_programs // len(vectors)),
                -(-random_programs // len(vectors)),
                rng,
                float(np.median(slopes)) if slopes else -1.0,
            )
            if subject.is_measured:
                slopes.append(slope)
            for sketch_id, others in imagined.items():
                programs[sketch_id].append(others)
        _write(subject, programs, found)
        if on_progress is not None:
            on_progress(number, known + more)
    if not found.tokens:
        raise DatasetError(f"{dataset.path} has no program that can be written down")
    return found


def _write(subject: _Subject, programs: Mapping[str, list[Programs]], found: Sentences) -> None:
    for sketch_id, family in subject.families.items():
        rows = np.concatenate([p.vectors for p in programs[sketch_id]])
        latencies = np.concatenate([p.latency_s for p in programs[sketch_id]])
        labels = latencies.min(initial=np.inf) / latencies
        worth = labels >= _WORTH_READING
        worth[len(family.measured.vectors) :] = True
        body = family.grammar.encode(rows[worth])
        of_body = [not isinstance(entry, int) for entry in family.grammar.layout]
        for row, label in zip(body, labels[worth], strict=True):
            header = prompt(
                subject.workload["name"],
                subject.workload["flops"] or 0.0,
                subject.hardware,
                family.vectors.sketch,
                float(label),
            )
            found.tokens.append(np.concatenate([np.array(header), row]))
            found.chosen.append(np.array([False] * len(header) + of_body))


def _invented(
    dataset: Dataset, only: Chosen, hardware: Chosen, count: int, seed: int
) -> Iterator[_Subject]:
    """Yield invented tasks, the same number for each hardware."""
    machines = list(chosen_hardware(dataset, hardware).values())
    judged = []
    if only is not None:
        others = ~pl.col("workload_id").is_in(list(only))
        judged += workload_keys(dataset.scan("workloads").filter(others))
    held_out = dataset.held_out()
    if held_out is not None:
        judged += workload_keys(held_out.scan("workloads"))
    for number, machine in enumerate(machines):
        share = count * (number + 1) // len(machines) - count * number // len(machines)
        for task in invented_tasks(share, machine, judged, seed + number):
            families = {}
            for sketch_id, vectors in sketch_vectors(DesignSpace(task), seed).items():
                none = Programs(np.zeros((0, len(vectors.values)), "int64"), np.zeros(0))
                if (grammar := _grammar(vectors)) is not None:
                    families[sketch_id] = _Family(vectors, grammar, none)
            if families:
                yield _Subject(workload_row(task), machine, families)


def _measured(dataset: Dataset, only: Chosen, hardware: Chosen) -> Iterator[_Subject]:
    """Yield the tasks of a dataset."""
    described = workload_rows(dataset)
    sketches = dict(
        dataset.scan("sketches")
        .filter(language=str(Language.METASCHEDULE))
        .select("sketch_id", "instructions")
        .collect()
        .iter_rows()
    )
    columns = (pl.col("sketch_id", "decisions").first(), pl.col("latency_s").median())
    machines = chosen_hardware(dataset, hardware)
    for cache, (hardware_id, machine) in itertools.product(CacheState, machines.items()):
        for workload_id, rows in programs_by_task(
            dataset, hardware_id, *columns, only=only, cache=cache
        ):
            families = {
                str(sketch_id): family
                for (sketch_id,), group in rows.group_by("sketch_id", maintain_order=True)
                if sketch_id in sketches
                and (family := _family(workload_id, sketches[sketch_id], group)) is not None
            }
            if families:
                yield _Subject(described[workload_id], machine, families)


def _family(workload_id: str, instructions: str, group: pl.DataFrame) -> _Family | None:
    """Take up the programs of a sketch; ``None`` if there are none, or of another TVM's."""
    programs = [
        Program(workload_id, sketch_id, json.loads(decisions))
        for sketch_id, decisions in group.select("sketch_id", "decisions").iter_rows()
    ]
    try:
        vectors = DecisionVectors(Sketch.from_json(instructions), programs)
    except (InputError, AssertionError):
        return None
    grammar = _grammar(vectors)
    rows = vectors.encode(programs)
    usable = (rows >= 0).all(1)
    if grammar is None or not usable.any():
        return None
    measured = Programs(rows[usable], group["latency_s"].to_numpy()[usable])
    return _Family(vectors, grammar, measured)


def _grammar(vectors: DecisionVectors) -> Grammar | None:
    """Return how a sketch is written, ``None`` if it cannot be or leaves nothing to write."""
    try:
        return Grammar(vectors) if vectors.values else None
    except InputError:
        return None
