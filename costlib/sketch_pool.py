"""One sketch of a task while it is searched: its vectors of decisions and how they evolve."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from costlib.arrays import Bools, Floats, Integers
from costlib.features.batch import FeatureBatch, join, select
from costlib.features.schedule import ScheduleEncoder
from costlib.features.vector_encoder import VectorEncoder
from costlib.space.directions import DIRECTIONS
from costlib.space.vectors import DecisionVectors

_OF_NICHE = 4
"""So many of each niche go on, however bad they are."""

_FROM_NICHES = 0.3
"""Share of the parents that are the best of their niches."""

Score = Callable[[FeatureBatch], Floats]
Guide = Callable[[FeatureBatch, Bools], Floats]
"""Schedules and the directions that they allow, bool `n x d`, to a probability of each."""


class SketchPool:
    """Candidates of one sketch.

    Parameters
    ----------
    vectors
        The decisions of a sketch.
    encoder
        Encodes its programs.
    context
        float32 `c`: describes task and hardware.

    Attributes
    ----------
    encode
        Encodes vectors.
    """

    def __init__(self, vectors: DecisionVectors, encoder: ScheduleEncoder, context: Any) -> None:
        self.vectors = vectors
        self.encode = VectorEncoder(self.vectors, encoder, context)
        self._allowed = np.array(
            [
                any(
                    direction == name and size > 1
                    for direction, size in zip(
                        self.vectors.directions, self.vectors.sizes, strict=True
                    )
                )
                for name in DIRECTIONS
            ]
        )

    def evolve(
        self,
        start: Integers,
        size: int,
        generations: int,
        crossover: float,
        score: Score | None,
        guide: Guide,
        rng: np.random.Generator,
        niches: bool = False,
    ) -> tuple[Integers, Floats]:
        """Let a population evolve.

        Parameters
        ----------
        start
            int64 `n x d`: who is in it from the start; it is filled up at random.
        size
            How many there are in each generation.
        generations
            How often they have children; the best of all go on.
        crossover
            Share of the children that have two parents; the others are mutations.
        score, guide
            The models. Without one that scores there is one generation, of those that were there
            from the start, and the order is random.
        rng
            Decides everything else.
        niches
            Keep the best of each niche as well (MAP-Elites: Mouret and Clune 2015), and let them
            breed.

        Returns
        -------
        vectors, scores
            Those that are there at the end, each once, the best first.
        """
        missing = max(0, size - len(start))
        people = _distinct(np.concatenate([start, self.vectors.random(missing, rng)]))
        schedules = self.encode(people)
        if score is None:
            parents = rng.integers(len(start) or len(people), size=size)
            children = self._children(people, schedules, parents, crossover, guide, rng)
            people = _distinct(np.concatenate([people, children]))
            return rng.permutation(people), np.zeros(len(people))
        scores = score(schedules)
        for _ in range(generations if self._allowed.any() else 0):
            parents = _by_rank(scores, size, rng)
            if niches:
                leaders = np.flatnonzero(self._places(people, scores) == 0)
                swapped = rng.random(size) < _FROM_NICHES
                parents[swapped] = rng.choice(leaders, int(swapped.sum()))
            children = self._children(people, schedules, parents, crossover, guide, rng)
            children = _distinct(np.concatenate([people, children]))[len(people) :]
            if len(children) == 0:
                continue
            born = self.encode(children)
            people = np.concatenate([people, children])
            scores = np.concatenate([scores, score(born)])
            best = np.argsort(-scores, kind="stable")
            late = best[size:]
            best = best[:size]
            if niches:
                kept = self._places(people, scores)[late] < _OF_NICHE
                best = np.concatenate([best, late[kept]])
            people, scores = people[best], scores[best]
            schedules = select(join([schedules, born]), best)
        order = np.argsort(-scores, kind="stable")
        return people[order], scores[order]

    def _places(self, people: Integers, scores: Floats) -> Integers:
        """Return on which place in its niche each of `n` vectors is, the best on 0; int64 `n`."""
        niches = self.vectors.niches(people)
        order = np.lexsort((-scores, niches))
        ordered = niches[order]
        places = np.empty(len(people), "int64")
        places[order] = np.arange(len(people)) - np.searchsorted(ordered, ordered)
        return places

    def _children(
        self,
        people: Integers,
        schedules: FeatureBatch,
        parents: Integers,
        crossover: float,
        guide: Guide,
        rng: np.random.Generator,
    ) -> Integers:
        """Return a child of each parent: a mutation, or its mixture with another parent."""
        children = self._mutate(people, schedules, parents, guide, rng)
        both = rng.random(len(parents)) < crossover
        others = people[rng.permutation(parents)]
        children[both] = self.vectors.crossover(people[parents], others, rng)[both]
        return children

    def _mutate(
        self,
        people: Integers,
        schedules: FeatureBatch,
        parents: Integers,
        guide: Guide,
        rng: np.random.Generator,
    ) -> Integers:
        asked, places = np.unique(parents, return_inverse=True)
        allowed = np.tile(self._allowed, (len(asked), 1))
        chances = guide(select(schedules, asked), allowed)[places]
        drawn = rng.random((len(parents), 1)) * chances.sum(1, keepdims=True)
        directions = np.minimum((chances.cumsum(1) < drawn).sum(1), len(DIRECTIONS) - 1)
        return self.vectors.mutate(people[parents], [DIRECTIONS[d] for d in directions], rng)


def _distinct(vectors: Integers) -> Integers:
    """Keep each row once, in the order of its first."""
    if vectors.shape[1] == 0:
        return vectors[:1]
    _, first = np.unique(vectors, axis=0, return_index=True)
    return vectors[np.sort(first)]


def _by_rank(scores: Floats, count: int, rng: np.random.Generator) -> Integers:
    """Draw `count` indices; the better half's chance is linear in its rank, the worse has none."""
    order = np.argsort(-scores, kind="stable")[: max(1, len(scores) // 2)]
    chances = np.arange(len(order), 0, -1, dtype="float64")
    return np.asarray(rng.choice(order, count, p=chances / chances.sum()))
