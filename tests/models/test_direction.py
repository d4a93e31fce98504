from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from costlib.errors import BundleError, InputError
from costlib.features.batch import FeatureBatch, concatenate
from costlib.models.direction import DirectionModel
from costlib.space.directions import DIRECTIONS

UNROLL, PARALLEL = DIRECTIONS.index("unroll"), DIRECTIONS.index("parallel")


def programs(count: int, seed: int = 0) -> tuple[FeatureBatch, np.ndarray, np.ndarray]:
    """Unrolling pays where the first feature is positive, being parallel where it is not."""
    rng = np.random.default_rng(seed)
    stores = rng.normal(size=(count, 1, 3)).astype("float32")
    gains = np.full((count, len(DIRECTIONS)), np.nan)
    feature = stores[:, 0, 0]
    gains[:, UNROLL] = np.where(feature > 0, 0.5, -0.5) + rng.normal(size=count) * 0.1
    gains[:, PARALLEL] = 0.0
    batch = concatenate(list(stores), np.zeros((count, 1), "float32"))
    return batch, gains, np.arange(count) % 8


@pytest.fixture(scope="module")
def model() -> DirectionModel:
    fitted = DirectionModel()
    fitted.fit(*programs(800))
    return fitted


def test_the_best_direction_is_the_likeliest(model: DirectionModel) -> None:
    batch, gains, _ = programs(200, seed=1)
    chances = model.probabilities(batch, ~np.isnan(gains))
    np.testing.assert_allclose(chances.sum(1), 1)
    assert (chances[np.isnan(gains)] == 0).all()
    right = chances.argmax(1) == np.nanargmax(gains, 1)
    assert right.mean() > 0.9
    assert abs(chances.max(1).mean() - right.mean()) < 0.1


def test_expected_gains(model: DirectionModel) -> None:
    batch, gains, _ = programs(200, seed=2)
    allowed = ~np.isnan(gains)
    expected = model.expected_gains(batch, allowed)
    assert expected.shape == gains.shape and not expected[:, ~allowed.any(0)].any()
    assert np.corrcoef(expected[:, UNROLL], gains[:, UNROLL])[0, 1] > 0.8


def test_a_single_allowed_direction_is_certain(model: DirectionModel) -> None:
    batch, _, _ = programs(3)
    allowed = np.zeros((3, len(DIRECTIONS)), bool)
    allowed[:, 0] = True
    assert (model.probabilities(batch, allowed)[:, 0] == 1).all()
    assert (model.probabilities(batch, ~allowed & allowed) == 0).all(), "nothing is allowed"


def test_saved_and_loaded(model: DirectionModel, tmp_path: Path) -> None:
    model.save(tmp_path)
    again = DirectionModel.load(tmp_path)
    batch, gains, _ = programs(50, seed=3)
    allowed = ~np.isnan(gains)
    np.testing.assert_array_equal(
        again.probabilities(batch, allowed), model.probabilities(batch, allowed)
    )
    np.testing.assert_array_equal(
        again.expected_gains(batch, allowed), model.expected_gains(batch, allowed)
    )
    (tmp_path / "classifier.txt").write_text("tree")
    with pytest.raises(BundleError, match="no direction classifier"):
        DirectionModel.load(tmp_path)


def test_nothing_to_compare() -> None:
    batch, gains, groups = programs(20)
    gains[:, PARALLEL] = np.nan
    with pytest.raises(InputError, match="two directions"):
        DirectionModel().fit(batch, gains, groups)
