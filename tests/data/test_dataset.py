from __future__ import annotations

import errno
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow.parquet as pq
import pytest
from dataset_rows import CANARY, fill, hardware, measurement, sketch, workload
from hypothesis import given, settings
from hypothesis import strategies as st

from costlib.canary_times import CanaryTimes
from costlib.data.dataset import Dataset
from costlib.errors import DatasetError, StorageError, UnknownNameError
from costlib.schema import TABLES, CacheState, Origin, Status

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
SECONDS = st.lists(st.floats(allow_nan=False), max_size=4)
MEASUREMENT = st.fixed_dictionaries(
    {
        "program_id": TEXT,
        "workload_id": TEXT,
        "sketch_id": TEXT,
        "decisions": TEXT,
        "status": st.sampled_from(Status).map(str),
        "latency_s": st.none() | st.floats(allow_nan=False),
        "run_secs": SECONDS,
        "canary_compute": SECONDS,
        "canary_memory": SECONDS,
        "raced": st.booleans(),
        "build_secs": st.none() | st.floats(allow_nan=False),
        "error": st.none() | TEXT,
        "origin": st.sampled_from(Origin).map(str),
        "parent_id": st.none() | TEXT,
        "direction": st.none() | TEXT,
        "seed": st.integers(-(2**63), 2**63 - 1),
        "measured_at": st.integers(0, 2**41).map(
            lambda ms: datetime.fromtimestamp(ms // 1000, UTC)
        ),
        "cache": st.sampled_from(CacheState).map(str),
    }
)


@settings(deadline=None, max_examples=50)
@given(batches=st.lists(st.lists(MEASUREMENT, max_size=5), max_size=3))
def test_measurements_come_back_as_they_were(
    tmp_path_factory: pytest.TempPathFactory, batches: list[list[dict[str, Any]]]
) -> None:
    dataset = Dataset.create(tmp_path_factory.mktemp("ds"))
    machine = hardware()
    dataset.add_hardware(machine, CANARY)
    for rows in batches:
        dataset.append_measurements(machine.hardware_id, rows)
    expected = [{**row, "hardware": machine.hardware_id} for rows in batches for row in rows]
    assert dataset.scan().collect().to_dicts() == expected
    assert dataset.measured(machine.hardware_id) == {row["program_id"] for row in expected}


def test_creating_twice_opens(dataset: Dataset) -> None:
    fill(dataset)
    assert Dataset.create(str(dataset.path)).scan().collect().height == 4


def test_create_refuses_what_is_not_its_own(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(DatasetError, match="not empty and no dataset"):
        Dataset.create(tmp_path)
    with pytest.raises(DatasetError, match="is a file"):
        Dataset.create(tmp_path / "notes.txt")
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_create_goes_on_after_being_killed_at_the_start(tmp_path: Path) -> None:
    scratch = tmp_path / ".unfinished"
    scratch.mkdir()
    (scratch / ".tmp-1-abc").write_text("{")
    Dataset.create(tmp_path)
    assert list(scratch.iterdir()) == []


@pytest.mark.parametrize("table", TABLES)
def test_an_empty_dataset_has_empty_tables(dataset: Dataset, table: str) -> None:
    empty = dataset.scan(table).collect()
    fill(dataset)
    filled = dataset.scan(table).collect()
    assert empty.height == 0
    assert empty.schema == filled.schema
    assert [name for name in filled.columns if name != "hardware"] == TABLES[table].names


def test_unknown_table(dataset: Dataset) -> None:
    with pytest.raises(UnknownNameError, match="did you mean measurements"):
        dataset.scan("measurement")


def test_known_workloads_and_sketches_are_left_out(dataset: Dataset) -> None:
    assert dataset.append_workloads([workload("a"), workload("b"), workload("a")]) == 2
    assert dataset.append_workloads([workload("b"), workload("c")]) == 1
    assert dataset.append_workloads([workload("a")]) == dataset.append_workloads([]) == 0
    assert sorted(dataset.scan("workloads").collect()["workload_id"]) == ["a", "b", "c"]
    assert dataset.append_sketches([sketch()]) == 1
    assert dataset.append_sketches([sketch()]) == 0
    rows = dataset.scan("workloads").filter(pl.col("workload_id") == "a").collect().to_dicts()
    assert rows == [workload("a")]


def test_hardwares_are_kept_apart(dataset: Dataset) -> None:
    one, two = hardware(1), hardware(2)
    for machine in (one, two):
        dataset.add_hardware(machine, CANARY)
        dataset.append_measurements(machine.hardware_id, [measurement(machine.num_cores)])
    dataset.append_measurements(one.hardware_id, [measurement(7)])
    assert dataset.hardware() == {one.hardware_id: one, two.hardware_id: two}
    assert len(dataset.measured(one.hardware_id)) == 2
    assert len(dataset.measured(two.hardware_id)) == 1
    assert dataset.measured("other") == set()
    plan = dataset.scan().filter(pl.col("hardware") == one.hardware_id).explain()
    assert two.hardware_id not in plan


def test_the_first_reference_counts(dataset: Dataset) -> None:
    machine = hardware()
    assert dataset.canary(machine.hardware_id) is None
    assert dataset.add_hardware(machine, CANARY) == CANARY
    assert dataset.add_hardware(machine, CanaryTimes(compute_s=9, memory_s=9)) == CANARY
    assert dataset.canary(machine.hardware_id) == CANARY


def test_measurements_need_their_hardware(dataset: Dataset) -> None:
    with pytest.raises(DatasetError, match="add_hardware first"):
        dataset.append_measurements("unknown", [measurement(1)])


def test_a_row_that_does_not_fit_keeps_its_whole_batch_out(dataset: Dataset) -> None:
    hardware_id = fill(dataset)
    with pytest.raises(DatasetError, match="'status' may not be null"):
        dataset.append_measurements(hardware_id, [measurement(8), measurement(9, status=None)])
    assert dataset.scan().collect().height == 4
    dataset.append_measurements(hardware_id, [])
    assert len(dataset.part_files("measurements")) == 1


@pytest.mark.parametrize("name", ["0086", "1.5", "2024-01-01"])
def test_a_hardware_id_that_looks_like_a_number_stays_text(dataset: Dataset, name: str) -> None:
    hardware_id = fill(dataset)
    folder = dataset.path / "measurements"
    (folder / f"hardware={hardware_id}").rename(folder / f"hardware={name}")
    assert dataset.scan().collect()["hardware"].unique().to_list() == [name]


@pytest.mark.parametrize("name", ["lang=en", "runs[1]", "a b*?"])
def test_any_folder_name_will_do(tmp_path: Path, name: str) -> None:
    dataset = Dataset.create(tmp_path / name / "ds")
    fill(dataset)
    assert dataset.scan().collect().height == 4
    assert dataset.scan("workloads").collect().height == 1
    assert dataset.scan().collect().columns == [*TABLES["measurements"].names, "hardware"]


def test_columns_that_an_older_part_lacks_are_null(dataset: Dataset) -> None:
    fill(dataset, parts=2)
    old, new = dataset.part_files("measurements")
    pq.write_table(pq.ParquetFile(old).read().drop(["direction"]), old)
    later = pq.ParquetFile(new).read()
    pq.write_table(later.append_column("added_later", later["seed"]), new)
    rows = dataset.scan().collect()
    assert rows.height == 8
    assert rows["direction"].null_count() == 8
    assert "added_later" not in rows.columns


def test_parts_that_polars_wrote_are_read(dataset: Dataset) -> None:
    fill(dataset)
    for table in TABLES:
        before = dataset.scan(table).collect()
        (part,) = dataset.part_files(table)
        pl.read_parquet(part, hive_partitioning=False).write_parquet(part)
        assert dataset.scan(table).collect().equals(before)


@pytest.mark.parametrize("kept", [0.0, 0.1, 0.5, 0.99])
def test_a_truncated_part_is_named_and_the_rest_survives_it(dataset: Dataset, kept: float) -> None:
    hardware_id = fill(dataset, parts=3)
    bad = dataset.part_files("measurements")[1]
    content = bad.read_bytes()
    bad.write_bytes(content[: int(kept * len(content))])
    reopened = Dataset.open(dataset.path)
    for read in (reopened.scan, lambda: reopened.measured(hardware_id)):
        with pytest.raises(DatasetError, match=rf"{bad.name} is damaged.*dataset verify") as caught:
            read()
        assert "\n" not in str(caught.value)
    reopened.append_measurements(hardware_id, [measurement(100)])
    bad.unlink()
    assert reopened.scan().collect().height == 9


def test_plain_polars_reads_it(dataset: Dataset) -> None:
    hardware_id = fill(dataset, parts=2)
    (dataset.scratch / ".tmp-1-left-behind").write_text("half a pa")
    rows = pl.scan_parquet(dataset.path / "measurements/**/*.parquet").collect()
    assert rows.height == 8
    hive = pl.scan_parquet(dataset.path / "measurements/", hive_partitioning=True).collect()
    assert hive["hardware"].unique().to_list() == [hardware_id]
    workloads = pl.read_parquet(dataset.path / "workloads/*.parquet")
    assert rows.join(workloads, on="workload_id").height == 8


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EACCES, errno.EROFS])
def test_a_disk_that_takes_no_more(
    dataset: Dataset, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    hardware_id = fill(dataset)

    def fail(*_: object) -> None:
        raise OSError(code, os.strerror(code))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fail)
        for append in (
            lambda: dataset.append_measurements(hardware_id, [measurement(9)]),
            lambda: dataset.append_workloads([workload("new")]),
            lambda: dataset.add_hardware(hardware(7), CANARY),
            lambda: Dataset.create(dataset.path.parent / "other"),
        ):
            with pytest.raises(StorageError, match=r"cannot write .*, then run it again") as caught:
                append()
            assert "\n" not in str(caught.value)
    assert list(dataset.scratch.iterdir()) == []
    assert dataset.scan().collect().height == 4
    dataset.append_measurements(hardware_id, [measurement(9)])
    assert dataset.scan().collect().height == 5
