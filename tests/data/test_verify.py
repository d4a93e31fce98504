from __future__ import annotations

import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow.parquet as pq
import pytest
from dataset_rows import (
    CANARY,
    WORKLOAD_ID,
    failed,
    fill,
    hardware,
    measurement,
    mutation,
    network,
    sketch,
    workload,
)

from costlib.canary_times import CanaryTimes
from costlib.data.dataset import Dataset
from costlib.data.task_tables import workload_row
from costlib.data.verify import Problem, verify
from costlib.identity import content_id
from costlib.workloads.task import Task

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
        (measurement(1), "repeat a program_id"),
        (measurement(9, canary_compute=[0.001, 0.0201]), "compute canary over 20 times"),
        (measurement(9, canary_memory=[0.00001]), "memory canary over 20 times"),
        (measurement(9, canary_memory=[0.0]), "memory canary"),
        (measurement(9, canary_memory=[-0.002]), "memory canary"),
        (measurement(9, canary_memory=[float("nan")]), "memory canary"),
        (measurement(9, canary_memory=[None]), "memory canary"),
        (measurement(9, run_secs=[]), "no positive times"),
        (measurement(9, run_secs=[0.002, -1.0]), "no positive times"),
        (measurement(9, latency_s=0.0011), "run_secs and the canaries do not give"),
        (measurement(9, canary_compute=[0.002, 0.002]), "run_secs and the canaries do not give"),
        (measurement(9, latency_s=2e-9, run_secs=[2e-9]), "faster than any machine"),
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
    problems = verify(dataset)
    assert [problem.file.split("/")[0] for problem in problems] == ["measurements", "mutations"]
    assert all("sketch that is not there" in problem.what for problem in problems)


def test_a_sketch_under_another_id(dataset: Dataset) -> None:
    fill(dataset)
    dataset.append_sketches([{**sketch(), "sketch_id": "0" * 16}])
    problem = only_problem(dataset)
    assert problem.what.startswith("1 of 1 rows have an id that is not the hash")
    assert "0" * 16 in problem.what


def test_a_workload_twice(dataset: Dataset) -> None:
    fill(dataset)
    part = first_part(dataset, "workloads")
    part.with_name("part-9.parquet").write_bytes(part.read_bytes())
    problem = only_problem(dataset)
    assert problem.file == "workloads/part-9.parquet"
    assert "1 of 1 rows repeat a workload_id" in problem.what


@pytest.mark.parametrize("mod_json", ["{}", "", '{"root_index": 9, "nodes": []}'])
def test_a_module_that_cannot_be_read(dataset: Dataset, mod_json: str) -> None:
    fill(dataset)
    dataset.append_workloads([workload("0" * 16, mod_json=mod_json)])
    problem = only_problem(dataset)
    assert problem.file.startswith("workloads/")
    assert "1 of 1 rows have a module that cannot be read" in problem.what


def test_a_module_under_another_id(dataset: Dataset, matmul: Task) -> None:
    fill(dataset)
    row = workload_row(matmul)
    dataset.append_workloads([row])
    assert verify(dataset) == []
    dataset.append_workloads([{**row, "workload_id": "0" * 16}])
    assert "0" * 16 in only_problem(dataset).what


