"""Evolution under a learned cost model: Ansor's search (OSDI'20), scored in two stages.

Two-stage scoring: thousands of candidates are made, changed, mixed and scored as vectors of
decisions (:mod:`costlib.training.sketch_pool`); the best of them are lowered and scored by the
exact model; the best of those are measured.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from costlib.features.batch import join
from costlib.identity import content_id
from costlib.measure.measurer import Candidate, Measurement
from costlib.schema import Origin
from costlib.search.batch_selection import select_batch
from costlib.search.generate import Writer
from costlib.search.sketch_choice import SketchChoice
from costlib.search.strategy import Prior, Proposal, Strategy
from costlib.space.diffusion import RULES, diffuse
from costlib.space.program import Program
from costlib.space.vectors import Integers, sketch_vectors
from costlib.training.sketch_pool import SketchPool
from costlib.tvm_compat.api import structural_key

_ELITE = 16
"""Measured programs that every population starts with."""

_WRITTEN = 64
"""Programs of a task that the generator writes."""

_INHERITED = 0.5
"""Share of a task's first batch, and of the candidates for it, that is inherited or written."""

_MOST_REFUSED = 4
"""Candidates that are lowered in vain, for each one wanted, before the search goes on without."""

Floats = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True)
class _Draft:
    pool: SketchPool
    vector: Integers
    program: Program
    origin: Origin


