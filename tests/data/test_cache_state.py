"""What programs found in the caches, in datasets of before that was told and of after."""

from __future__ import annotations

import shutil
from pathlib import Path

import polars as pl
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from dataset_rows import fill, hardware, measurement

from costlib.data.compact import compact
from costlib.data.dataset import Dataset
from costlib.data.parts import read_columns, read_part
from costlib.data.records import measurement_of, measurement_row
from costlib.data.verify import verify
from costlib.measure.measurement import Measurement
from costlib.schema import MEASUREMENTS, CacheState, Origin, Status
from costlib.space.program import Program

ZOO = Path(__file__).parents[2] / "datasets" / "zoo"
ID = hardware().hardware_id


@pytest.fixture
def shipped(tmp_path: Path) -> Dataset:
    """Some of the shipped records of one hardware, written when nothing was told of caches."""
    copy = Path(shutil.copytree(ZOO, tmp_path / "zoo", ignore=shutil.ignore_patterns("heldout")))
    shutil.rmtree(copy / "mutations")
    for folder in sorted((copy / "measurements").iterdir())[1:]:
        shutil.rmtree(folder)
    (records,) = (copy / "measurements").rglob("*.parquet")
    tasks = pc.unique(pq.read_table(records, columns=["workload_id"])[0])[:30]
    tables = (copy / "workloads", copy / "networks")
    for part in (records, *(part for table in tables for part in table.iterdir())):
        table = pq.ParquetFile(part).read()
        pq.write_table(table.filter(pc.is_in(table["workload_id"], tasks)), part)
    return Dataset.open(copy)


def test_old_records_were_measured_warm(shipped: Dataset) -> None:
    (part,) = shipped.part_files("measurements")
    assert "cache" not in pq.read_schema(part).names
    rows = shipped.scan().collect()
    assert len(rows) == 60
    assert rows["cache"].unique().to_list() == ["warm"]
    assert set(read_part(part, MEASUREMENTS)["cache"].to_pylist()) == {"warm"}
    only = read_columns(part, pl.Schema({"program_id": pl.String(), "cache": pl.String()}))
    assert only["cache"].unique().to_list() == ["warm"]
    assert len(only) == len(rows)
    assert measurement_of(rows.row(0, named=True)).cache is CacheState.WARM


def test_old_and_new_records_side_by_side(shipped: Dataset) -> None:
    rows = shipped.scan().collect()
    hardware_id = rows["hardware"][0]
    cold = rows.drop("hardware").filter(pl.col("status") == "ok").row(0, named=True)
    shipped.append_measurements(hardware_id, [cold | {"cache": "cold_weights"}])
    done = compact(shipped, drop_duplicates=True)
    assert done.dropped == 0
    (part,) = shipped.part_files("measurements")
    assert "cache" in pq.read_schema(part).names
    counts = dict(shipped.scan().collect()["cache"].value_counts().iter_rows())
    assert counts == {"warm": len(rows), "cold_weights": 1}
    kept = shipped.scan().filter(pl.col("cache") == "warm").drop("cache").collect()
    key = ["program_id", "measured_at"]
    assert kept.sort(key).equals(rows.drop("cache").sort(key))
    assert not verify(shipped)


def test_a_state_that_does_not_exist(dataset: Dataset) -> None:
    fill(dataset)
    dataset.append_measurements(ID, [measurement(90, cache="tepid")])
    assert any("unknown state of the caches" in fault.what for fault in verify(dataset))


def test_the_same_program_twice_in_one_state_is_one_too_many(dataset: Dataset) -> None:
    fill(dataset)
    for cache in ("warm", "cold_weights", "cold_weights"):
        dataset.append_measurements(ID, [measurement(91, cache=cache)])
    assert any("repeat" in fault.what for fault in verify(dataset))
    assert compact(dataset, drop_duplicates=True).dropped == 1
    assert not verify(dataset)


@pytest.mark.parametrize("state", CacheState)
def test_a_measurement_keeps_its_state(state: CacheState, dataset: Dataset) -> None:
    fill(dataset)
    program = Program("a", "b", [[0, [4, 2]]])
    noted = Measurement(program, Status.OK, latency_s=1e-3, run_secs=(1e-3,), cache=state)
    dataset.append_measurements(ID, [measurement_row(noted, 0, Origin.RANDOM)])
    rows = dataset.scan().filter(pl.col("workload_id") == "a").collect()
    assert measurement_of(rows.row(0, named=True)) == noted
