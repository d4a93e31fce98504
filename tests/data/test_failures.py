"""Failures that may be the machine's: found, and replaced by new measurements."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import polars as pl
import pyarrow.parquet as pq
import pytest
from dataset_rows import failed, fill, hardware, measurement, workload

from costlib.data.compact import compact
from costlib.data.dataset import Dataset
from costlib.data.failures import failures, replace_failures
from costlib.data.verify import Problem, verify
from costlib.errors import DatasetError
from costlib.schema import CONFIRMED

ID = hardware().hardware_id
START = datetime(2026, 2, 1, tzinfo=UTC)


def batch(first: int, count: int, status: str = "build_error", **changes: Any) -> list[Any]:
    """Failures that were written down at once."""
    changes = {"status": status, "measured_at": START + timedelta(seconds=first), **changes}
    return [failed(first + number, **changes) for number in range(count)]


def at(row: dict[str, Any], secs: int) -> dict[str, Any]:
    return row | {"measured_at": START + timedelta(seconds=secs)}


def found(dataset: Dataset, *parts: list[Any]) -> list[Problem]:
    fill(dataset)
    dataset.append_workloads([workload("other")])
    for rows in parts:
        dataset.append_measurements(ID, rows)
    problems = verify(dataset)
    compact(dataset)
    after = verify(dataset)
    assert len(after) <= len(problems)
    return problems


def test_a_part_all_of_which_failed(dataset: Dataset) -> None:
    rows = batch(10, 4)
    (problem,) = found(dataset, rows)
    part = dataset.path / problem.file
    assert part.name.startswith("part-")
    assert "4 measurements in a row, of one task" in problem.what
    assert f"(build_error: no), from {rows[0]['program_id']} in row 1" in problem.what
    assert rows[-1]["program_id"] in problem.what
    assert "`costlib collect --retry-failed`" in problem.mend


def test_failures_of_several_tasks_in_a_row(dataset: Dataset) -> None:
    one = [at(measurement(10), 10), *batch(11, 4)]
    two = [*batch(20, 4, workload_id="other"), at(measurement(30), 30)]
    (problem,) = found(dataset, one, two)
    assert "8 measurements in a row, of 2 tasks" in problem.what
    assert "in row 2" in problem.what


@pytest.mark.parametrize(
    "rows",
    [
        [at(measurement(9), 0), *batch(10, 15)],
        [at(measurement(9), 0), *batch(10, 30, "run_timeout")],
        batch(10, 3),
        [*batch(10, 3), *batch(13, 3, "run_error")],
        batch(10, 20, error=f"crashed{CONFIRMED}"),
        batch(10, 20, "invalid"),
        batch(10, 20, origin="imported"),
    ],
)
def test_failures_that_may_well_be_the_programs(dataset: Dataset, rows: list[Any]) -> None:
    assert found(dataset, rows) == []


def test_replacing(dataset: Dataset) -> None:
    fill(dataset)
    rows = [measurement(9), *batch(10, 3), measurement(20)]
    dataset.append_measurements(ID, rows)
    dataset.append_measurements(ID, [failed(10, origin="repeated"), measurement(30)])
    workload_ids = [rows[0]["workload_id"]]
    wrong = failures(dataset, ID, workload_ids, before=START + timedelta(1))
    assert set(wrong["program_id"]) == {row["program_id"] for row in rows[1:4]}
    assert failures(dataset, ID, ["other"], before=START + timedelta(1)).is_empty()
    assert failures(dataset, ID, workload_ids, before=datetime(2026, 1, 1, tzinfo=UTC)).is_empty()
    replace_failures(dataset, ID, [measurement(10), failed(12, error="again")])
    records = dataset.scan().collect()[4:].sort("measured_at", maintain_order=True)
    errors = {9: None, 10: None, 11: "no", 12: "again", 20: None, 30: None}
    assert dict(records.select("program_id", "error").iter_rows()) == {
        measurement(number)["program_id"]: error for number, error in errors.items()
    }
    assert len(records) == len(errors), "each program once"
    assert verify(dataset) == []


def test_a_part_of_a_newer_costlib_is_left_as_it_is(dataset: Dataset) -> None:
    fill(dataset)
    dataset.append_measurements(ID, batch(10, 1))
    part = dataset.part_files("measurements")[1]
    rows = pq.ParquetFile(part).read()
    pq.write_table(rows.append_column("joules", [[1.0]]), part)
    with pytest.raises(DatasetError, match="use a newer one"):
        replace_failures(dataset, ID, [measurement(10)])
    assert "joules" in pl.read_parquet(part, hive_partitioning=False).columns
