"""The models of a bundle while a run goes on: corrected by what the run measures."""

from __future__ import annotations

import numpy as np
from pydantic import Field

from costlib.arrays import Bools, Floats
from costlib.canary_times import CanaryTimes
from costlib.features.batch import FeatureBatch, join
from costlib.frozen import FrozenStrict
from costlib.hub.bundle import Bundle
from costlib.models.residual import CorrectedModel
from costlib.space.directions import stock_probabilities

_GROWTH = 1.1
"""By what factor the measurements have grown before the corrections are fitted again."""

_LEAST_CHANCE = 0.02
"""Of any direction that is allowed, so that none is forgotten."""


class RunModelConfig(FrozenStrict):
    """Settings of :class:`RunModel`.

    Attributes
    ----------
    draft
        Let the bundle's model of schedules guide the evolution (without a bundle the run's own,
        once 32 programs of a task were measured); otherwise the exact model scores a random part of
        the population.
    correction
        Correct the models by what the run measures.
    directions
        Mutate in the direction that the bundle's classifier expects most of; otherwise with
        MetaSchedule's probabilities. Off by default: what a mutation brings on average says little
        where the best of hundreds is taken, and it gained nothing
        (``docs/results/ablation.md``).
    direction_temperature
        How much less likely a direction is with an expected speed-up that is lower by its factor
        e.
    generator
        Let programs that the bundle's generator writes, if it has one, start the search and evolve.
        Off by default: after the first two programs it gains nothing
        (``docs/results/generator.md``).
    """

    draft: bool = True
    correction: bool = True
    directions: bool = False
    direction_temperature: float = Field(0.2, gt=0)
    generator: bool = False


class RunModel:
    """Scores candidates of all tasks of a run, roughly by their schedules or exactly.

    Parameters
    ----------
    bundle
        The pretrained bundle; without one nothing is known before something is measured.
    config
        What to make use of.
    seed
        Seed of the corrections.
    canary
        What the canaries of the machine take, which tell the models how fast it is.

    Attributes
    ----------
    pretrained
        Whether there is a bundle.
    generator
        The bundle's, if there is one and it is to be used.
    """

    def __init__(
        self,
        bundle: Bundle | None,
        config: RunModelConfig | None = None,
        seed: int = 0,
        canary: CanaryTimes | None = None,
    ) -> None:
        config = config or RunModelConfig()
        self.pretrained = bundle is not None
        self.canary = canary
        self._config = config
        self._exact = CorrectedModel(bundle.statement_model() if bundle else Nothing(), seed=seed)
        draft = bundle.draft if bundle else Nothing()
        self._draft = CorrectedModel(draft, seed=seed) if draft and config.draft else None
        self.generator = bundle.generator if bundle and config.generator else None
        self._directions = bundle.directions if bundle and config.directions else None
        self._numbers: dict[str, int] = {}
        self._seen: list[tuple[FeatureBatch, FeatureBatch]] = []
        self._latency_s: list[Floats] = []
        self._groups: list[Floats] = []
        self._fitted = 0

    def number_of(self, workload_id: str) -> int:
        """Return the index of a task in the run; a new one if it was not met before."""
        return self._numbers.setdefault(workload_id, len(self._numbers))

    @property
    def drafts(self) -> bool:
        """Whether :meth:`draft_scores` says anything."""
        return self._draft is not None

    def scores(self, task: int, statements: FeatureBatch) -> Floats:
        """Score lowered programs of a task; float64 `n`."""
        return self._exact.predict(statements, task)

    def draft_scores(self, task: int, schedules: FeatureBatch) -> Floats:
        """Score a task's programs by their schedules; float64 `n`, 0 without a model of those."""
        if self._draft is None:
            return np.zeros(len(schedules))
        return self._draft.predict(schedules, task)

    def direction_chances(self, schedules: FeatureBatch, allowed: Bools) -> Floats:
        """Return with which probability to change a program in each direction.

        Parameters
        ----------
        schedules
            `n` programs.
        allowed
            bool `n x d`: which of :data:`costlib.space.directions.DIRECTIONS` there are.

        Returns
        -------
        ndarray
            float64 `n x d`: by the expected gain of each direction and its probability to be the
            best (Han et al. 2025); MetaSchedule's without a classifier.
        """
        if self._directions is None:
            return stock_probabilities(allowed)
        likely = self._directions.probabilities(schedules, allowed)
        gains = self._directions.expected_gains(schedules, allowed)
        gains -= np.where(allowed, gains, -np.inf).max(1, keepdims=True, initial=-1e9)
        chances = (likely + _LEAST_CHANCE) * np.exp(gains / self._config.direction_temperature)
        chances = np.where(allowed, np.maximum(chances, _LEAST_CHANCE), 0)
        return np.asarray(chances / np.maximum(chances.sum(1, keepdims=True), 1e-300))

    def observe(
        self, task: int, statements: FeatureBatch, schedules: FeatureBatch, latency_s: Floats
    ) -> None:
        """Take up `n` measured programs of a task; :meth:`refit` learns from them."""
        if len(latency_s):
            self._seen.append((statements, schedules))
            self._latency_s.append(latency_s)
            self._groups.append(np.full(len(latency_s), task))

    def refit(self) -> None:
        """Correct the models by all that was observed, where that has become notably more."""
        if not self._config.correction or len(self._seen) <= _GROWTH * self._fitted:
            return
        self._fitted = len(self._seen)
        latency_s = np.concatenate(self._latency_s)
        groups = np.concatenate(self._groups).astype("int64")
        self._exact.refit(join([one for one, _ in self._seen]), latency_s, groups)
        if self._draft is not None:
            self._draft.refit(join([one for _, one in self._seen]), latency_s, groups)


class Nothing:
    """A model that knows nothing, where there is no bundle."""

    def predict(self, batch: FeatureBatch) -> Floats:
        """Score all programs alike."""
        return np.zeros(len(batch))
