from __future__ import annotations

import numpy as np
import pytest
from pydantic import ValidationError

from costlib.errors import UnknownNameError
from costlib.features.batch import FeatureBatch
from costlib.models import model_class
from costlib.models.gbdt import GbdtConfig, GbdtModel


def test_settings_are_frozen_and_known() -> None:
    with pytest.raises(ValidationError):
        GbdtConfig(trees=3)  # type: ignore[call-arg]
    with pytest.raises(ValidationError):
        GbdtConfig().num_trees = 3  # type: ignore[misc]


def test_unknown_model() -> None:
    with pytest.raises(UnknownNameError, match="did you mean gbdt"):
        model_class("gbd")


def noisy_tasks(tasks: int) -> tuple[FeatureBatch, np.ndarray, np.ndarray]:
    """20 programs a task, told apart by their first feature and noise."""
    rng = np.random.default_rng(0)
    stores = rng.normal(size=(20 * tasks, 6)).astype("float32")
    speed = np.exp(stores[:, 0] + rng.normal(size=len(stores)) / 2)
    groups = np.repeat(np.arange(tasks), 20)
    labels = speed / np.array([speed[groups == group].max() for group in groups])
    context = np.zeros((len(stores), 1), "float32")
    return FeatureBatch(stores, np.arange(len(stores) + 1), context), labels, groups


def test_training_stops_when_other_tasks_gain_nothing() -> None:
    batch, labels, groups = noisy_tasks(30)
    trees = {}
    for patience in (0, 5, 50):
        model = GbdtModel(GbdtConfig(num_trees=300, patience=patience))
        model.fit(batch, labels, groups)
        trees[patience] = model.num_trees
    assert trees[5] <= trees[50] < trees[0] == 300


def test_a_few_tasks_are_all_trained_on() -> None:
    model = GbdtModel(GbdtConfig(num_trees=20, patience=1))
    model.fit(*noisy_tasks(9))
    assert model.num_trees == 20
