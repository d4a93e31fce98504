"""A search that is told in which direction to change each program.

Its settings are called ``oracle=truth`` and ``oracle=draft`` on a surrogate device. For each
parent the oracle makes some children in each direction and names the direction of the best one: by
what they take on the surrogate without noise, or by the score of the model of schedules. What it
asked is then not measured; the parent's children are drawn anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property, partial
from typing import Any

import numpy as np

from costlib.arrays import Floats, Integers
from costlib.features.batch import FeatureBatch
from costlib.measure.measurement import Candidate
from costlib.search.evolution import search
from costlib.sketch_pool import Guide, Score, SketchPool
from costlib.space.design_space import DesignSpace
from costlib.testing.surrogate import SurrogateDevice
from costlib.workloads.task import Task

CHILDREN = 8
"""Of each direction, that an oracle looks at."""

_NAMED = 0.9
"""How often a program is changed in the direction that was named; else as without an oracle."""

BY_TRUTH, BY_DRAFT = "oracle=truth", "oracle=draft"
"""The oracles, as settings name them."""

_ASKED = 16
"""Parents of each generation that the surrogate is asked about, the best first: each of their
children is lowered."""

Values = Callable[[SketchPool, Integers], Floats]
"""How good `n x d` vectors of a sketch are, float64 `n`, the higher the better."""


class TruthOracle:
    """Knows what programs of a task take on a surrogate.

    Parameters
    ----------
    device
        The surrogate device; of the seed of the one that is searched on, but another one.
    task
        What is searched for.
    """

    def __init__(self, device: SurrogateDevice, task: Task) -> None:
        self._device = device
        self._task = task

    @cached_property
    def _space(self) -> DesignSpace:
        return DesignSpace(self._task)

    def __call__(self, pool: SketchPool, vectors: Integers) -> Floats:
        """Return the logarithm of the throughput of each program, minus infinity if invalid."""
        programs = pool.vectors.decode(vectors)
        fresh = [one for one in programs if one.program_id not in self._device.truth_s]
        fresh = list({one.program_id: one for one in fresh}.values())
        candidates = [Candidate(one, self._space.lower(one)) for one in fresh]
        self._device.measure(self._task, [one for one in candidates if one.schedule is not None])
        known = self._device.truth_s
        return np.array([-np.log(known.get(one.program_id, np.inf)) for one in programs])


class OraclePool(SketchPool):
    """Candidates of a sketch whose parents are changed in the direction that an oracle names.

    While nothing was measured and no model compares programs there is none, as all are random.

    Parameters
    ----------
    values
        Says how good children are; the model of schedules does, if it is not given.
    """

    def __init__(self, *known: Any, values: Values | None = None) -> None:
        super().__init__(*known)
        self._values = values
        self._score: Score | None = None
        self._is_blind = False
        self._named: dict[bytes, str | None] = {}

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
        """Let a population evolve; see :meth:`SketchPool.evolve`."""
        self._score = score
        self._is_blind = score is None and (self._values is None or len(start) == 0)
        if self._values is None:
            self._named.clear()
        return super().evolve(start, size, generations, crossover, score, guide, rng, niches)

    def _mutate(
        self,
        people: Integers,
        schedules: FeatureBatch,
        parents: Integers,
        guide: Guide,
        rng: np.random.Generator,
    ) -> Integers:
        children = super()._mutate(people, schedules, parents, guide, rng)
        if self._is_blind:
            return children
        asked = np.unique(parents)
        if self._values is not None:
            asked = asked[:_ASKED]
        self._ask(people[asked], rng)
        names = [self._named.get(people[parent].tobytes()) for parent in parents.tolist()]
        follows = np.array([name is not None for name in names]) & (
            rng.random(len(parents)) < _NAMED
        )
        told = np.flatnonzero(follows)
        children[told] = self.vectors.mutate(
            people[parents[told]], [str(names[place]) for place in told.tolist()], rng
        )
        return children

    def _ask(self, parents: Integers, rng: np.random.Generator) -> None:
        """Name the best direction of each parent of which none was named yet."""
        new = [parent for parent in parents if parent.tobytes() not in self._named]
        changed = zip(self.vectors.directions, self.vectors.sizes, strict=True)
        directions = sorted({name for name, size in changed if size > 1})
        if not new or not directions:
            return
        repeated = np.repeat(np.array(new), CHILDREN * len(directions), axis=0)
        each = [name for name in directions for _ in range(CHILDREN)] * len(new)
        children = self.vectors.mutate(repeated, each, rng)
        if self._values is not None:
            values = self._values(self, children)
        else:
            assert self._score is not None
            values = self._score(self.encode(children))
        best = values.reshape(len(new), len(directions), CHILDREN).max(2)
        for parent, row in zip(new, best, strict=True):
            valid = bool(np.isfinite(row).any())
            self._named[parent.tobytes()] = directions[int(row.argmax())] if valid else None


def without_oracle(setting: str) -> str:
    """Return the setting of a search that has no oracle, but is the same otherwise."""
    parts = [part for part in setting.split(",") if part not in (BY_TRUTH, BY_DRAFT)]
    return ",".join(parts)


@contextmanager
def told(values: Values | None) -> Iterator[None]:
    """Let the evolutions in this context have an oracle; by draft scores, if it is not given."""
    plain = vars(search)["SketchPool"]
    vars(search)["SketchPool"] = partial(OraclePool, values=values)
    try:
        yield
    finally:
        vars(search)["SketchPool"] = plain
