"""The search of one task: proposes programs to measure, learns from what came out.

Two-stage scoring: thousands of candidates are made, changed, mixed and scored as vectors of
decisions (:mod:`costlib.search.sketch_pool`); the best of them are lowered and scored by the exact
model; the best of those are measured.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from costlib.features.batch import FeatureBatch
from costlib.features.per_store import context_features, extract_stores, to_batch
from costlib.hardware import Hardware
from costlib.identity import content_id
from costlib.measure.measurer import Candidate, Measurement
from costlib.schema import Origin
from costlib.search.batch_selection import select_batch
from costlib.search.config import SearchConfig
from costlib.search.run_model import RunModel
from costlib.search.sketch_choice import SketchChoice
from costlib.search.sketch_pool import SketchPool
from costlib.space.design_space import DesignSpace
from costlib.space.diffusion import RULES, diffuse
from costlib.space.program import Program
from costlib.space.vectors import Integers
from costlib.workloads.task import Task

_EXAMPLES = 48
"""Random programs that show what the decisions of a task's sketches can be."""

_ELITE = 16
"""Measured programs that every population starts with."""

_PRIOR_SHARE = 0.5
"""Share of a task's first batch that priors may take."""

_MOST_INVALID = 4
"""Candidates that are lowered in vain, for each one wanted, before the search goes on without."""

Floats = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True)
class Prior:
    """A program of a look-alike task: sketch and decisions."""

    sketch_id: str
    decisions: Sequence[Any]


@dataclass(frozen=True)
class Proposal:
    """A program to measure, how it was made, and what is known of it."""

    candidate: Candidate
    origin: Origin
    score: float
    statements: FeatureBatch
    schedule: FeatureBatch


@dataclass(frozen=True)
class _Draft:
    pool: SketchPool
    vector: Integers
    program: Program
    origin: Origin


