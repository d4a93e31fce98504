from __future__ import annotations

from pathlib import Path
from typing import Any, Self

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import spearmanr
from sklearn.ensemble import ExtraTreesRegressor

from costlib.arrays import Floats, Integers
from costlib.features.batch import FeatureBatch, concatenate, select
from costlib.models.base import CostModel
from costlib.models.residual import CorrectedModel, _OwnTrees


class Indifferent(CostModel):
    """Scores everything alike."""

    kind = "indifferent"

    def fit(self, batch: FeatureBatch, labels: Floats, groups: Any, *, seed: int = 0) -> None: ...

    def predict(self, batch: FeatureBatch) -> Floats:
        return np.zeros(len(batch))

    def save(self, folder: Path) -> None: ...

    @classmethod
    def load(cls, folder: Path) -> Self:
        return cls()


def programs(count: int, seed: int) -> tuple[FeatureBatch, np.ndarray]:
    stores = np.random.default_rng(seed).uniform(size=(count, 1, 4)).astype("float32")
    batch = concatenate(list(stores), np.zeros((count, 1), "float32"))
    return batch, 1e-3 * (1 + 5 * stores[:, 0, 0].astype("float64"))


def ungrouped(count: int) -> Integers:
    return np.zeros(count, "int64")


def test_learns_what_a_global_model_without_trees_misses() -> None:
    model = CorrectedModel(Indifferent())
    batch, latency_s = programs(300, seed=0)
    model.refit(batch, latency_s, ungrouped(300))
    unseen, unseen_latency_s = programs(60, seed=1)
    assert spearmanr(model.predict(unseen, task=0), -unseen_latency_s)[0] > 0.8


def test_own_trees_are_those_of_scikit_learn() -> None:
    batch, latency_s = programs(40, seed=0)
    unseen, _ = programs(60, seed=1)
    forest = ExtraTreesRegressor(100, max_features="sqrt", random_state=3)
    columns = np.ptp(batch.pooled(), axis=0) > 0
    forest.fit(batch.pooled()[:, columns], latency_s)
    leaves = _OwnTrees(batch, latency_s, seed=3).leaves(unseen)
    np.testing.assert_array_equal(leaves, forest.apply(unseen.pooled()[:, columns]))


def test_a_few_measurements_tell_which_of_many_features_counts() -> None:
    rng = np.random.default_rng(0)
    stores = rng.uniform(size=(140, 1, 40)).astype("float32")
    latency_s = 1e-3 * (1 + 5 * stores[:, 0, 0].astype("float64"))
    batch = concatenate(list(stores), np.zeros((140, 1), "float32"))
    model = CorrectedModel(Indifferent())
    model.refit(select(batch, np.arange(40)), latency_s[:40], ungrouped(40))
    unseen = select(batch, np.arange(40, 140))
    assert spearmanr(model.predict(unseen, task=0), -latency_s[40:])[0] > 0.9


@pytest.mark.parametrize("count", [1, 3])
def test_a_handful_of_measurements_changes_nothing(count: int) -> None:
    model = CorrectedModel(Indifferent())
    batch, latency_s = programs(count, seed=0)
    model.refit(batch, latency_s, ungrouped(count))
    np.testing.assert_array_equal(model.predict(batch), np.zeros(count))


class Thirds(Indifferent):
    """Two trees that know which third of the first feature a program is in, not which is fast."""

    def leaves(self, batch: FeatureBatch) -> Integers:
        third = np.floor(3 * batch.stores[:, 0]).astype("int64")
        return np.stack([third, third], axis=1)


def test_a_few_measurements_tell_what_leaves_are_worth() -> None:
    model = CorrectedModel(Thirds())
    batch, latency_s = programs(12, seed=0)
    model.refit(batch, latency_s, ungrouped(12))
    unseen, _ = programs(60, seed=1)
    scores, third = model.predict(unseen, task=0), Thirds().leaves(unseen)[:, 0]
    means = [scores[third == number].mean() for number in range(3)]
    assert means[0] > means[1] > means[2]


def test_is_the_gaussian_process_that_it_says_it_is() -> None:
    model = CorrectedModel(Thirds())
    batch, latency_s = programs(20, seed=0)
    groups = np.arange(20) % 2
    model.refit(batch, latency_s, groups)
    leaves = Thirds().leaves(batch)[:, 0]
    alike = (leaves[:, None] == leaves) * (0.3 + 0.7 * (groups[:, None] == groups))
    throughput = -np.log(latency_s)
    for group in (0, 1):
        throughput[groups == group] -= throughput[groups == group].mean()
    expected = alike @ np.linalg.solve(alike + 0.2 * np.eye(20), throughput)
    for group in (0, 1):
        found = model.predict(batch, task=group)[groups == group]
        np.testing.assert_allclose(found, expected[groups == group], rtol=1e-4, atol=1e-6)


def test_another_task_gets_what_the_tasks_have_in_common() -> None:
    model = CorrectedModel(Thirds())
    batch, latency_s = programs(40, seed=0)
    model.refit(batch, latency_s, ungrouped(40))
    own, other = model.predict(batch, task=0), model.predict(batch, task=7)
    np.testing.assert_allclose(other, 0.3 * own, rtol=1e-6)
    np.testing.assert_array_equal(other, model.predict(batch))


class Right(Thirds):
    """Knows the latency."""

    def predict(self, batch: FeatureBatch) -> Floats:
        return np.asarray(-np.log(1 + 5 * batch.stores[:, 0].astype("float64")))


@given(count=st.integers(4, 200), spread=st.floats(0, 0.5), seed=st.integers(0, 99))
@settings(max_examples=30, deadline=None)
def test_a_right_model_stays_right(count: int, spread: float, seed: int) -> None:
    model = CorrectedModel(Right())
    batch, latency_s = programs(count, seed)
    noise = np.random.default_rng(seed).normal(0, spread, count)
    model.refit(batch, latency_s * np.exp(noise), ungrouped(count))
    unseen, unseen_latency_s = programs(200, seed + 1)
    right = spearmanr(model.predict(unseen, task=0), -unseen_latency_s)[0]
    assert right > 1 - max(0.02, 4 * spread / count**0.5)


class Noise(Indifferent):
    """Trees that have nothing to do with the latency."""

    def predict(self, batch: FeatureBatch) -> Floats:
        return Right().predict(batch)

    def leaves(self, batch: FeatureBatch) -> Integers:
        digits = (batch.stores[:, 0][:, None] * [1e3, 1e4, 1e5]).astype("int64")
        return digits % 4


def test_is_left_out_where_those_held_back_are_ranked_worse_with_it() -> None:
    model = CorrectedModel(Noise())
    batch, latency_s = programs(100, seed=0)
    latency_s *= np.exp(np.random.default_rng(0).normal(0, 2, 100) * (np.arange(100) % 7 == 0))
    model.refit(batch, latency_s, ungrouped(100))
    assert model.share == 0
    np.testing.assert_array_equal(model.predict(batch, task=0), Right().predict(batch))
