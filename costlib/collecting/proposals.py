"""Which programs of a task to measure next: random, mutated and written ones, and a search's."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np

from costlib.collecting.plan import Mix
from costlib.identity import content_id
from costlib.measure.measurement import Candidate
from costlib.schema import Origin
from costlib.space.design_space import DesignSpace
from costlib.space.program import Program
from costlib.workloads.task import Task


class Known(NamedTuple):
    """A program and its latency in seconds, ``None`` if it failed."""

    program: Program
    latency_s: float | None


class Searcher(Protocol):
    """A search that goes on from what was measured of a task."""

    def __call__(
        self, task: Task, known: Sequence[Known], count: int, seed: int, /
    ) -> Sequence[Candidate]:
        """Return about so many programs, none of the known ones among them."""


class Writer(Protocol):
    """A generator of programs."""

    def __call__(self, space: DesignSpace, count: int, seed: int, /) -> Sequence[Program]:
        """Return about so many programs, good ones as far as it knows."""


_PARENTS = 4
"""Mutations start from this many of a task's best programs."""

_MAX_DRAWS = 20
"""Repeated draws for each program wanted, before a space counts as exhausted."""

_MAX_INVALID = 100
"""The same for draws that do not lower: on GPUs few do."""


@dataclass(frozen=True)
class Draw:
    """A program to measure, and how it was made."""

    candidate: Candidate
    origin: Origin
    parent_id: str | None = None
    direction: str | None = None


class TaskState:
    """What is known about one task's programs.

    Parameters
    ----------
    task
        The task.
    """

    def __init__(self, task: Task) -> None:
        self.task = task
        self.space = DesignSpace(task)
        self.measured: set[str] = set()
        self.known: list[Known] = []
        self.best: list[tuple[float, Program]] = []
        self.made: dict[Origin, int] = dict.fromkeys(Origin, 0)
        self.exhausted = False

    def add(
        self, program: Program, origin: Origin, latency_s: float | None, raced: bool = False
    ) -> None:
        """Take up a measurement once; ``latency_s`` is ``None`` if it failed, rough if raced."""
        if program.program_id in self.measured:
            return
        self.measured.add(program.program_id)
        self.known.append(Known(program, latency_s))
        self.made[origin] += 1
        if latency_s is not None and not raced:
            self.best = sorted([*self.best, (latency_s, program)], key=lambda x: x[0])[:_PARENTS]

    @property
    def best_s(self) -> float | None:
        """The best latency known, in seconds."""
        return self.best[0][0] if self.best else None


def draw(
    state: TaskState,
    wanted: int,
    mix: Mix,
    search: Searcher | None,
    seed: int,
    write: Writer | None = None,
) -> list[Draw]:
    """Draw programs that are valid, distinct and not measured yet.

    A batch makes up for what each kind is behind its share, so that a collection that is stopped
    and resumed keeps to the shares. None of a task's first programs are mutated, since there is
    none yet to change.

    Parameters
    ----------
    state
        The task.
    wanted
        How many programs; fewer are drawn from a space with no more.
    mix
        The shares.
    search
        Proposes the evolved programs; without one they are random.
    seed
        What to draw; the number of programs measured also counts.
    write
        The generator that writes generated programs; without one they are random.
    """
    seed = int(content_id(seed, state.task.workload_id, len(state.measured))[:8], 16)
    batch = _Batch(state, wanted)
    total = len(state.measured) + wanted
    evolved = round(mix.evolved * total) - state.made[Origin.EVOLVED]
    if search is not None and evolved > 0:
        batch.fill(_evolved(state, min(evolved, wanted), search, seed), evolved)
    mutated = round(mix.mutated * total) - state.made[Origin.MUTATION]
    if state.best and mutated > 0:
        batch.fill(_families(state, seed), len(batch.draws) + mutated)
    generated = round(mix.generated * total) - state.made[Origin.GENERATED]
    if write is not None and generated > 0:
        written = _written(state, min(generated, wanted), write, seed)
        batch.fill(written, len(batch.draws) + generated)
    batch.fill(_random(state, seed))
    return batch.draws


@dataclass
class _Batch:
    state: TaskState
    wanted: int
    draws: list[Draw] = field(default_factory=list)
    ids: set[str] = field(default_factory=set)

    def fill(self, stream: Iterator[Draw], size: int | None = None) -> None:
        """Take draws until there are ``size`` of them, as many as are wanted if not given."""
        size = self.wanted if size is None else min(size, self.wanted)
        repeated = invalid = 0
        while (
            len(self.draws) < size
            and repeated < _MAX_DRAWS * self.wanted
            and invalid < _MAX_INVALID * self.wanted
        ):
            one = next(stream, None)
            if one is None:
                return
            program_id = one.candidate.program.program_id
            if one.candidate.schedule is None:
                invalid += 1
            elif program_id in self.ids or program_id in self.state.measured:
                repeated += 1
            else:
                self.ids.add(program_id)
                self.draws.append(one)


def _random(state: TaskState, seed: int) -> Iterator[Draw]:
    for program, schedule in state.space.sample(seed):
        yield Draw(Candidate(program, schedule), Origin.RANDOM)


def _elite_mutations(state: TaskState, seed: int) -> Iterator[Draw]:
    """Mutations of the best programs, with MetaSchedule's stock probabilities."""
    rng = np.random.default_rng(seed)
    while True:
        _, parent = state.best[rng.integers(len(state.best))]
        mutation = state.space.mutate(parent, int(rng.integers(2**31)))
        if mutation is not None:
            child, direction = mutation
            candidate = Candidate(child, state.space.lower(child))
            yield Draw(candidate, Origin.MUTATION, parent.program_id, direction)
        else:
            yield Draw(Candidate(parent, None), Origin.MUTATION)


def _families(state: TaskState, seed: int) -> Iterator[Draw]:
    """New programs, every other one a mutation of a good one, each with its children."""
    rng = np.random.default_rng(seed)
    parents = (_random(state, seed), _elite_mutations(state, seed))
    for turn in itertools.count():
        parent = next(parents[turn % 2])
        yield parent
        if parent.candidate.schedule is None:
            continue
        program = parent.candidate.program
        for direction in state.space.directions(program):
            mutation = state.space.mutate(program, int(rng.integers(2**31)), direction)
            if mutation is not None:
                child = Candidate(mutation[0], state.space.lower(mutation[0]))
                yield Draw(child, Origin.MUTATION, program.program_id, direction)


def _written(state: TaskState, count: int, write: Writer, seed: int) -> Iterator[Draw]:
    for program in write(state.space, count, seed):
        yield Draw(Candidate(program, state.space.lower(program)), Origin.GENERATED)


def _evolved(state: TaskState, count: int, search: Searcher, seed: int) -> Iterator[Draw]:
    for candidate in search(state.task, state.known, count, seed):
        yield Draw(candidate, Origin.EVOLVED)
