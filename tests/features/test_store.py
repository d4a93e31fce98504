from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from costlib.data.dataset import Dataset
from costlib.errors import DatasetError
from costlib.features.store import SCHEMA, FeatureStore, ProgramFeatures, append_features

HARDWARE = "some-hardware"
COLUMNS = 5


def stores_of(program_id: str) -> np.ndarray:
    """Made-up features that tell a program: one to four stores."""
    rng = np.random.default_rng(int.from_bytes(program_id.encode(), "big"))
    return rng.normal(size=(int(rng.integers(1, 5)), COLUMNS)).astype("float32")


def features_of(program_id: str) -> ProgramFeatures:
    stores = stores_of(program_id)
    return ProgramFeatures(stores, stores.sum(0))


def append(dataset: Dataset, workload_id: str, program_ids: list[str]) -> None:
    folder = FeatureStore(dataset, HARDWARE).folder
    features = [features_of(program_id) for program_id in program_ids]
    append_features(folder, dataset.scratch, workload_id, program_ids, features)


@pytest.fixture
def empty(tmp_path: Path) -> Dataset:
    return Dataset.create(tmp_path / "ds")


IDS = st.lists(st.text("abc", min_size=3, max_size=3), min_size=1, max_size=12, unique=True)


@settings(max_examples=25, deadline=None)
@given(ids=IDS, data=st.data())
def test_programs_come_back_in_any_order_from_any_parts(
    ids: list[str], data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    dataset = Dataset.create(tmp_path_factory.mktemp("ds"))
    cut = data.draw(st.integers(0, len(ids)))
    again = data.draw(st.lists(st.sampled_from(ids), unique=True))
    for part in (ids[:cut], ids[cut:], again):
        if part:
            append(dataset, "w", part)
    append(dataset, "other", ["abc"])
    wanted = data.draw(st.permutations(ids))[: data.draw(st.integers(1, len(ids)))]

    store = FeatureStore(dataset, HARDWARE)
    known = store.known("w")
    assert sorted(known["program_id"]) == sorted(ids)
    stores, offsets, nests = store.select("w", pl.Series(wanted))
    np.testing.assert_array_equal(nests, [features_of(i).nests for i in wanted])
    np.testing.assert_array_equal(stores, np.concatenate([stores_of(i) for i in wanted]))
    assert np.diff(offsets).tolist() == [len(stores_of(i)) for i in wanted]


def test_a_program_that_cannot_be_replayed_is_noted(empty: Dataset) -> None:
    folder = FeatureStore(empty, HARDWARE).folder
    append_features(folder, empty.scratch, "w", ["a", "b"], [None, features_of("b")])
    store = FeatureStore(empty, HARDWARE)
    assert dict(store.known("w").iter_rows()) == {"a": 0, "b": len(stores_of("b"))}
    np.testing.assert_array_equal(store.select("w", pl.Series(["b"]))[0], stores_of("b"))


def test_nothing_is_known_of_another_task_or_hardware(empty: Dataset) -> None:
    append(empty, "w", ["a"])
    assert FeatureStore(empty, HARDWARE).known("v").is_empty()
    assert FeatureStore(empty, "another").known("w").is_empty()
    with pytest.raises(LookupError):
        FeatureStore(empty, HARDWARE).select("w", pl.Series(["b"]))


@pytest.mark.parametrize("part", ["stores", "nests"])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_features_that_are_no_numbers_are_refused(empty: Dataset, value: float, part: str) -> None:
    sound = features_of("a")
    broken = sound._replace(**{part: np.full_like(getattr(sound, part), value)})
    folder = FeatureStore(empty, HARDWARE).folder
    with pytest.raises(DatasetError, match="program a has a feature"):
        append_features(folder, empty.scratch, "w", ["a"], [broken])
    assert not folder.exists()


def test_a_damaged_part_is_named(empty: Dataset) -> None:
    append(empty, "w", ["a"])
    store = FeatureStore(empty, HARDWARE)
    part = next(store.folder.rglob("part-*"))
    part.write_bytes(part.read_bytes()[:-10])
    with pytest.raises(DatasetError, match=part.name):
        store.known("w")


def test_flipped_bytes_are_found(empty: Dataset) -> None:
    append(empty, "w", ["a"])
    store = FeatureStore(empty, HARDWARE)
    part = next(store.folder.rglob("part-*"))
    content = bytearray(part.read_bytes())
    start = pq.read_metadata(part).row_group(0).column(SCHEMA.names.index("stores"))
    content[start.data_page_offset + start.total_compressed_size - 8] ^= 0xFF
    part.write_bytes(content)
    with pytest.raises(DatasetError, match=part.name):
        store.select("w", pl.Series(["a"]))


def test_parts_of_an_older_layout_do_not_count(empty: Dataset) -> None:
    folder = FeatureStore(empty, HARDWARE).folder
    folder.mkdir(parents=True)
    pq.write_table(pa.table({"program_id": ["a"], "stores": [[1.0]]}), folder / "part-0.parquet")
    assert FeatureStore(empty, HARDWARE).known("w").is_empty()
