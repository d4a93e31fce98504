"""What every cost model must do.

::

    class TestMyModel(CostModelSuite):
        model_class = MyModel
"""

from __future__ import annotations

import functools
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from scipy.stats import spearmanr

from costlib.arrays import Floats, Integers
from costlib.errors import BundleError, InputError
from costlib.features.batch import FeatureBatch, concatenate
from costlib.features.columns import CONTEXT
from costlib.models.base import CostModel

_STORE_COLUMNS = 12
_CONTEXT_COLUMNS = 3
_SUFFIXES = {".txt", ".json", ".safetensors", ".parquet"}


def made_up_programs(programs: int, tasks: int, seed: int) -> tuple[FeatureBatch, Floats, Integers]:
    """Make programs whose label depends on the first two columns of their stores.

    Returns
    -------
    batch, labels, groups
        `n` programs, float64 `n` labels in (0, 1), int64 `n` tasks.
    """
    rng = np.random.default_rng(seed)
    stores = [
        rng.normal(size=(rng.integers(1, 4), _STORE_COLUMNS)).astype("float32")
        for _ in range(programs)
    ]
    context = rng.normal(size=(programs, _CONTEXT_COLUMNS)).astype("float32")
    quality = np.array([array[:, 0].sum() - 0.5 * array[:, 1].max() for array in stores])
    labels = 1 / (1 + np.exp(-quality))
    return concatenate(stores, context), labels, np.arange(programs) % tasks


@functools.cache
def _fitted(model_class: type[CostModel]) -> CostModel:
    model = model_class()
    model.fit(*made_up_programs(600, 6, seed=0))
    return model


class CostModelSuite:
    """Tests of a cost model.

    Attributes
    ----------
    model_class
        The model; made without arguments.
    """

    model_class: ClassVar[type[CostModel]]

    @pytest.fixture
    def fitted(self) -> CostModel:
        """A model that was fitted once for all tests."""
        return _fitted(self.model_class)

    def test_ranks_programs_it_has_not_seen(self, fitted: CostModel) -> None:
        """Scores of other programs are in the order of their labels, more or less."""
        batch, labels, groups = made_up_programs(200, 2, seed=1)
        scores = fitted.predict(batch)
        assert scores.dtype == np.float64
        assert scores.shape == (200,)
        for group in range(2):
            chosen = groups == group
            assert spearmanr(scores[chosen], labels[chosen])[0] > 0.6

    def test_saved_and_loaded_scores_are_the_same_to_the_bit(
        self, fitted: CostModel, tmp_path: Path
    ) -> None:
        """Saving loses nothing."""
        batch, _, _ = made_up_programs(600, 6, seed=0)
        fitted.save(tmp_path)
        again = self.model_class.load(tmp_path)
        np.testing.assert_array_equal(again.predict(batch), fitted.predict(batch))

    def test_saved_files_cannot_execute(self, fitted: CostModel, tmp_path: Path) -> None:
        """Nothing but text, JSON, safetensors and parquet is written."""
        fitted.save(tmp_path)
        assert {path.suffix for path in tmp_path.rglob("*") if path.is_file()} <= _SUFFIXES

    def test_the_same_seed_gives_the_same_model(self, fitted: CostModel) -> None:
        """Fitting is deterministic."""
        batch, labels, groups = made_up_programs(600, 6, seed=0)
        again = self.model_class()
        again.fit(batch, labels, groups)
        np.testing.assert_array_equal(again.predict(batch), fitted.predict(batch))

    def test_the_order_of_programs_does_not_matter_for_scores(self, fitted: CostModel) -> None:
        """A program is scored alike wherever it stands in a batch."""
        batch, _, _ = made_up_programs(20, 1, seed=2)
        stores = [batch.stores[a:b] for a, b in zip(batch.offsets, batch.offsets[1:], strict=False)]
        turned = concatenate(stores[::-1], batch.context[::-1])
        scores = fitted.predict(batch)[::-1]
        np.testing.assert_allclose(fitted.predict(turned), scores, rtol=1e-5, atol=1e-6)

    def test_few_and_many_programs_score_alike(self, fitted: CostModel) -> None:
        """A program is scored alike alone and among others."""
        batch, _, _ = made_up_programs(300, 1, seed=3)
        one = FeatureBatch(batch.stores[: batch.offsets[1]], batch.offsets[:2], batch.context[:1])
        scores = fitted.predict(batch)[:1]
        np.testing.assert_allclose(fitted.predict(one), scores, rtol=1e-5, atol=1e-6)

    def test_columns_are_chosen_by_name(self, tmp_path: Path) -> None:
        """A model goes on to see what it was trained with, whatever else is told beside."""
        batch, labels, groups = made_up_programs(300, 6, seed=0)
        told = CONTEXT[self.model_class.view]
        named = replace(batch, names=told[: batch.context.shape[1]])
        model = self.model_class()
        model.fit(named, labels, groups)
        model.save(tmp_path)
        context = np.full((len(batch), len(told)), 7, "float32")
        context[:, : batch.context.shape[1]] = batch.context
        more = FeatureBatch(batch.stores, batch.offsets, context[:, ::-1], told[::-1])
        for one in (model, self.model_class.load(tmp_path)):
            np.testing.assert_array_equal(one.predict(more), model.predict(named))

    def test_what_is_unknown_is_no_error(self) -> None:
        """A column may be NaN, for some programs or for all."""
        batch, labels, groups = made_up_programs(300, 6, seed=0)
        context = batch.context.copy()
        context[::2, 0] = context[:, 1] = np.nan
        gaps = replace(batch, context=context)
        model = self.model_class()
        model.fit(gaps, labels, groups)
        assert np.isfinite(model.predict(gaps)).all()
        assert spearmanr(model.predict(gaps), labels)[0] > 0.6

    def test_no_programs_give_no_scores(self, fitted: CostModel) -> None:
        """An empty batch is no error."""
        stores = np.zeros((0, _STORE_COLUMNS), "float32")
        context = np.zeros((0, _CONTEXT_COLUMNS), "float32")
        assert fitted.predict(FeatureBatch(stores, np.zeros(1, "int64"), context)).shape == (0,)

    @pytest.mark.parametrize("label", [np.nan, 0.0, -1.0, 1.5, np.inf])
    def test_labels_out_of_range_are_refused(self, label: float) -> None:
        """Labels lie in (0, 1]."""
        batch, labels, groups = made_up_programs(20, 2, seed=0)
        labels[3] = label
        with pytest.raises(InputError, match="labels must be"):
            self.model_class().fit(batch, labels, groups)

    def test_tasks_with_one_program_give_nothing_to_rank(self) -> None:
        """It takes two programs of a task to learn from."""
        batch, labels, _ = made_up_programs(5, 1, seed=0)
        with pytest.raises(InputError, match="nothing to rank"):
            self.model_class().fit(batch, labels, np.arange(5))

    def test_lengths_that_do_not_match(self) -> None:
        """Programs, labels and groups are as many."""
        batch, labels, groups = made_up_programs(5, 1, seed=0)
        with pytest.raises(InputError, match="do not match"):
            self.model_class().fit(batch, labels[:-1], groups)

    @pytest.mark.parametrize("damage", [b"", b"\x00\xff garbage", b"tree\nnum_class=1\n"])
    def test_damaged_files_are_refused(
        self, fitted: CostModel, tmp_path: Path, damage: bytes
    ) -> None:
        """What cannot be read is a BundleError."""
        fitted.save(tmp_path)
        for path in tmp_path.rglob("*"):
            if path.is_file():
                path.write_bytes(damage)
        with pytest.raises(BundleError):
            self.model_class.load(tmp_path)
