from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from costlib.data.dataset import Dataset
from costlib.errors import DatasetError
from costlib.models import gbdt
from costlib.models.boosting import lgb
from costlib.models.gbdt import GbdtConfig, GbdtModel, ranked_together
from costlib.training import out_of_core
from costlib.training.batches import TrainingData, assemble
from costlib.training.metrics import Metrics, evaluate_scores
from costlib.training.out_of_core import MAX_BIN, fit_gbdt

CONFIG = GbdtConfig(num_trees=20, min_programs_per_leaf=3)


def judge(model: GbdtModel, data: TrainingData) -> Metrics:
    return evaluate_scores(model.predict(data.batch), data.latency_s, data.groups)


@pytest.mark.parametrize("slice_rows", [7, 8192])
def test_streamed_rows_give_the_same_model_as_those_in_memory(
    dataset: Dataset, monkeypatch: pytest.MonkeyPatch, slice_rows: int
) -> None:
    monkeypatch.setattr(out_of_core._PooledRows, "batch_size", slice_rows)
    data = assemble(dataset)
    pooled = data.batch.pooled()
    kept = out_of_core._telling_columns(pooled)
    assert 10 < kept.sum() < pooled.shape[1]
    pooled[:, ~kept] = 0
    expected = GbdtModel(CONFIG)
    binned = lgb.Dataset(
        pooled,
        expected.relevance(data.labels),
        group=np.bincount(data.groups),
        params=expected.parameters(0) | {"max_bin": MAX_BIN, "enable_bundle": False},
    )
    expected.fit_binned(binned)
    found = fit_gbdt(dataset, config=CONFIG)
    np.testing.assert_allclose(found.predict(data.batch), expected.predict(data.batch))


def test_it_learns_and_reloads(dataset: Dataset, tmp_path: Path) -> None:
    data = assemble(dataset)
    model = fit_gbdt(dataset, config=CONFIG)
    assert judge(model, data).pairwise_accuracy > 0.75
    model.save(tmp_path)
    again = GbdtModel.load(tmp_path)
    np.testing.assert_array_equal(again.predict(data.batch), model.predict(data.batch))


def test_dropped_columns_are_constant_or_equal_to_another() -> None:
    a, b = np.arange(4.0), np.array([1.0, 0.0, 1.0, 0.0])
    sample = np.stack([a, np.zeros(4), b, a, b], axis=1).astype("float32")
    assert out_of_core._telling_columns(sample).tolist() == [True, False, True, False, False]


def test_tasks_can_be_chosen(dataset: Dataset) -> None:
    chosen = assemble(dataset).tasks[0][0]
    only = assemble(dataset, only={chosen})
    model = fit_gbdt(dataset, only={chosen}, config=CONFIG)
    assert judge(model, only).tasks == 1


def test_a_dataset_with_nothing_to_rank(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="nothing to rank"):
        fit_gbdt(Dataset.create(tmp_path / "empty"))


def test_large_tasks_are_cut_for_lightgbm(
    dataset: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert ranked_together([3, 10_000, 25_000]) == [3, 10_000, 8334, 8333, 8333]
    monkeypatch.setattr(gbdt, "_MOST_RANKED_TOGETHER", 8)
    data = assemble(dataset)
    assert judge(fit_gbdt(dataset, config=CONFIG), data).pairwise_accuracy > 0.6
