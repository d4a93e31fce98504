"""Which programs of a task to measure next: random, mutated and written ones, and a search's."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from costlib.canary_times import CanaryTimes
from costlib.collecting.doubts import most_doubted
from costlib.collecting.evolved import evolve
from costlib.collecting.plan import Mix
from costlib.collecting.task_state import TaskState
from costlib.errors import InputError
from costlib.generator.writer import Writer
from costlib.hardware import Hardware
from costlib.hub.bundle import Bundle
from costlib.identity import content_id
from costlib.measure.measurement import Candidate
from costlib.schema import Origin
from costlib.space.vectors import sketch_vectors

_PARENTS = 4
"""Mutations start from this many of a task's best programs."""

_MAX_DRAWS = 20
"""Repeated draws for each program wanted, before a space counts as exhausted."""

_LOOKED_AT = 8
"""Random programs that are looked at for each one of which the models are uncertain."""

_MAX_INVALID = 100
"""The same for draws that do not lower: on GPUs few do."""


@dataclass(frozen=True)
class Draw:
    """A program to measure, and how it was made."""

    candidate: Candidate
    origin: Origin
    parent_id: str | None = None
    direction: str | None = None


class Proposer:
    """Makes the programs of a collection.

    Parameters
    ----------
    mix
        In which shares.
    hardware
        What they are for.
    bundle
        Searches for the evolved programs and writes the generated ones.
    seed
        Decides which.

    Attributes
    ----------
    canary
        What the hardware's canaries take, once that is known.

    Raises
    ------
    InputError
        The mix has programs that take a bundle and there is none, or it has no generator.
    """

    def __init__(
        self, mix: Mix, hardware: Hardware, bundle: Bundle | None = None, seed: int = 0
    ) -> None:
        if bundle is None and mix.takes_a_bundle:
            raise InputError(
                "evolved, generated and uncertain programs take a bundle; name one, or leave their "
                "shares at 0"
            )
        self.canary: CanaryTimes | None = None
        self._mix = mix
        self._hardware = hardware
        self._bundle = bundle
        self._generator = bundle.require_generator() if bundle and mix.generated else None
        self._seed = seed

    def draw(self, state: TaskState, wanted: int) -> list[Draw]:
        """Draw programs that are valid, distinct and not measured yet.

        A batch makes up for what each kind is behind its share, so that a collection that is
        stopped and resumed keeps to the shares. None of a task's first programs are mutated, since
        there is none yet to change.

        Parameters
        ----------
        state
            The task; the number of its programs decides, too, what is drawn.
        wanted
            How many programs; fewer are drawn from a space with no more.
        """
        mix = self._mix
        seed = int(
            content_id(self._seed, state.task.workload_id, len(state.history.measured))[:8], 16
        )
        batch = _Batch(state, wanted)
        total = len(state.history.measured) + wanted
        evolved = round(mix.evolved * total) - state.history.origins[Origin.EVOLVED]
        if evolved > 0:
            batch.fill(self._evolved(state, min(evolved, wanted), seed), evolved)
        mutated = round(mix.mutated * total) - state.history.origins[Origin.MUTATION]
        if state.history.timed_well and mutated > 0:
            batch.fill(_families(state, seed), len(batch.draws) + mutated)
        generated = round(mix.generated * total) - state.history.origins[Origin.GENERATED]
        if generated > 0:
            written = self._written(state, min(generated, wanted), seed)
            batch.fill(written, len(batch.draws) + generated)
        uncertain = round(mix.uncertain * wanted)
        if uncertain > 0:
            batch.fill(self._uncertain(state, uncertain, seed), len(batch.draws) + uncertain)
        batch.fill(_random(state, seed))
        return batch.draws

    def _evolved(self, state: TaskState, count: int, seed: int) -> Iterator[Draw]:
        assert self._bundle is not None
        for candidate in evolve(
            state.task, self._hardware, self._bundle, state.history, count, seed, self.canary
        ):
            yield Draw(candidate, Origin.EVOLVED)

    def _written(self, state: TaskState, count: int, seed: int) -> Iterator[Draw]:
        assert self._generator is not None
        vectors = sketch_vectors(state.space, seed)
        writer = Writer(self._generator, state.task, self._hardware, vectors)
        written = writer.write_all(count, np.random.default_rng(seed))
        for program, origin in zip(written.programs, written.origins, strict=True):
            yield Draw(Candidate(program, state.space.lower(program)), origin)

    def _uncertain(self, state: TaskState, count: int, seed: int) -> Iterator[Draw]:
        assert self._bundle is not None
        drawn = {
            draw.candidate.program.program_id: draw.candidate
            for draw in itertools.islice(_random(state, seed), _LOOKED_AT * count)
            if draw.candidate.schedule is not None
        }
        fresh = [one for name, one in drawn.items() if name not in state.history.measured]
        ordered = most_doubted(fresh, state.space, self._hardware, self._bundle, self.canary)
        for candidate in ordered:
            yield Draw(candidate, Origin.RANDOM)


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
            elif program_id in self.ids or program_id in self.state.history.measured:
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
    best = state.history.timed_well[:_PARENTS]
    while True:
        _, parent = best[rng.integers(len(best))]
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
        parent = next(parents[turn % 2], None)
        if parent is None:
            return
        yield parent
        if parent.candidate.schedule is None:
            continue
        program = parent.candidate.program
        for direction in state.space.directions(program):
            mutation = state.space.mutate(program, int(rng.integers(2**31)), direction)
            if mutation is not None:
                child = Candidate(mutation[0], state.space.lower(mutation[0]))
                yield Draw(child, Origin.MUTATION, program.program_id, direction)
