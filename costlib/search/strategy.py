"""What every search strategy of a task is: it proposes programs and learns what came out.

A strategy is a subclass of :class:`Strategy` in a file of its own and a name in :data:`STRATEGIES`.
"""

from __future__ import annotations

import importlib
import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from costlib.errors import UnknownNameError
from costlib.features.batch import FeatureBatch
from costlib.features.context import task_features
from costlib.features.lowered import lowered_batch
from costlib.features.schedule import schedule_batch
from costlib.features.task_encoders import schedule_encoders
from costlib.hardware import Hardware
from costlib.hub.priors import PriorBank, flat_extents
from costlib.identity import content_id
from costlib.measure.measurement import Candidate, Measurement
from costlib.schema import Origin
from costlib.search.config import SearchConfig
from costlib.search.run_model import RunModel
from costlib.search.standings import Standings
from costlib.space.design_space import DesignSpace
from costlib.space.program import Program
from costlib.workloads.task import Task

STRATEGIES = {
    "evolution": "evolution.search:EvolutionarySearch",
    "random": "random_search:RandomSearch",
}
"""Module and class of each strategy; imported when asked for."""

PRIORS = 8
"""Programs of look-alike tasks that a round may start from."""

_STANDS = 4
"""Other programs that a new best one has to stand before it is measured again."""


@dataclass(frozen=True)
class Prior:
    """A program of a look-alike task: sketch and decisions."""

    sketch_id: str
    decisions: Sequence[Any]


@dataclass(frozen=True)
class Proposal:
    """A program to measure, how it was made, and what is known of it.

    Attributes
    ----------
    candidate, origin
        The program and where it came from.
    score
        The exact model's.
    statements, schedule
        Its features, a batch of one each.
    """

    candidate: Candidate
    origin: Origin
    score: float
    statements: FeatureBatch
    schedule: FeatureBatch


