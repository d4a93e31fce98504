"""What every cost model must do. A new model is added to ``MODELS`` and nothing else."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.stats import spearmanr

from costlib.errors import BundleError, InputError
from costlib.features.batch import FeatureBatch, concatenate
from costlib.models import model_class
from costlib.models.base import CostModel

MODELS = ("ensemble", "gbdt", "gbdt-schedules", "gbdt-statements", "mlp", "sequence")
STORE_COLUMNS = 12
CONTEXT_COLUMNS = 3


@pytest.fixture(scope="module", params=MODELS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def make_data(programs: int, tasks: int, seed: int) -> tuple[FeatureBatch, np.ndarray, np.ndarray]:
    """Programs whose label depends on the first two columns of their stores."""
    rng = np.random.default_rng(seed)
    stores = [
        rng.normal(size=(rng.integers(1, 4), STORE_COLUMNS)).astype("float32")
        for _ in range(programs)
    ]
    context = rng.normal(size=(programs, CONTEXT_COLUMNS)).astype("float32")
    quality = np.array([array[:, 0].sum() - 0.5 * array[:, 1].max() for array in stores])
    labels = 1 / (1 + np.exp(-quality))
    return concatenate(stores, context), labels, np.arange(programs) % tasks


@pytest.fixture(scope="module")
def data() -> tuple[FeatureBatch, np.ndarray, np.ndarray]:
    return make_data(600, 6, seed=0)


@pytest.fixture(scope="module")
def fitted(kind: str, data: tuple[FeatureBatch, np.ndarray, np.ndarray]) -> CostModel:
    model = model_class(kind)()
    model.fit(*data)
    return model


def test_ranks_programs_it_has_not_seen(fitted: CostModel) -> None:
    batch, labels, groups = make_data(200, 2, seed=1)
    scores = fitted.predict(batch)
    assert scores.dtype == np.float64
    assert scores.shape == (200,)
    for group in range(2):
        chosen = groups == group
        assert spearmanr(scores[chosen], labels[chosen])[0] > 0.6


def test_saved_and_loaded_scores_are_the_same_to_the_bit(
    fitted: CostModel, tmp_path: Path, data: tuple[FeatureBatch, np.ndarray, np.ndarray]
) -> None:
    fitted.save(tmp_path)
    again = type(fitted).load(tmp_path)
    np.testing.assert_array_equal(again.predict(data[0]), fitted.predict(data[0]))


def test_saved_files_cannot_execute(fitted: CostModel, tmp_path: Path) -> None:
    fitted.save(tmp_path)
    suffixes = {path.suffix for path in tmp_path.rglob("*") if path.is_file()}
    assert suffixes <= {".txt", ".json", ".safetensors", ".parquet"}


def test_the_same_seed_gives_the_same_model(
    kind: str, fitted: CostModel, data: tuple[FeatureBatch, np.ndarray, np.ndarray]
) -> None:
    again = model_class(kind)()
    again.fit(*data)
    np.testing.assert_array_equal(again.predict(data[0]), fitted.predict(data[0]))


def test_the_order_of_programs_does_not_matter_for_scores(fitted: CostModel) -> None:
    batch, _, _ = make_data(20, 1, seed=2)
    stores = [batch.stores[a:b] for a, b in zip(batch.offsets, batch.offsets[1:], strict=False)]
    reversed_batch = concatenate(stores[::-1], batch.context[::-1])
    np.testing.assert_allclose(
        fitted.predict(reversed_batch), fitted.predict(batch)[::-1], rtol=1e-5, atol=1e-6
    )


def test_few_and_many_programs_score_alike(fitted: CostModel) -> None:
    batch, _, _ = make_data(300, 1, seed=3)
    one = FeatureBatch(batch.stores[: batch.offsets[1]], batch.offsets[:2], batch.context[:1])
    np.testing.assert_allclose(fitted.predict(one), fitted.predict(batch)[:1], rtol=1e-5, atol=1e-6)


def test_no_programs_give_no_scores(fitted: CostModel) -> None:
    empty = FeatureBatch(
        np.zeros((0, STORE_COLUMNS), "float32"),
        np.zeros(1, "int64"),
        np.zeros((0, CONTEXT_COLUMNS), "float32"),
    )
    assert fitted.predict(empty).shape == (0,)


@pytest.mark.parametrize("label", [np.nan, 0.0, -1.0, 1.5, np.inf])
def test_labels_out_of_range_are_refused(kind: str, label: float) -> None:
    batch, labels, groups = make_data(20, 2, seed=0)
    labels[3] = label
    with pytest.raises(InputError, match="labels must be"):
        model_class(kind)().fit(batch, labels, groups)


def test_tasks_with_one_program_give_nothing_to_rank(kind: str) -> None:
    batch, labels, _ = make_data(5, 1, seed=0)
    with pytest.raises(InputError, match="nothing to rank"):
        model_class(kind)().fit(batch, labels, np.arange(5))


def test_lengths_that_do_not_match(kind: str) -> None:
    batch, labels, groups = make_data(5, 1, seed=0)
    with pytest.raises(InputError, match="do not match"):
        model_class(kind)().fit(batch, labels[:-1], groups)


@pytest.mark.parametrize("damage", [b"", b"\x00\xff garbage", b"tree\nnum_class=1\n"])
def test_damaged_files_are_refused(fitted: CostModel, tmp_path: Path, damage: bytes) -> None:
    fitted.save(tmp_path)
    for path in tmp_path.rglob("*"):
        if path.is_file():
            path.write_bytes(damage)
    with pytest.raises(BundleError):
        type(fitted).load(tmp_path)