class EvolutionarySearch(Strategy):
    """Ansor's evolution with the parts of :class:`costlib.search.config.SearchConfig`."""

    @cached_property
    def _pools(self) -> dict[str, SketchPool]:
        return {}

    @cached_property
    def _code(self) -> set[int]:
        """What measured programs come to."""
        return set()

    @cached_property
    def _refused(self) -> set[str]:
        """Programs that are not valid, or come to code that was measured."""
        return set()

    @cached_property
    def _choice(self) -> SketchChoice:
        return SketchChoice(list(self._encoders))

    def propose(self, count: int, priors: Sequence[Prior] = ()) -> list[Proposal]:
        """Return programs to measure next; see :meth:`Strategy.propose`."""
        rng = self._rng()
        self._explore()
        inherited = _in_turns(self._fitted(priors, rng), self._written())
        wanted = self._config.survivors * count
        first = inherited[: round(_INHERITED * (count if self.elite else wanted))]
        taken = {draft.program.program_id for draft in first}
        evolved = (d for d in self._evolved(inherited, rng) if d.program.program_id not in taken)
        survivors = self._lowered(itertools.chain(first, evolved, self._drawn(rng)), wanted)
        if not survivors:
            self.exhausted = True
            return []
        scores = np.array([proposal.score for proposal in survivors])
        chosen: list[int] = []
        if not self.elite:
            chosen = _best_inherited(survivors, scores, round(_INHERITED * count))
        rest = np.array([i for i in range(len(survivors)) if i not in chosen], "int64")
        more = select_batch(
            scores[rest],
            _table([survivors[i] for i in rest]),
            count - len(chosen),
            rng,
            uncertainty=self._uncertainty([survivors[i] for i in rest]),
            diversity=self._config.diversity,
            epsilon=self._config.epsilon,
        )
        return [survivors[i] for i in [*chosen, *(int(rest[i]) for i in more)]]

    def _uncertainty(self, proposals: Sequence[Proposal]) -> Floats | None:
        """How far scores may be off, as far as the search is optimistic about that."""
        if not (proposals and self._config.optimism):
            return None
        statements = join([proposal.statements for proposal in proposals])
        return self._config.optimism * self._model.uncertainty(self._number, statements)

    def observe(self, proposals: Sequence[Proposal], measurements: Sequence[Measurement]) -> None:
        """Learn what was measured, about sketches and code too."""
        super().observe(proposals, measurements)
        schedules = [proposal.candidate.schedule for proposal in proposals]
        self._code.update(structural_key(s.mod) for s in schedules if s is not None)
        for measurement in measurements:
            self._choice.observe(measurement.program.sketch_id, measurement.latency_s)

    def recall(self, measurements: Sequence[Measurement]) -> None:
        """Take up what an earlier session of the run has measured."""
        self._explore([measurement.program for measurement in measurements])
        super().recall(measurements)

    def _explore(self, known: Sequence[Program] = ()) -> None:
        """Look at some random programs, once, to learn what decisions there are."""
        if self._pools:
            return
        for name, vectors in sketch_vectors(self.space, self._first_seed(), known).items():
            self._pools[name] = SketchPool(vectors, self._encoders[name], self._context)

    @cached_property
    def _reservoir(self) -> list[_Draft]:
        """Programs by the generator: written once, then there in each round."""
        if self._model.generator is None:
            return []
        vectors = {sketch_id: pool.vectors for sketch_id, pool in self._pools.items()}
        writer = Writer(self._model.generator, self.task, self._hardware, vectors)
        written = writer.write_all(_WRITTEN, np.random.default_rng(self._first_seed()))
        drafts = (self._draft(program, Origin.GENERATED) for program in written.programs)
        return [draft for draft in drafts if draft is not None]

    def _written(self) -> list[_Draft]:
        """Written programs that were not measured, the best by the model of schedules first."""
        found: list[tuple[float, _Draft]] = []
        for pool in self._pools.values():
            drafts = [
                draft
                for draft in self._reservoir
                if draft.pool is pool and self._is_open(draft.program)
            ]
            if drafts:
                schedules = pool.encode(np.stack([draft.vector for draft in drafts]))
                scores = self._model.draft_scores(self._number, schedules)
                found += zip(scores.tolist(), drafts, strict=True)
        return [draft for _, draft in sorted(found, key=lambda pair: -pair[0])]

    def _first_seed(self) -> int:
        """A seed of the task's own, whatever was measured."""
        return int(content_id(self._seed, self.task.workload_id)[:8], 16)

    def _draft(self, program: Program, origin: Origin) -> _Draft | None:
        pool = self._pools.get(program.sketch_id)
        if pool is None:
            return None
        return _Draft(pool, pool.vectors.encode([program])[0], program, origin)

    def _fitted(self, priors: Sequence[Prior], rng: np.random.Generator) -> Iterator[_Draft]:
        """Fit priors to this task, by each rule in turn."""
        seen = set[str]()
        for prior, rule in itertools.product(priors, RULES[:3]):
            pool = self._pools.get(prior.sketch_id)
            if pool is None:
                continue
            vector = diffuse(prior.decisions, pool.vectors, rule, rng)
            program = pool.vectors.decode(vector[None])[0]
            if program.program_id not in seen and self._is_open(program):
                seen.add(program.program_id)
                yield _Draft(pool, vector, program, Origin.DIFFUSED)

    def _evolved(self, start: Sequence[_Draft], rng: np.random.Generator) -> Iterator[_Draft]:
        """Candidates of all sketches, the most promising first.

        With sketch selection, or without a model that compares them, the sketches are mixed by
        their shares.
        """
        config = self._config
        score = partial(self._model.draft_scores, self._number) if self._model.drafts else None
        shares = self._choice.shares()
        if not config.sketch_selection:
            shares = dict.fromkeys(shares, 1 / len(shares))
        by_share = config.sketch_selection or score is None
        found: list[tuple[float, _Draft]] = []
        origins = {draft.program.program_id: draft.origin for draft in start}
        for sketch_id, pool in self._pools.items():
            elite = [p for _, p in self.elite if p.sketch_id == sketch_id][:_ELITE]
            rows = [draft.vector[None] for draft in start if draft.pool is pool]
            vectors, scores = pool.evolve(
                np.concatenate([*rows, _known_rows(pool.vectors.encode(elite))]),
                max(8, round(config.population * shares[sketch_id])),
                config.generations,
                config.crossover,
                score,
                self._model.direction_chances,
                rng,
            )
            places = (np.arange(len(vectors)) + rng.random()) / shares[sketch_id]
            found += [
                (
                    place,
                    _Draft(pool, vector, program, origins.get(program.program_id, Origin.EVOLVED)),
                )
                for place, vector, program in zip(
                    places if by_share else -scores,
                    vectors,
                    pool.vectors.decode(vectors),
                    strict=True,
                )
                if self._is_open(program)
            ]
        found.sort(key=lambda pair: pair[0])
        return (draft for _, draft in found)

    def _drawn(self, rng: np.random.Generator) -> Iterator[_Draft]:
        """Draw candidates at random, for when evolution comes up with nothing new."""
        for pool in self._pools.values():
            vectors = pool.vectors.random(self._config.population, rng)
            for vector, program in zip(vectors, pool.vectors.decode(vectors), strict=True):
                if self._is_open(program):
                    yield _Draft(pool, vector, program, Origin.RANDOM)

    def _lowered(self, drafts: Iterator[_Draft], wanted: int) -> list[Proposal]:
        """Lower drafts until enough pass the postprocessors, and score them exactly.

        Different decisions may come to the same code; that is wanted once, and not if it was
        measured.
        """
        passed: dict[int, tuple[Candidate, Origin]] = {}
        tried = 0
        while not passed or tried < _MOST_REFUSED * wanted:
            some = list(itertools.islice(drafts, wanted - len(passed)))
            if not some:
                break
            tried += len(some)
            schedules = self.space.lower_all([draft.program for draft in some])
            for draft, schedule in zip(some, schedules, strict=True):
                code = None if schedule is None else structural_key(schedule.mod)
                if code is None or code in self._code:
                    self._refused.add(draft.program.program_id)
                else:
                    passed.setdefault(code, (Candidate(draft.program, schedule), draft.origin))
        return self.proposals(list(passed.values()))

    def _is_open(self, program: Program) -> bool:
        name = program.program_id
        return name not in self.measured and name not in self._refused


def _known_rows(vectors: Integers) -> Integers:
    """Leave out the vectors with a decision that is in no list."""
    return vectors[(vectors >= 0).all(1)]


def _in_turns(one: Iterable[_Draft], other: Iterable[_Draft]) -> list[_Draft]:
    """Mix drafts of two sources, each program once."""
    both = itertools.chain.from_iterable(itertools.zip_longest(one, other))
    return list({d.program.program_id: d for d in both if d is not None}.values())


def _best_inherited(survivors: Sequence[Proposal], scores: Floats, count: int) -> list[int]:
    inherited = (Origin.DIFFUSED, Origin.GENERATED)
    order = np.argsort(-scores, kind="stable")
    return [int(i) for i in order if survivors[i].origin in inherited][:count]


def _table(proposals: Sequence[Proposal]) -> Integers:
    """Number the decisions of programs, column by column, sketches apart."""
    rows = [
        [p.candidate.program.sketch_id, *map(repr, p.candidate.program.decisions)]
        for p in proposals
    ]
    width = max((len(row) for row in rows), default=0)
    columns = [[row[i] if i < len(row) else "" for row in rows] for i in range(width)]
    numbered = [np.unique(column, return_inverse=True)[1] for column in columns]
    return np.stack(numbered, axis=1) if numbered else np.zeros((len(rows), 0), "int64")
