"""A model learns what another machine prefers: there, slow is what was fast."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import spearmanr

from costlib.arrays import Floats, Integers
from costlib.errors import InputError
from costlib.features.batch import FeatureBatch
from costlib.features.columns import CONTEXT
from costlib.models.baselines.mlp import MlpModel
from costlib.models.fine_tuning import FineTuning
from costlib.models.gbdt import GbdtConfig, GbdtModel, ScheduleGbdtModel
from costlib.testing.cost_models import made_up_programs

TREES = GbdtConfig(num_trees=60)


def turned_round(seed: int) -> tuple[FeatureBatch, Floats, Integers]:
    batch, labels, groups = made_up_programs(300, 6, seed)
    return batch, np.clip(1 - labels, 0.01, 1), groups


@pytest.fixture(scope="module", params=[GbdtModel, ScheduleGbdtModel])
def model(request: pytest.FixtureRequest) -> GbdtModel:
    made: GbdtModel = request.param(TREES)
    made.fit(*made_up_programs(600, 6, seed=0))
    return made


def test_every_way_learns_and_the_model_stays_as_it_is(model: GbdtModel, tmp_path: Path) -> None:
    batch, labels, _ = turned_round(7)
    before = model.predict(batch)
    tuning = FineTuning(model, *turned_round(5))
    for way, scores in tuning.predict(batch).items():
        tuned = tuning.model(way)
        assert type(tuned) is type(model)
        np.testing.assert_allclose(tuned.predict(batch), scores, atol=1e-9)
        assert spearmanr(scores, labels)[0] > spearmanr(before, labels)[0] + 0.05, way
        (tmp_path / way).mkdir()
        tuned.save(tmp_path / way)
        again = type(model).load(tmp_path / way)
        np.testing.assert_array_equal(again.predict(batch), tuned.predict(batch))
        assert again.num_trees == again.config.num_trees
    np.testing.assert_array_equal(model.predict(batch), before)


def test_some_ways_add_no_tree(model: GbdtModel) -> None:
    tuning = FineTuning(model, *turned_round(5))
    trees = {way: tuning.model(way).config for way in tuning.predict(turned_round(7)[0])}  # type: ignore[attr-defined]
    counts = [config.num_trees for config in trees.values()]
    assert counts[0] == model.num_trees < counts[-1]


def test_a_loaded_model_can_be_taught(model: GbdtModel, tmp_path: Path) -> None:
    model.save(tmp_path)
    batch = turned_round(7)[0]
    given, loaded = (
        FineTuning(one, *turned_round(5)).predict(batch)
        for one in (model, type(model).load(tmp_path))
    )
    for way, scores in given.items():
        np.testing.assert_array_equal(loaded[way], scores)


def test_other_models_know_no_way() -> None:
    assert FineTuning(MlpModel(), *turned_round(5)).predict(turned_round(7)[0]) == {}


def test_nothing_to_learn(model: GbdtModel) -> None:
    batch, labels, _ = made_up_programs(5, 1, seed=0)
    with pytest.raises(InputError, match="nothing to rank"):
        FineTuning(model, batch, labels, np.arange(5))


def test_it_goes_on_with_the_columns_that_it_was_trained_with(model: GbdtModel) -> None:
    batch, labels, groups = made_up_programs(300, 6, seed=5)
    told = CONTEXT[model.view]
    few = told[: batch.context.shape[1]]
    named = type(model)(TREES)
    named.fit(replace(batch, names=few), labels, groups)
    context = np.full((len(batch), len(told)), np.nan, "float32")
    context[:, : len(few)] = batch.context
    more = FeatureBatch(batch.stores, batch.offsets, context, told)
    tuning = FineTuning(named, more, np.clip(1 - labels, 0.01, 1), groups)
    for way, scores in tuning.predict(more).items():
        tuned = tuning.model(way)
        assert isinstance(tuned, GbdtModel)
        assert tuned.columns == few
        np.testing.assert_allclose(tuned.predict(more), scores, atol=1e-9)
