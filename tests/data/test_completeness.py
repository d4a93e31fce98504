"""Half copies of datasets are named at once, by whatever reads them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from costlib.data.completeness import check_complete
from costlib.data.dataset import Dataset
from costlib.data.parts import write_part
from costlib.data.verify import verify
from costlib.errors import CostlibError, DatasetError
from costlib.hub import Bundle
from costlib.hub.evaluate import evaluate
from costlib.hub.train import train
from costlib.logs.export import export_metaschedule
from costlib.report import report
from costlib.schema import TABLES

ZOO = Path(__file__).parents[2] / "datasets" / "zoo"


@pytest.fixture
def copy(measured_dataset: Dataset, tmp_path: Path) -> Dataset:
    return Dataset.open(shutil.copytree(measured_dataset.path, tmp_path / "copy"))


def without_sketches(dataset: Dataset) -> str:
    shutil.rmtree(dataset.path / "sketches")
    return "are of a sketch that is not there"


def with_half_of_its_workloads(dataset: Dataset) -> str:
    rows = dataset.scan("workloads").collect()
    shutil.rmtree(dataset.path / "workloads")
    half = rows.head(len(rows) // 2).to_arrow().cast(TABLES["workloads"])
    write_part(dataset.path / "workloads", half, TABLES["workloads"])
    return "are of a workload that is not there"


def without_hardware(dataset: Dataset) -> str:
    shutil.rmtree(dataset.path / "hardware")
    return "is missing, but there are measurements on it"


HALVES = [without_sketches, with_half_of_its_workloads, without_hardware]


@pytest.mark.parametrize("halve", HALVES)
def test_one_line_at_once(
    copy: Dataset, bundle: Bundle, tmp_path: Path, halve: Callable[[Dataset], str]
) -> None:
    check_complete(copy)
    told = halve(copy)
    for read in (
        lambda: train(copy, tmp_path / "bundle"),
        lambda: evaluate(bundle, copy),
        lambda: evaluate(bundle, copy, everything=True),
        lambda: report(str(copy.path)),
        lambda: export_metaschedule(copy, tmp_path / "database"),
    ):
        with pytest.raises(CostlibError, match=told) as error:
            read()
        assert "\n" not in str(error.value)
    assert any(told in problem.what for problem in verify(copy))
    assert not (tmp_path / "bundle").exists()


def test_the_held_out_tasks_count(copy: Dataset, measured_dataset: Dataset) -> None:
    inner = Dataset.open(shutil.copytree(measured_dataset.path, copy.path / "heldout"))
    check_complete(copy)
    without_sketches(inner)
    with pytest.raises(DatasetError, match="heldout is incomplete"):
        check_complete(copy)


def test_the_shipped_dataset_is_complete() -> None:
    check_complete(Dataset.open(ZOO))


def test_a_report_writes_nothing_into_a_dataset(copy: Dataset) -> None:
    before = {path: path.stat().st_mtime_ns for path in copy.path.rglob("*")}
    report(str(copy.path))
    assert {path: path.stat().st_mtime_ns for path in copy.path.rglob("*")} == before


def test_rows_that_are_there_twice_are_named_and_dropped(copy: Dataset) -> None:
    """As two processes leave them that measured the same programs."""
    from costlib.cli.dataset import compact as command
    from costlib.data.compact import compact

    sound = copy.scan().collect().sort("program_id", "measured_at")
    first = copy.part_files("measurements")[0]
    rows = pl.read_parquet(first, hive_partitioning=False)
    again = rows.with_columns(
        latency_s=pl.when(pl.col("status") == "ok").then(pl.col("latency_s") * 2),
        run_secs=pl.col("run_secs").list.eval(pl.element() * 2),
        measured_at=pl.col("measured_at") + pl.duration(seconds=1),
    )
    schema = TABLES["measurements"]
    twice = write_part(first.parent, again.to_arrow().cast(schema), schema)
    shutil.copyfile(copy.part_files("sketches")[0], copy.path / "sketches" / "part-9.parquet")
    named = {problem.file: problem for problem in verify(copy) if "repeat" in problem.what}
    problem = named[twice.relative_to(copy.path).as_posix()]
    assert problem.what.startswith(f"{len(rows)} of {len(rows)} rows repeat a program_id, ")
    assert "compact --drop-duplicates" in problem.mend
    assert "sketches/part-9.parquet" in named
    assert compact(copy).dropped == 0
    sketches = copy.scan("sketches").select("sketch_id").unique().collect().height
    done = compact(copy, drop_duplicates=True)
    assert done.dropped == len(rows) + sketches
    assert [problem for problem in verify(copy) if "repeat" in problem.what] == []
    assert copy.scan().collect().sort("program_id", "measured_at").equals(sound)
    command(copy.path, drop_duplicates=True, as_json=True)
    assert json.dumps(compact(copy, drop_duplicates=True).dropped) == "0"