def test_one_child_process_reads_the_modules_of_all_parts(
    dataset: Dataset, matmul: Task, dense: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad = workload("0" * 16, mod_json="{}")
    for row in (workload_row(matmul), bad, workload("1" * 16), workload_row(dense)):
        dataset.append_workloads([row])
    forks = []
    fork = os.fork
    monkeypatch.setattr(os, "fork", lambda: forks.append(1) or fork())
    problem = only_problem(dataset)
    assert problem.file == str(dataset.part_files("workloads")[1].relative_to(dataset.path))
    assert problem.what.endswith(bad["workload_id"])
    assert len(forks) == 1


def test_a_second_look_at_a_program_is_fine(dataset: Dataset) -> None:
    fill(dataset)
    dataset.append_measurements(ID, [measurement(1, origin="repeated")])
    dataset.append_measurements(ID, [measurement(8, origin="repeated"), measurement(8)])
    assert verify(dataset) == []


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
    first_part(dataset, "mutations").unlink()
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


def test_a_hardware_of_unknown_width(dataset: Dataset) -> None:
    unknown = hardware().model_copy(update={"vector_bits": 0})
    dataset.add_hardware(unknown, CanaryTimes(compute_s=0.001, memory_s=0.001))
    dataset.append_workloads([workload("w")])
    dataset.append_measurements(unknown.hardware_id, [measurement(0, workload_id="w")])
    assert not any("faster than any machine" in problem.what for problem in verify(dataset))


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


IMPORTED = {"origin": "imported", "canary_compute": [], "canary_memory": []}


def test_an_imported_program_may_occur_more_than_once(dataset: Dataset) -> None:
    machine = hardware(5)
    dataset.add_hardware(machine)
    dataset.append_workloads([workload(mod_json=None, mod_script=None, flops=None)])
    dataset.append_sketches([{**sketch(), "language": "ansor"}])
    times = [[0.002], [0.003, 0.004]]
    rows = [measurement(1, **IMPORTED, latency_s=min(t), run_secs=t) for t in times]
    dataset.append_measurements(machine.hardware_id, rows)
    assert verify(dataset) == []
    wrong = measurement(2, **IMPORTED, latency_s=3.0, run_secs=[0.003])
    dataset.append_measurements(machine.hardware_id, [wrong])
    assert "run_secs and the canaries do not give" in only_problem(dataset).what


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"parent_id": "0" * 16}, "parent that was not measured"),
        ({"program_id": "0" * 16}, "not the hash"),
        ({"parent_score": float("nan")}, "score that is no number"),
        ({"child_score": float("inf")}, "score that is no number"),
        ({"workload_id": "other"}, "workload that is not there"),
    ],
)
def test_mutations_that_cannot_be(dataset: Dataset, changes: dict[str, Any], what: str) -> None:
    fill(dataset)
    dataset.append_mutations(ID, [mutation(measurement(0), 2, child_score=None)])
    assert verify(dataset) == []
    dataset.append_mutations(ID, [mutation(measurement(0), 3) | changes])
    assert what in verify(dataset)[0].what


@pytest.mark.parametrize(
    ("row", "what"),
    [
        (network("other", "unknown"), "workload that is not there"),
        (network("other") | {"weight": 0}, "weight below 1"),
    ],
)
def test_networks_that_cannot_be(dataset: Dataset, row: dict[str, Any], what: str) -> None:
    fill(dataset)
    dataset.append_networks([row])
    assert what in only_problem(dataset).what


def test_an_unknown_language(dataset: Dataset) -> None:
    fill(dataset)
    instructions = "[1]"
    other = {"sketch_id": content_id([1]), "language": "logo", "instructions": instructions}
    dataset.append_sketches([other])
    assert "unknown language" in only_problem(dataset).what


def test_a_day_on_which_the_machine_was_another(dataset: Dataset) -> None:
    fill(dataset)
    slow = 4.0 * CANARY.compute_s
    rows = [
        measurement(
            10 + i,
            latency_s=0.002 * 1.05 / 4,
            run_secs=[0.002],
            canary_compute=[slow],
            canary_memory=[CANARY.memory_s],
            measured_at=datetime(2026, 1, day, tzinfo=UTC),
        )
        for i, day in enumerate([3] * 100 + [4] * 99)
    ]
    dataset.append_measurements(ID, rows)
    problem = only_problem(dataset)
    assert problem.file == f"measurements/hardware={ID}"
    assert "2026-01-03 the median compute canary took 4.00 times" in problem.what


def test_held_out_tasks_are_checked_and_kept_apart(dataset: Dataset) -> None:
    fill(dataset)
    held_out = Dataset.create(dataset.path / "heldout")
    held_out.append_workloads([workload("listed", name="softmax")])
    dataset.append_workloads([workload("listed", name="softmax")])
    assert verify(dataset) == []
    nearly = [{"dtype": "float32", "shape": [8, 128]}, {"dtype": "int8", "shape": []}]
    held_out.append_workloads([workload("near", arguments=nearly)])
    problem = only_problem(dataset)
    assert problem.file == "heldout"
    assert WORKLOAD_ID in problem.what
    truncate(first_part(held_out, "workloads"))
    assert only_problem(dataset).file.startswith("heldout/workloads/part-")
