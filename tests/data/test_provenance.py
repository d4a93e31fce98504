"""What a dataset was merged from, and that it is not forgotten on the way."""

from __future__ import annotations

from pathlib import Path

import pytest
from dataset_rows import CANARY, WORKLOAD_ID, fill, hardware, measurement

from costlib.data.card import make_card
from costlib.data.dataset import Dataset
from costlib.data.manifest import PROVENANCE
from costlib.data.merge import merge
from costlib.data.provenance import read_sources
from costlib.data.remote import publish_dataset
from costlib.data.sample import sample
from costlib.errors import DatasetError


@pytest.fixture
def merged(tmp_path: Path) -> Dataset:
    """Of ``first``, with three measurements, and ``second``, with one on another hardware."""
    fill(Dataset.create(tmp_path / "first"), count=3)
    second = Dataset.create(tmp_path / "second")
    fill(second, count=0)
    second.add_hardware(hardware(7), CANARY)
    second.append_measurements(hardware(7).hardware_id, [measurement(0)])
    merge([tmp_path / "first", tmp_path / "second"], tmp_path / "merged")
    return Dataset.open(tmp_path / "merged")


def test_what_it_was_merged_from(merged: Dataset, tmp_path: Path) -> None:
    first, second = read_sources(merged)
    assert (first.name, first.measurements, first.hardware) == (
        "first",
        3,
        (hardware().hardware_id,),
    )
    assert (second.name, second.measurements) == ("second", 1)
    assert second.hardware == (hardware(7).hardware_id,)
    assert first.created == Dataset.open(tmp_path / "first").info.created
    assert read_sources(Dataset.open(tmp_path / "first")) == ()
    assert "| second | 1 | " in make_card(merged)
    assert "Made from" not in make_card(Dataset.open(tmp_path / "first"))


def test_merged_again_the_sources_remain(merged: Dataset, tmp_path: Path) -> None:
    fill(Dataset.create(tmp_path / "third"), count=5)
    paths = [merged.path, tmp_path / "third"]
    merge(paths, tmp_path / "all")
    merge(paths, tmp_path / "all")
    assert [one.name for one in read_sources(Dataset.open(tmp_path / "all"))] == [
        "first",
        "second",
        "third",
    ]


def test_a_source_that_has_grown_is_noted_as_it_is_now(merged: Dataset, tmp_path: Path) -> None:
    first = Dataset.open(tmp_path / "first")
    first.append_measurements(hardware().hardware_id, [measurement(8)])
    merge([first.path], merged.path)
    assert [one.measurements for one in read_sources(merged)] == [4, 1]


def test_samples_and_published_copies_name_them_too(merged: Dataset, tmp_path: Path) -> None:
    sample(merged.path, tmp_path / "some", programs_per_task=1)
    published = publish_dataset(merged, f"file://{tmp_path}/published")
    for one in (Dataset.open(tmp_path / "some"), Dataset.open(published)):
        assert read_sources(one) == read_sources(merged)


def test_what_is_damaged_is_named(merged: Dataset) -> None:
    (merged.path / PROVENANCE).write_text('[{"name": 3}]')
    with pytest.raises(DatasetError, match=r"provenance\.json cannot be read") as raised:
        read_sources(merged)
    assert "\n" not in str(raised.value)
    assert merged.scan().filter(workload_id=WORKLOAD_ID).collect().height == 4