class Strategy(ABC):
    """The search of one task.

    Parameters
    ----------
    task
        The task.
    hardware
        What to search for.
    model
        The run's model, which all tasks share.
    config
        How to search.
    seed
        Two searches with the same seed and the same measurements propose the same.

    Attributes
    ----------
    space
        The task's design space.
    measured
        Ids of the programs that were measured, are being measured, or failed.
    elite
        (latency in seconds, program), the best first; of a program that was measured more than
        once as in :class:`costlib.search.standings.Standings`.
    exhausted
        Whether there is nothing left to propose.
    """

    def __init__(
        self,
        task: Task,
        hardware: Hardware,
        model: RunModel,
        config: SearchConfig,
        seed: int = 0,
    ) -> None:
        self.task = task
        self.space = DesignSpace(task, num_threads=len(os.sched_getaffinity(0)))
        self.measured: set[str] = set()
        self.elite: list[tuple[float, Program]] = []
        self.exhausted = False
        self._standings = Standings()
        self._calm: set[str] = set()
        self._hardware = hardware
        self._number = model.number_of(task.workload_id)
        self._model = model
        self._config = config
        self._seed = seed
        self._context = task_features(task.flops, hardware)
        shapes = [shape for _, shape in task.arguments]
        self._encoders = schedule_encoders(
            task.name,
            shapes,
            task.mod,
            {sketch.sketch_id: sketch.instructions for sketch in self.space.sketches},
            hardware,
        )

    @abstractmethod
    def propose(self, count: int, priors: Sequence[Prior] = ()) -> list[Proposal]:
        """Return programs to measure next, each different and none measured before.

        Parameters
        ----------
        count
            How many; there are fewer at the end of a small space, and then ``exhausted`` is set.
        priors
            Programs of look-alike tasks, the most promising first.
        """

    @property
    def best_s(self) -> float | None:
        """The best latency measured, in seconds."""
        return self.elite[0][0] if self.elite else None

    def begin(self, proposals: Sequence[Proposal]) -> None:
        """Note that programs are being measured: none of them is proposed again."""
        self.measured.update(proposal.candidate.program.program_id for proposal in proposals)

    def observe(self, proposals: Sequence[Proposal], measurements: Sequence[Measurement]) -> None:
        """Learn what was measured; the model is told, but not refitted."""
        programs = {program.program_id: program for _, program in self.elite}
        for proposal, measurement in zip(proposals, measurements, strict=True):
            program = measurement.program
            self.measured.add(program.program_id)
            self._standings.add(program.program_id, measurement.latency_s)
            if measurement.is_calm:
                self._calm.add(program.program_id)
            if measurement.latency_s is None:
                continue
            programs[program.program_id] = program
            latency_s = np.array([measurement.latency_s])
            self._model.observe(self._number, proposal.statements, proposal.schedule, latency_s)
        latencies_s = self._standings.latencies_s
        self.elite = sorted(
            ((latencies_s[name], program) for name, program in programs.items()),
            key=lambda pair: pair[0],
        )

    @property
    def is_unsure(self) -> bool:
        """Whether the best program may owe its place to luck.

        Not if it was measured in a calm moment, twice to the same result, or often enough.
        """
        looks = self._standings.looks()
        sure = self._standings.best in self._calm or self._standings.is_confirmed()
        return 0 < looks < self._config.looks and not sure

    def repeated(self) -> list[Proposal]:
        """Return the best program, to be measured again; nothing if it is sure or not settled.

        It is settled when it has stayed the best for a while, so that no trial is spent on one that
        is about to be beaten.
        """
        return self.best() if self._standings.stands() >= _STANDS and self.is_unsure else []

    def best(self) -> list[Proposal]:
        """Return the best program once more; nothing if there is none."""
        programs = [p for _, p in self.elite if p.program_id == self._standings.best]
        return self.proposals(
            [(Candidate(p, self.space.lower(p), race=False), Origin.REPEATED) for p in programs]
        )

    def recall(self, measurements: Sequence[Measurement]) -> None:
        """Take up what an earlier session of the run has measured, in its order."""
        self.measured.update(m.program.program_id for m in measurements)
        schedules = self.space.lower_all([m.program for m in measurements])
        usable = [
            (Candidate(measurement.program, schedule), measurement)
            for measurement, schedule in zip(measurements, schedules, strict=True)
            if schedule is not None
        ]
        proposals = self.proposals([(candidate, Origin.RANDOM) for candidate, _ in usable])
        self.observe(proposals, [measurement for _, measurement in usable])

    def priors_in(self, bank: PriorBank) -> list[Prior]:
        """Look up the programs of a bank that this task may start from."""
        extents = flat_extents(shape for _, shape in self.task.arguments)
        nearest = bank.nearest(self.space.cluster, extents, PRIORS, self._hardware.hardware_id)
        return [Prior(prior.sketch_id, prior.decisions) for prior in nearest]

    def proposals(self, candidates: Sequence[tuple[Candidate, Origin]]) -> list[Proposal]:
        """Compute the features of lowered programs, and their scores."""
        if not candidates:
            return []
        lowered = [candidate.schedule for candidate, _ in candidates]
        batch = lowered_batch(self.space.context, lowered, self.task.flops, self._hardware)
        scores = self._model.scores(self._number, batch)
        schedules = self.schedules([candidate.program for candidate, _ in candidates])
        return [
            Proposal(candidate, origin, float(score), statements, schedule)
            for (candidate, origin), score, statements, schedule in zip(
                candidates, scores, batch.split(), schedules.split(), strict=True
            )
        ]

    def schedules(self, programs: Sequence[Program]) -> FeatureBatch:
        """Encode programs of this task for the models of schedules."""
        return schedule_batch(
            self._encoders,
            [program.sketch_id for program in programs],
            [program.decisions for program in programs],
            self._context,
        )

    def _rng(self) -> np.random.Generator:
        """Random numbers that depend on the seed and on what was measured, nothing else."""
        state = content_id(self._seed, self.task.workload_id, sorted(self.measured))
        return np.random.default_rng(int(state[:15], 16))


def strategy_class(name: str) -> type[Strategy]:
    """Return the strategy called ``name``."""
    if name not in STRATEGIES:
        raise UnknownNameError("search strategy", name, STRATEGIES)
    module, cls = STRATEGIES[name].split(":")
    found: type[Strategy] = getattr(importlib.import_module(f"costlib.search.{module}"), cls)
    return found
