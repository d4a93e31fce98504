from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from costlib.data.dataset import Dataset
from costlib.features import store
from costlib.features.per_store import CONTEXT_FEATURES, STORE_FEATURES, to_batch
from costlib.features.store import load_features
from costlib.features.version import FEATURE_VERSION
from costlib.hardware import Hardware


@pytest.fixture
def copy(dataset: Dataset, tmp_path: Path) -> Dataset:
    without = shutil.ignore_patterns("features")
    return Dataset.open(shutil.copytree(dataset.path, tmp_path / "copy", ignore=without))


def test_every_program_that_ran_has_features(copy: Dataset, hardware: Hardware) -> None:
    seen = []
    found = load_features(
        copy, hardware.hardware_id, lambda done, total: seen.append((done, total))
    )
    ran = copy.scan().filter(pl.col("status") == "ok").collect()
    assert set(found) == set(ran["program_id"])
    assert seen[-1] == (len(found), len(found))
    for stores in found.values():
        assert stores.dtype == np.float32
        assert stores.shape[1] == STORE_FEATURES
        assert len(stores) >= 1
        assert np.isfinite(stores).all()


def test_features_are_computed_once(
    copy: Dataset, hardware: Hardware, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = load_features(copy, hardware.hardware_id)

    def fail(*_: object) -> None:
        raise AssertionError("computed again")

    monkeypatch.setattr(store, "extract_stores", fail)
    again = load_features(copy, hardware.hardware_id)
    assert first.keys() == again.keys()
    for program_id, stores in first.items():
        np.testing.assert_array_equal(stores, again[program_id])


def test_deleted_features_come_back_the_same(copy: Dataset, hardware: Hardware) -> None:
    first = load_features(copy, hardware.hardware_id)
    shutil.rmtree(copy.path / "features" / FEATURE_VERSION)
    again = load_features(copy, hardware.hardware_id)
    for program_id, stores in first.items():
        np.testing.assert_array_equal(stores, again[program_id])


def test_context_tells_hardware_apart(copy: Dataset, hardware: Hardware) -> None:
    stores = list(load_features(copy, hardware.hardware_id).values())[:2]
    batch = to_batch(stores, 1e6, hardware)
    assert batch.context.shape == (2, CONTEXT_FEATURES)
    single = hardware.model_copy(update={"num_cores": hardware.num_cores + 1})
    assert (to_batch(stores, 1e6, single).context != batch.context).any()
