"""What trees make of a dataset's programs, and what they leave to chance."""

from __future__ import annotations

import numpy as np
import pytest

from costlib.arrays import Floats
from costlib.features.batch import FeatureBatch
from costlib.testing.cost_models import made_up_programs
from costlib.testing.landscape import Landscape
from costlib.training.batches import TrainingData

PER_TASK = 200


@pytest.fixture(scope="module")
def data() -> TrainingData:
    """Two tasks, the second a thousand times as slow, with errors that no feature shows."""
    batch, labels, groups = made_up_programs(2 * PER_TASK, 2, seed=0)
    noise = np.exp(np.random.default_rng(0).normal(scale=0.1, size=len(labels)))
    latency_s = 1e-6 * 1000.0**groups * noise / labels
    best_s = np.array([latency_s[groups == group].min() for group in range(2)])
    tasks = [("light", "machine"), ("heavy", "machine")]
    return TrainingData(batch, latency_s, best_s[groups] / latency_s, groups, tasks)


@pytest.fixture(scope="module")
def landscape(data: TrainingData) -> Landscape:
    return Landscape(data, ["light", "heavy"])


def middle(batch: FeatureBatch) -> Floats:
    return np.full(len(batch), 0.5)


def test_other_programs_are_as_fast_as_they_are(landscape: Landscape) -> None:
    batch, labels, _ = made_up_programs(100, 1, seed=1)
    for task, unit_s in (("light", 1e-6), ("heavy", 1e-3)):
        error = np.log(landscape.latency_s(task, batch, middle(batch)) * labels / unit_s)
        assert np.median(np.abs(error)) < 0.4


def test_the_fit_is_judged_on_programs_that_were_held_back(landscape: Landscape) -> None:
    fit = landscape.fit
    assert (fit.tasks, fit.programs) == (2, 2 * PER_TASK)
    assert 0.6 < fit.rank_correlation < 0.99
    assert fit.unexplained > 0.1
    assert fit.top1 <= fit.top5 <= 1


def test_chance_goes_from_slow_to_fast(landscape: Landscape) -> None:
    batch, _, _ = made_up_programs(20, 1, seed=1)
    low, high = (landscape.latency_s("light", batch, np.full(20, c)) for c in (0.0, 1.0))
    assert (low > high).all()


def test_tasks_beside_those_asked_for_teach_alone(data: TrainingData) -> None:
    landscape = Landscape(data, ["heavy"])
    assert "heavy" in landscape
    assert "light" not in landscape
    assert landscape.fit.programs == PER_TASK
