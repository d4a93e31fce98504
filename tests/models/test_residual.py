from __future__ import annotations

from pathlib import Path
from typing import Any, Self

import numpy as np
import pytest
from scipy.stats import spearmanr

from costlib.features.batch import FeatureBatch, concatenate
from costlib.models.base import CostModel, Scores
from costlib.models.residual import CorrectedModel


class Indifferent(CostModel):
    """Scores everything alike."""

    kind = "indifferent"

    def fit(self, batch: FeatureBatch, labels: Scores, groups: Any, *, seed: int = 0) -> None: ...

    def predict(self, batch: FeatureBatch) -> Scores:
        return np.zeros(len(batch))

    def save(self, folder: Path) -> None: ...

    @classmethod
    def load(cls, folder: Path) -> Self:
        return cls()


def programs(count: int, seed: int) -> tuple[FeatureBatch, np.ndarray]:
    stores = np.random.default_rng(seed).uniform(size=(count, 1, 4)).astype("float32")
    batch = concatenate(list(stores), np.zeros((count, 1), "float32"))
    return batch, 1e-3 * (1 + 5 * stores[:, 0, 0].astype("float64"))


def test_learns_what_the_global_model_misses() -> None:
    model = CorrectedModel(Indifferent())
    batch, latency_s = programs(300, seed=0)
    model.refit(batch, latency_s, np.zeros(300, "int64"))
    unseen, unseen_latency_s = programs(60, seed=1)
    assert spearmanr(model.predict(unseen), -unseen_latency_s)[0] > 0.5


@pytest.mark.parametrize("count", [1, 5])
def test_a_handful_of_measurements_changes_nothing(count: int) -> None:
    model = CorrectedModel(Indifferent())
    batch, latency_s = programs(count, seed=0)
    model.refit(batch, latency_s, np.zeros(count, "int64"))
    np.testing.assert_array_equal(model.predict(batch), np.zeros(count))


class Right(Indifferent):
    """Knows the latency."""

    def predict(self, batch: FeatureBatch) -> Scores:
        return np.asarray(-batch.stores[:, 0], "float64")


def test_a_right_model_is_left_as_it_is() -> None:
    model = CorrectedModel(Right())
    batch, latency_s = programs(100, seed=0)
    model.refit(batch, latency_s, np.zeros(100, "int64"))
    assert model.share == 0
    unseen, _ = programs(60, seed=1)
    np.testing.assert_array_equal(model.predict(unseen), Right().predict(unseen))
