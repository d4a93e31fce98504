"""Evolution under a learned cost model: Ansor's search (OSDI'20), scored in two stages.

Two-stage scoring: thousands of candidates are made, changed, mixed and scored as vectors of
decisions (:mod:`costlib.sketch_pool`); the best of them are lowered and scored by the
exact model; the best of those are measured.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np
from pydantic import Field

from costlib.arrays import Floats, Integers
from costlib.features.batch import FeatureBatch, join
from costlib.generator.writer import Writer
from costlib.hardware import Hardware
from costlib.identity import content_id
from costlib.measure.measurement import Measurement
from costlib.schema import Origin
from costlib.search.evolution.second_stage import Draft, SecondStage
from costlib.search.evolution.selection import select_batch
from costlib.search.evolution.sketch_choice import SketchChoice
from costlib.search.run_model import RunModel
from costlib.search.strategy import Prior, Proposal, Strategy, StrategyConfig
from costlib.sketch_pool import SketchPool
from costlib.space.diffusion import RULES, diffuse
from costlib.space.program import Program
from costlib.space.vectors import sketch_vectors
from costlib.workloads.task import Task

_ELITE = 16
"""Measured programs that every population starts with."""

_STALLED = 8
"""Programs in a row, none of them better, after which it is time to look at other niches."""

_EARLY = 32
"""Programs of a task for which ``early_survivors`` are lowered; without a bundle no model of
schedules guides these, as it would mislead by what little it knows."""

_WRITTEN = 64
"""Programs of a task that the generator writes."""

_Niche = tuple[str, int]


class _Ranked(NamedTuple):
    """One of a population that has evolved.

    Attributes
    ----------
    order, score
        Its place among all, the lowest first, and its draft score.
    niche
        Sketch and kind of program.
    """

    order: float
    score: float
    niche: _Niche
    pool: SketchPool
    vector: Integers


class EvolutionConfig(StrategyConfig):
    """Settings of :class:`EvolutionarySearch`.

    Attributes
    ----------
    population, generations
        Vectors of decisions that evolve, and how often they are replaced.
    survivors, early_survivors
        So many candidates are lowered, and scored by the exact model, for each that is measured;
        and for each of a task's first 32, which have little else to go by.
    crossover
        Share of the children that have two parents. Off by default: it gained nothing that can be
        told from noise (``docs/results/ablation.md``).
    inherited
        Share of a task's first batch, and of the candidates for it, that is inherited or written.
    epsilon
        Share of a batch that is drawn at random.
    niches
        Share of the rounds, while nothing better is found, that measure the best of other kinds of
        programs, those first that were measured least: a model that is wrong about one finds out.
    sketch_selection
        Explore all sketches, then keep mostly to the best one; otherwise all alike, always.
    """

    population: int = Field(512, ge=8)
    generations: int = Field(4, ge=0)
    survivors: int = Field(2, ge=1)
    early_survivors: int = Field(8, ge=1)
    crossover: float = Field(0.0, ge=0, le=1)
    inherited: float = Field(0.5, ge=0, le=1)
    epsilon: float = Field(0.1, ge=0, le=1)
    niches: float = Field(0.5, ge=0, le=1)
    sketch_selection: bool = True

    def start(self, task: Task, hardware: Hardware, model: RunModel, seed: int = 0) -> Strategy:
        """Begin an evolution."""
        return EvolutionarySearch(task, hardware, model, self, seed)


class EvolutionarySearch(Strategy):
    """Ansor's evolution, guided by the models of a run."""

    _config: EvolutionConfig

    @cached_property
    def _pools(self) -> dict[str, SketchPool]:
        """Candidates of each sketch; random programs show what decisions there are."""
        found = sketch_vectors(self.space, self._first_seed(), self._chosen_elsewhere)
        encoder = self._encoder
        return {
            name: SketchPool(vectors, encoder.sketches[name], encoder.context)
            for name, vectors in found.items()
        }

    @cached_property
    def _chosen_elsewhere(self) -> list[Program]:
        """Programs that were recalled: they may have decisions that no random one has."""
        return []

    @cached_property
    def _second(self) -> SecondStage:
        return SecondStage(self)

    @cached_property
    def _visits(self) -> Counter[_Niche]:
        """How often programs of each niche were measured."""
        return Counter()

    @cached_property
    def _choice(self) -> SketchChoice:
        return SketchChoice(list(self._encoder.sketches))

    def propose(
        self, count: int, priors: Sequence[Prior] = (), elsewhere: bool | None = None
    ) -> list[Proposal]:
        """Return programs to measure next; see :meth:`Strategy.propose`.

        ``elsewhere``: whether of the niches that were measured least; if that is not said, now and
        then in a search that stands still.
        """
        rng, share = self._rng(), self._config.inherited
        inherited = _in_turns(self._fitted(priors, rng), self._written())
        if elsewhere is None:
            stalled = bool(self.elite) and self.history.stands() >= _STALLED
            elsewhere = stalled and rng.random() < self._config.niches
        survivors_each = (
            self._config.early_survivors if self._is_early() else self._config.survivors
        )
        wanted = count if elsewhere else survivors_each * count
        people = self._evolved(inherited, rng, elsewhere)
        unusual = self._unusual(people, count) if elsewhere else []
        first = [*unusual, *inherited[: round(share * (count if self.elite else wanted))]]
        taken = {draft.program.program_id for draft in first}
        others = (d for d in self._drafts(people, inherited) if d.program.program_id not in taken)
        drafts = itertools.chain(first, others, self._drawn(rng))
        survivors = self._second.survivors(drafts, wanted)
        if not survivors:
            self.exhausted = True
            return []
        scores = np.array([proposal.score for proposal in survivors])
        chosen: list[int] = []
        if not self.elite:
            chosen = _best_inherited(survivors, scores, round(share * count))
        rest = np.array([i for i in range(len(survivors)) if i not in chosen], "int64")
        more = select_batch(scores[rest], count - len(chosen), rng, self._config.epsilon)
        return [survivors[i] for i in [*chosen, *rest[more].tolist()]]

    def _is_early(self) -> bool:
        return len(self.history.measured) < _EARLY

    def begin(self, proposals: Sequence[Proposal]) -> None:
        """Note what is being measured, its code too."""
        super().begin(proposals)
        self._second.begin(proposals)

    def observe(self, proposals: Sequence[Proposal], measurements: Sequence[Measurement]) -> None:
        """Learn what was measured, about sketches and code too."""
        self._second.begin(proposals)
        super().observe(proposals, measurements)
        for measurement in measurements:
            program = measurement.program
            self._choice.observe(program.sketch_id, measurement.latency_s)
            if (pool := self._pools.get(program.sketch_id)) is not None:
                (niche,) = pool.vectors.niches(pool.vectors.encode([program])).tolist()
                self._visits[program.sketch_id, niche] += 1

    def recall(self, measurements: Sequence[Measurement]) -> None:
        """Take up programs that somebody else has chosen and measured, before any are proposed."""
        self._chosen_elsewhere.extend(measurement.program for measurement in measurements)
        super().recall(measurements)

    @cached_property
    def _reservoir(self) -> list[tuple[Draft, FeatureBatch]]:
        """Programs by the generator and their schedules: written once, then there in each round."""
        if self._model.generator is None:
            return []
        vectors = {sketch_id: pool.vectors for sketch_id, pool in self._pools.items()}
        writer = Writer(self._model.generator, self.task, self._hardware, vectors)
        written = writer.write_all(_WRITTEN, np.random.default_rng(self._first_seed()))
        found = (self._draft(program, Origin.GENERATED) for program in written.programs)
        drafts = [draft for draft in found if draft is not None]
        by_pool = [[d for d in drafts if d.pool is pool] for pool in self._pools.values()]
        return [
            pair
            for some in by_pool
            if some
            for pair in zip(
                some, some[0].pool.encode(np.stack([d.vector for d in some])).split(), strict=True
            )
        ]

    def _written(self) -> list[Draft]:
        """Written programs that were not measured, the best by the model of schedules first."""
        drafts = [one for one in self._reservoir if self.is_open(one[0].program)]
        if not drafts:
            return []
        schedules = join([schedule for _, schedule in drafts])
        order = np.argsort(-self._model.draft_scores(self._number, schedules), kind="stable")
        return [drafts[i][0] for i in order]

    def _first_seed(self) -> int:
        """A seed of the task's own, whatever was measured."""
        return int(content_id(self._seed, self.task.workload_id)[:8], 16)

    def _draft(self, program: Program, origin: Origin) -> Draft | None:
        pool = self._pools.get(program.sketch_id)
        if pool is None:
            return None
        return Draft(pool, pool.vectors.encode([program])[0], program, origin)

    def _fitted(self, priors: Sequence[Prior], rng: np.random.Generator) -> Iterator[Draft]:
        """Fit priors to this task, by each rule in turn."""
        seen = set[str]()
        for prior, rule in itertools.product(priors, RULES[:3]):
            pool = self._pools.get(prior.sketch_id)
            if pool is None:
                continue
            vector = diffuse(prior.decisions, pool.vectors, rule, rng)
            program = pool.vectors.decode(vector[None])[0]
            if program.program_id not in seen and self.is_open(program):
                seen.add(program.program_id)
                yield Draft(pool, vector, program, Origin.DIFFUSED)

    def _evolved(
        self, start: Sequence[Draft], rng: np.random.Generator, niches: bool
    ) -> list[_Ranked]:
        """Candidates of all sketches, the most promising first.

        With sketch selection, or without a model that compares them, the sketches are mixed by
        their shares.
        """
        config = self._config
        guided = self._model.drafts and (self._model.pretrained or not self._is_early())
        score = partial(self._model.draft_scores, self._number) if guided else None
        shares = self._choice.shares()
        if not config.sketch_selection:
            shares = dict.fromkeys(shares, 1 / len(shares))
        by_share = config.sketch_selection or score is None
        found: list[_Ranked] = []
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
                niches,
            )
            places = (np.arange(len(vectors)) + rng.random()) / shares[sketch_id]
            order = places if by_share else -scores
            kinds = zip(itertools.repeat(sketch_id), pool.vectors.niches(vectors).tolist())
            pools = itertools.repeat(pool)
            found += map(_Ranked, order.tolist(), scores.tolist(), kinds, pools, vectors)
        return sorted(found, key=lambda one: one.order)

    def _drafts(self, people: Sequence[_Ranked], start: Sequence[Draft]) -> Iterator[Draft]:
        """Those of a population that are worth lowering, in its order."""
        origins = {draft.program.program_id: draft.origin for draft in start}
        for one in people:
            if (draft := self._draft_of(one)) is not None:
                yield replace(draft, origin=origins.get(draft.program.program_id, draft.origin))

    def _draft_of(self, one: _Ranked) -> Draft | None:
        (program,) = one.pool.vectors.decode(one.vector[None])
        if not self.is_open(program):
            return None
        return Draft(one.pool, one.vector, program, Origin.EVOLVED)

    def _unusual(self, people: Sequence[_Ranked], count: int) -> list[Draft]:
        """The best of each of so many niches, of those that were measured least."""
        best: dict[_Niche, Draft] = {}
        for one in sorted(people, key=lambda one: -one.score):
            if one.niche not in best and (draft := self._draft_of(one)) is not None:
                best[one.niche] = draft
        least = sorted(best, key=lambda niche: self._visits[niche])
        return [best[niche] for niche in least[:count]]

    def _drawn(self, rng: np.random.Generator) -> Iterator[Draft]:
        """Draw candidates at random, for when evolution comes up with nothing new."""
        for pool in self._pools.values():
            vectors = pool.vectors.random(self._config.population, rng)
            for vector, program in zip(vectors, pool.vectors.decode(vectors), strict=True):
                if self.is_open(program):
                    yield Draft(pool, vector, program, Origin.RANDOM)


def _known_rows(vectors: Integers) -> Integers:
    """Leave out the vectors with a decision that is in no list."""
    return vectors[(vectors >= 0).all(1)]


def _in_turns(one: Iterable[Draft], other: Iterable[Draft]) -> list[Draft]:
    """Mix drafts of two sources, each program once."""
    both = itertools.chain.from_iterable(itertools.zip_longest(one, other))
    return list({d.program.program_id: d for d in both if d is not None}.values())


def _best_inherited(survivors: Sequence[Proposal], scores: Floats, count: int) -> list[int]:
    inherited = (Origin.DIFFUSED, Origin.GENERATED)
    order = np.argsort(-scores, kind="stable")
    return [int(i) for i in order if survivors[i].origin in inherited][:count]
