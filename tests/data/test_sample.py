from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from dataset_rows import CANARY, fill, hardware, measurement, network, workload

from costlib.data.dataset import Dataset
from costlib.data.sample import sample
from costlib.data.verify import verify
from costlib.errors import InputError

ID = hardware().hardware_id


@pytest.fixture
def source(dataset: Dataset) -> Dataset:
    fill(dataset, count=20)
    for name in ("b", "c"):
        dataset.append_workloads([workload(name)])
        dataset.append_networks([network("net", name)])
        dataset.append_measurements(ID, [measurement(i, name) for i in range(20)])
    other = hardware(7)
    dataset.add_hardware(other, CANARY)
    dataset.append_measurements(other.hardware_id, [measurement(0, "b")])
    fill(Dataset.create(dataset.path / "heldout"), count=9)
    return dataset


def ids(dataset: Dataset) -> set[str]:
    return set(dataset.scan().collect()["program_id"])


def test_programs_of_every_task_and_hardware(source: Dataset, tmp_path: Path) -> None:
    smaller = sample(source.path, tmp_path / "out", 4)
    counts = smaller.scan().group_by("hardware", "workload_id").agg(pl.len()).collect()
    assert sorted(counts["len"]) == [1, 4, 4, 4]
    assert ids(smaller) <= ids(source)
    held_out = smaller.held_out()
    assert held_out is not None
    assert held_out.scan().collect().height == 4


def test_the_sample_is_complete(source: Dataset, tmp_path: Path) -> None:
    import shutil

    shutil.rmtree(source.path / "heldout")
    smaller = sample(source.path, tmp_path / "out", 3, tasks=2)
    assert verify(smaller) == []
    assert smaller.scan("workloads").collect().height == 2
    assert smaller.scan("sketches").collect().height == 1


def test_the_seed_decides(source: Dataset, tmp_path: Path) -> None:
    first = ids(sample(source.path, tmp_path / "a", 3, seed=1))
    assert ids(sample(source.path, tmp_path / "a", 3, seed=1)) == first
    assert ids(sample(source.path, tmp_path / "b", 3, seed=1)) == first
    assert ids(sample(source.path, tmp_path / "c", 3, seed=2)) != first
    with pytest.raises(InputError, match="holds other programs"):
        sample(source.path, tmp_path / "a", 3, seed=2)


@pytest.mark.parametrize(("programs", "tasks"), [(0, None), (-1, None), (1, 0)])
def test_numbers_must_be_positive(
    source: Dataset, tmp_path: Path, programs: int, tasks: int | None
) -> None:
    with pytest.raises(InputError, match="at least 1"):
        sample(source.path, tmp_path / "out", programs, tasks)
    assert not (tmp_path / "out").exists()
    with pytest.raises(InputError, match="sampled itself"):
        sample(source.path, source.path, 1)
