from __future__ import annotations

import numpy as np
import pytest

from costlib.features.batch import FeatureBatch, concatenate
from costlib.models.baselines.mlp import MlpConfig, MlpModel


def two_tasks(programs: int = 200) -> tuple[FeatureBatch, np.ndarray, np.ndarray]:
    """Two tasks whose labels depend on one feature, and on another scale in each."""
    rng = np.random.default_rng(0)
    groups = np.arange(programs) % 2
    feature = rng.uniform(0, 1, programs)
    labels = np.where(groups == 0, 0.05 + 0.05 * feature, 0.2 + 0.8 * feature)
    stores = [np.array([[x, 1e6, 7.0]], "float32") for x in feature]
    return concatenate(stores, np.zeros((programs, 1), "float32")), labels, groups


@pytest.mark.parametrize("pairs", ["task", "batch"])
def test_pairs_inside_a_task_or_across(pairs: str) -> None:
    batch, labels, groups = two_tasks()
    model = MlpModel(MlpConfig(width=16, epochs=30, pairs=pairs, tasks_per_batch=2))
    model.fit(batch, labels, groups)
    scores = model.predict(batch)
    for group in range(2):
        chosen = groups == group
        assert np.corrcoef(scores[chosen], labels[chosen])[0, 1] > 0.8


def test_columns_that_never_vary_do_no_harm() -> None:
    batch, labels, groups = two_tasks()
    model = MlpModel(MlpConfig(width=16, epochs=2))
    model.fit(batch, labels, groups)
    shifted = FeatureBatch(batch.stores + np.float32([0, 5, -3]), batch.offsets, batch.context)
    np.testing.assert_array_equal(model.predict(shifted), model.predict(batch))