class TaskSearch:
    """The state of one task's search.

    Parameters
    ----------
    task
        The task.
    hardware
        What to search for.
    model
        The run's model.
    config
        How to search.
    seed
        Two searches with the same seed and the same measurements propose the same.

    Attributes
    ----------
    measured
        Ids of the programs that were measured, or failed.
    elite
        (latency in seconds, program), the best first.
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
        self.space = DesignSpace(task)
        self.measured: set[str] = set()
        self.elite: list[tuple[float, Program]] = []
        self.exhausted = False
        self._hardware = hardware
        self._number = model.number_of(task.workload_id)
        self._model = model
        self._config = config
        self._seed = seed
        self._pools: dict[str, SketchPool] = {}
        self._choice = SketchChoice([sketch.sketch_id for sketch in self.space.sketches])

    @property
    def best_s(self) -> float | None:
        """The best latency measured, in seconds."""
        return self.elite[0][0] if self.elite else None

    def propose(self, count: int, priors: Sequence[Prior] = ()) -> list[Proposal]:
        """Return programs to measure next, each different and none measured before.

        Parameters
        ----------
        count
            How many; there are fewer at the end of a small space.
        priors
            Programs of look-alike tasks, the most promising first.
        """
        rng = self._rng()
        self._explore()
        inherited = list(self._fitted(priors, count, rng))
        evolved = self._evolved(inherited, rng)
        wanted = self._config.survivors * count
        first = itertools.islice(inherited, wanted) if not self.elite else iter(inherited[:count])
        survivors = self._lowered(itertools.chain(first, evolved), wanted)
        if not survivors:
            self.exhausted = True
            return []
        scores = np.array([proposal.score for proposal in survivors])
        chosen: list[int] = []
        if not self.elite:
            chosen = _best_priors(survivors, scores, round(_PRIOR_SHARE * count))
        rest = np.array([i for i in range(len(survivors)) if i not in chosen], "int64")
        more = select_batch(
            scores[rest],
            _table([survivors[i] for i in rest]),
            count - len(chosen),
            rng,
            diversity=self._config.diversity,
            epsilon=self._config.epsilon,
        )
        return [survivors[i] for i in [*chosen, *(int(rest[i]) for i in more)]]

    def observe(self, proposals: Sequence[Proposal], measurements: Sequence[Measurement]) -> None:
        """Learn what was measured; the model is told, but not refitted."""
        for proposal, measurement in zip(proposals, measurements, strict=True):
            program = measurement.program
            self.measured.add(program.program_id)
            self._choice.observe(program.sketch_id, measurement.latency_s)
            if measurement.latency_s is None:
                continue
            self.elite.append((measurement.latency_s, program))
            latency_s = np.array([measurement.latency_s])
            self._model.observe(self._number, proposal.statements, proposal.schedule, latency_s)
        self.elite.sort(key=lambda pair: pair[0])

    def recall(self, measurements: Sequence[Measurement]) -> None:
        """Take up what an earlier session of the run has measured."""
        self._explore([m.program for m in measurements])
        drafts = [self._draft(m.program, Origin.EVOLVED) for m in measurements]
        known = {m.program.program_id: m for m in measurements}
        lowered = self._lowered((d for d in drafts if d is not None), len(measurements))
        self.measured.update(known)
        self.observe(lowered, [known[p.candidate.program.program_id] for p in lowered])

    def _rng(self) -> np.random.Generator:
        state = content_id(self._seed, self.task.workload_id, sorted(self.measured))
        return np.random.default_rng(int(state[:15], 16))

    def _explore(self, known: Sequence[Program] = ()) -> None:
        """Look at some random programs, once, to learn what decisions there are."""
        if self._pools:
            return
        seed = int(content_id(self._seed, self.task.workload_id)[:8], 16)
        examples: dict[str, list[Program]] = {}
        drawn = (program for program, _ in self.space.sample(seed))
        for program in itertools.chain(itertools.islice(drawn, _EXAMPLES), known):
            examples.setdefault(program.sketch_id, []).append(program)
        context = context_features(self.task.flops, self._hardware)
        for sketch in self.space.sketches:
            if sketch.sketch_id in examples:
                shown = examples[sketch.sketch_id]
                self._pools[sketch.sketch_id] = SketchPool(self.task, sketch, shown, context)

    def _fitted(
        self, priors: Sequence[Prior], count: int, rng: np.random.Generator
    ) -> Iterator[_Draft]:
        """Fit priors to this task, by each rule in turn."""
        seen = set(self.measured)
        for prior, rule in itertools.product(priors, RULES[:3]):
            pool = self._pools.get(prior.sketch_id)
            if pool is None:
                continue
            vector = diffuse(prior.decisions, pool.vectors, rule, rng)
            program = pool.vectors.decode(vector[None])[0]
            if program.program_id not in seen:
                seen.add(program.program_id)
                yield _Draft(pool, vector, program, Origin.DIFFUSED)

    def _evolved(self, start: Sequence[_Draft], rng: np.random.Generator) -> Iterator[_Draft]:
        """Candidates of all sketches, the most promising first."""
        config = self._config
        shares = self._choice.shares()
        if not config.sketch_selection:
            shares = dict.fromkeys(shares, 1 / len(shares))
        found: list[tuple[float, _Draft]] = []
        known = {draft.program.program_id for draft in start} | self.measured
        for sketch_id, pool in self._pools.items():
            elite = [p for _, p in self.elite if p.sketch_id == sketch_id][:_ELITE]
            rows = [vector[None] for d in start if d.pool is pool for vector in (d.vector,)]
            rows.append(_known_rows(pool.vectors.encode(elite)))
            vectors, scores = pool.evolve(
                np.concatenate(rows),
                max(8, round(config.population * shares[sketch_id])),
                config.generations if self._model.drafts or self.elite else 0,
                config.crossover,
                self._model.draft_scores,
                self._model.direction_chances,
                rng,
            )
            if not self._model.drafts:
                scores = rng.random(len(vectors))
            programs = pool.vectors.decode(vectors)
            kept = max(1, round(len(programs) * shares[sketch_id]))
            found += [
                (float(score), _Draft(pool, vector, program, Origin.EVOLVED))
                for vector, score, program in zip(vectors, scores, programs, strict=True)
                if program.program_id not in known
            ][:kept]
        found.sort(key=lambda pair: -pair[0])
        return (draft for _, draft in found)

    def _draft(self, program: Program, origin: Origin) -> _Draft | None:
        pool = self._pools.get(program.sketch_id)
        if pool is None:
            return None
        return _Draft(pool, pool.vectors.encode([program])[0], program, origin)

    def _lowered(self, drafts: Iterator[_Draft], wanted: int) -> list[Proposal]:
        """Lower drafts until enough pass the postprocessors, and score them exactly."""
        passed: list[_Draft] = []
        schedules: list[Any] = []
        for draft in itertools.islice(drafts, _MOST_INVALID * wanted):
            schedule = self.space.lower(draft.program)
            if schedule is not None:
                passed.append(draft)
                schedules.append(schedule)
            if len(passed) == wanted:
                break
        if not passed:
            return []
        stores = extract_stores(self.space.context, schedules)
        batches = [to_batch([one], self.task.flops, self._hardware) for one in stores]
        scores = self._model.scores(to_batch(stores, self.task.flops, self._hardware))
        return [
            Proposal(
                Candidate(draft.program, schedule),
                draft.origin,
                float(score),
                statements,
                draft.pool.encode(draft.vector[None]),
            )
            for draft, schedule, score, statements in zip(
                passed, schedules, scores, batches, strict=True
            )
        ]


def _known_rows(vectors: Integers) -> Integers:
    """Leave out the vectors with a decision that is in no list."""
    return vectors[(vectors >= 0).all(1)]


def _best_priors(survivors: Sequence[Proposal], scores: Floats, count: int) -> list[int]:
    order = np.argsort(-scores, kind="stable")
    return [int(i) for i in order if survivors[i].origin is Origin.DIFFUSED][:count]


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
