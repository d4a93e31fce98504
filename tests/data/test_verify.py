from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow.parquet as pq
import pytest
from dataset_rows import CANARY, failed, fill, hardware, measurement, sketch, workload

from costlib.data.dataset import Dataset
from costlib.data.verify import Problem, verify
from costlib.schema import CanaryTimes

ID = hardware().hardware_id


def only_problem(dataset: Dataset) -> Problem:
    (problem,) = verify(dataset)
    assert problem.mend
    assert "\n" not in problem.what
    assert not Path(problem.file).is_absolute()
    return problem


def first_part(dataset: Dataset, table: str) -> Path:
    return dataset.part_files(table)[0]


def test_a_sound_dataset(dataset: Dataset) -> None:
    assert verify(dataset) == []
    fill(dataset, parts=2)
    dataset.append_measurements(ID, [failed(100), failed(101, status="run_timeout")])
    assert verify(dataset) == []


@pytest.mark.parametrize(
    ("row", "what"),
    [
        (measurement(9, latency_s=None), "ran, but have no positive latency"),
        (measurement(9, latency_s=0.0), "ran, but have no positive latency"),
        (measurement(9, latency_s=-1.0), "ran, but have no positive latency"),
        (measurement(9, latency_s=float("nan")), "ran, but have no positive latency"),
        (measurement(9, latency_s=float("inf")), "ran, but have no positive latency"),
        (failed(9, latency_s=1e10), "failed, but have a latency"),
        (failed(9, status="slow"), "unknown status"),
        (measurement(9, origin="dreamt"), "unknown origin"),
        (measurement(9, "other"), "workload that is not there"),
        (measurement(9, program_id="0" * 16), "not the hash"),
        (measurement(9, decisions="[[0, [9, 5]]]"), "not the hash"),
        (measurement(9, decisions="[[0"), "not the hash"),
        (measurement(1), "repeat a program of this hardware"),
        (measurement(9, canary_compute=[0.001, 0.0201]), "compute canary over 20 times"),
        (measurement(9, canary_memory=[0.00001]), "memory canary over 20 times"),
        (measurement(9, canary_memory=[0.0]), "memory canary"),
        (measurement(9, canary_memory=[-0.002]), "memory canary"),
        (measurement(9, canary_memory=[float("nan")]), "memory canary"),
        (measurement(9, canary_memory=[None]), "memory canary"),
    ],
)
def test_rows_that_cannot_be(dataset: Dataset, row: dict[str, Any], what: str) -> None:
    fill(dataset)
    dataset.append_measurements(ID, [measurement(8), row])
    problem = only_problem(dataset)
    assert problem.file == str(dataset.part_files("measurements")[1].relative_to(dataset.path))
    assert what in problem.what
    assert "1 of 2 rows" in problem.what
    assert row["program_id"] in problem.what


def test_a_sketch_that_is_not_there(dataset: Dataset) -> None:
    fill(dataset)
    first_part(dataset, "sketches").unlink()
    assert "sketch that is not there" in only_problem(dataset).what


def test_a_sketch_under_another_id(dataset: Dataset) -> None:
    fill(dataset)
    dataset.append_sketches([{**sketch(), "sketch_id": "0" * 16}])
    assert only_problem(dataset).what == f"has ids that are no hashes: {'0' * 16}"


def test_a_workload_twice(dataset: Dataset) -> None:
    fill(dataset)
    part = first_part(dataset, "workloads")
    part.with_name("part-9.parquet").write_bytes(part.read_bytes())
    problem = only_problem(dataset)
    assert problem.file == "workloads/part-9.parquet"
    assert "repeats 1 ids" in problem.what


def test_the_same_program_on_two_hardwares_is_fine(dataset: Dataset) -> None:
    fill(dataset)
    other = hardware(7)
    dataset.add_hardware(other, CANARY)
    dataset.append_measurements(other.hardware_id, [measurement(1)])
    assert verify(dataset) == []


def truncate(part: Path) -> None:
    part.write_bytes(part.read_bytes()[:-20])


def flip_a_bit(part: Path) -> None:
    content = bytearray(part.read_bytes())
    content[len(content) // 20] ^= 1
    part.write_bytes(content)


def another_type(part: Path) -> None:
    rows = pl.read_parquet(part, hive_partitioning=False)
    rows.with_columns(pl.col("seed").cast(pl.String)).write_parquet(part)


def null_status(part: Path) -> None:
    rows = pl.read_parquet(part, hive_partitioning=False)
    rows.with_columns(status=pl.lit(None, pl.String)).write_parquet(part)


def no_status(part: Path) -> None:
    pq.write_table(pq.ParquetFile(part).read().drop(["status"]), part)


@pytest.mark.parametrize(
    ("damage", "what"),
    [
        (truncate, "is damaged"),
        (flip_a_bit, "is damaged"),
        (another_type, "has a column 'seed' of String instead of Int64"),
        (null_status, "lacks values in: status"),
        (no_status, "lacks values in: status"),
    ],
)
def test_a_damaged_part_and_nothing_else_is_named(
    dataset: Dataset, damage: Callable[[Path], None], what: str
) -> None:
    fill(dataset, parts=3)
    part = dataset.part_files("measurements")[1]
    damage(part)
    problem = only_problem(dataset)
    assert problem.file == str(part.relative_to(dataset.path))
    assert what in problem.what
    assert "remove that file" in problem.mend
    part.unlink()
    assert verify(dataset) == []


def test_an_older_part_without_an_optional_column_is_sound(dataset: Dataset) -> None:
    fill(dataset)
    part = first_part(dataset, "measurements")
    pq.write_table(pq.ParquetFile(part).read().drop(["direction", "latency_s"]), part)
    assert "no positive latency" in only_problem(dataset).what
    dataset.append_measurements(ID, [measurement(9)])
    rows = pq.ParquetFile(dataset.part_files("measurements")[1]).read()
    pq.write_table(rows.drop(["direction"]), part)
    dataset.part_files("measurements")[1].unlink()
    assert verify(dataset) == []


def test_measurements_without_their_hardware(dataset: Dataset) -> None:
    fill(dataset)
    (dataset.path / "hardware" / f"{ID}.json").unlink()
    problem = only_problem(dataset)
    assert problem.file == f"hardware/{ID}.json"
    assert "is missing" in problem.what


def test_a_hardware_file_of_another(dataset: Dataset) -> None:
    fill(dataset)
    folder = dataset.path / "hardware"
    text = (folder / f"{ID}.json").read_text()
    (folder / f"{ID}.json").write_text(text.replace("Test CPU", "Best CPU"))
    assert "describes another hardware, best-cpu" in only_problem(dataset).what
    (folder / f"{ID}.json").write_text("{")
    assert "is damaged" in only_problem(dataset).what


@pytest.mark.parametrize("seconds", [0.0, -1.0])
def test_a_reference_that_is_not_positive(dataset: Dataset, seconds: float) -> None:
    dataset.add_hardware(hardware(), CanaryTimes(compute_s=seconds, memory_s=0.001))
    assert "not positive" in only_problem(dataset).what


def test_a_stray_file(dataset: Dataset) -> None:
    fill(dataset)
    (dataset.path / "measurements" / f"hardware={ID}" / "copy.parquet").write_text("")
    assert "is not a part" in only_problem(dataset).what


def test_several_problems_are_all_named(dataset: Dataset) -> None:
    fill(dataset)
    dataset.append_workloads([workload("unused")])
    dataset.append_measurements(ID, [measurement(9, latency_s=None, origin="dreamt")])
    truncate(first_part(dataset, "measurements"))
    assert len(verify(dataset)) == 3
