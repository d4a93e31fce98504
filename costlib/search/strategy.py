"""What every search strategy of a task is: it proposes programs and learns what came out.

A strategy is a subclass of :class:`Strategy` and a subclass of :class:`StrategyConfig` that starts
it, in a file of its own.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from pydantic import Field

from costlib.features.batch import FeatureBatch
from costlib.features.task_encoder import TaskEncoder
from costlib.frozen import FrozenStrict
from costlib.hardware import Hardware
from costlib.hub.priors import PriorBank, flat_extents
from costlib.identity import content_id
from costlib.measure.measurement import Candidate, Measurement
from costlib.schema import Origin
from costlib.search.history import TaskHistory
from costlib.search.run_model import RunModel
from costlib.space.design_space import DesignSpace
from costlib.space.program import Program
from costlib.workloads.task import Task

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


class StrategyConfig(FrozenStrict):
    """Settings that all strategies share; each has a subclass, which starts it.

    Attributes
    ----------
    looks
        How often a task's best program is measured in all before it is believed to be that, if
        none of the moments was calm and no two measurements agree; each counts as a trial.
    """

    looks: int = Field(3, ge=1)

    def start(self, task: Task, hardware: Hardware, model: RunModel, seed: int = 0) -> Strategy:
        """Begin the search of a task; see :class:`Strategy`."""
        raise NotImplementedError(f"{type(self).__name__} starts no strategy")


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
    history
        What was measured.
    refused
        Ids of programs that are not worth being lowered again: they are invalid, or come to code
        that was measured.
    exhausted
        Whether there is nothing left to propose.
    """

    def __init__(
        self,
        task: Task,
        hardware: Hardware,
        model: RunModel,
        config: StrategyConfig,
        seed: int = 0,
    ) -> None:
        self.task = task
        self.space = DesignSpace(task, num_threads=len(os.sched_getaffinity(0)))
        self.history = TaskHistory()
        self.refused: set[str] = set()
        self.exhausted = False
        self._hardware = hardware
        self._number = model.number_of(task.workload_id)
        self._model = model
        self._config = config
        self._seed = seed
        self._encoder = TaskEncoder.of_space(self.space, hardware, model.canary)

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
    def elite(self) -> list[tuple[float, Program]]:
        """(latency in seconds, program) of those that ran, the best first."""
        return self.history.elite

    @property
    def best_s(self) -> float | None:
        """The best latency measured, in seconds."""
        return self.history.best_s

    def is_open(self, program: Program) -> bool:
        """Whether it was not measured and, as far as is known, is valid and new as code."""
        name = program.program_id
        return name not in self.history.measured and name not in self.refused

    def begin(self, proposals: Sequence[Proposal]) -> None:
        """Note that programs are being measured: none of them is proposed again."""
        self.history.measured.update(p.candidate.program.program_id for p in proposals)

    def observe(self, proposals: Sequence[Proposal], measurements: Sequence[Measurement]) -> None:
        """Learn what was measured; the model is told, but not refitted."""
        for proposal, one in zip(proposals, measurements, strict=True):
            self.history.add(
                one.program, one.latency_s, proposal.origin, calm=one.is_calm, raced=one.raced
            )
            if one.latency_s is not None:
                latency_s = np.array([one.latency_s])
                self._model.observe(self._number, proposal.statements, proposal.schedule, latency_s)

    @property
    def is_unsure(self) -> bool:
        """Whether the best program may owe its place to luck, and may be measured again."""
        return 0 < self.history.looks() < self._config.looks and not self.history.is_sure()

    def repeated(self) -> list[Proposal]:
        """Return the best program, to be measured again; nothing if it is sure or not settled.

        It is settled when it has stayed the best for a while, so that no trial is spent on one that
        is about to be beaten.
        """
        return self.best() if self.history.stands() >= _STANDS and self.is_unsure else []

    def best(self, origin: Origin = Origin.REPEATED) -> list[Proposal]:
        """Return the best program once more; nothing if there is none."""
        if self.history.best is None:
            return []
        program = self.history.programs[self.history.best]
        candidate = Candidate(program, self.space.lower(program), race=False)
        return self.proposals([(candidate, origin)])

    def recall(self, measurements: Sequence[Measurement]) -> None:
        """Take up programs that somebody else has chosen and measured, in their order."""
        self.history.measured.update(m.program.program_id for m in measurements)
        proposals = self.replayed([(one.program, Origin.RANDOM) for one in measurements])
        usable = [
            (proposal, one)
            for proposal, one in zip(proposals, measurements, strict=True)
            if proposal is not None
        ]
        self.observe([proposal for proposal, _ in usable], [one for _, one in usable])

    def replayed(self, programs: Sequence[tuple[Program, Origin]]) -> list[Proposal | None]:
        """Make the proposals of programs that were measured; ``None`` for those invalid here."""
        schedules = self.space.lower_all([program for program, _ in programs])
        pairs = zip(programs, schedules, strict=True)
        valid = [(Candidate(p, s), origin) for (p, origin), s in pairs if s is not None]
        found = iter(self.proposals(valid))
        return [None if schedule is None else next(found) for schedule in schedules]

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
        batch = self._encoder.lowered(self.space.context, lowered)
        scores = self._model.scores(self._number, batch)
        schedules = self._encoder.schedules([candidate.program for candidate, _ in candidates])
        return [
            Proposal(candidate, origin, float(score), statements, schedule)
            for (candidate, origin), score, statements, schedule in zip(
                candidates, scores, batch.split(), schedules.split(), strict=True
            )
        ]

    def _rng(self) -> np.random.Generator:
        """Random numbers that depend on the seed and on what was measured, nothing else."""
        state = content_id(self._seed, self.task.workload_id, sorted(self.history.measured))
        return np.random.default_rng(int(state[:15], 16))
