from __future__ import annotations

import threading
import time
from pathlib import Path

import polars as pl
import pyarrow.parquet as pq
import pytest
from dataset_rows import fill, hardware, measurement, sketch, workload

from costlib.data import compact as module
from costlib.data.compact import compact
from costlib.data.dataset import Dataset
from costlib.data.parts import list_parts, remove_replaced, write_part
from costlib.data.verify import verify
from costlib.errors import DatasetError
from costlib.schema import NETWORKS, TABLES

ID = hardware().hardware_id


def everything(dataset: Dataset) -> dict[str, pl.DataFrame]:
    tables = {table: dataset.scan(table).collect() for table in TABLES}
    return {table: rows.sort(rows.columns[:3]) for table, rows in tables.items()}


def test_few_parts_with_the_same_rows(dataset: Dataset) -> None:
    fill(dataset, parts=9)
    dataset.append_workloads([workload("another")])
    held_out = Dataset.create(dataset.path / "heldout")
    fill(held_out, parts=3)
    before = everything(dataset)
    done = compact(dataset)
    assert (done.parts_before, done.parts_after) == (14 + 7, 5 + 5)
    assert done.bytes_after < done.bytes_before
    assert {table: rows.to_dicts() for table, rows in everything(dataset).items()} == {
        table: rows.to_dicts() for table, rows in before.items()
    }
    rows = dataset.scan().collect()
    assert rows["decisions"].to_list() == sorted(rows["decisions"])
    assert pl.scan_parquet(dataset.path / "measurements/**/*.parquet").collect().height == 36
    again = compact(dataset)
    assert again.parts_before == again.parts_after == 10
    assert again.bytes_before == again.bytes_after


def test_parts_of_a_good_size_stay(dataset: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(dataset, parts=12)
    size = max(part.stat().st_size for part in dataset.part_files("measurements"))
    monkeypatch.setattr(module, "PART_BYTES", 4 * size)
    compact(dataset)
    assert len(dataset.part_files("measurements")) == 3
    assert dataset.scan().collect().height == 48


def test_replaced_parts_do_not_count_from_the_moment_of_the_rename(dataset: Dataset) -> None:
    folder = dataset.path / "networks"
    row = {"network": ["a"], "workload_id": ["b"], "weight": [1]}
    table = pl.DataFrame(row).to_arrow().cast(NETWORKS)
    old = [write_part(folder, table, NETWORKS) for _ in range(2)]
    new = write_part(folder, table, NETWORKS, replaces=[part.name for part in old])
    assert list_parts(folder) == dataset.part_files("networks") == [new]
    assert dataset.scan("networks").collect().height == 1
    assert [problem.what for problem in verify(dataset) if "not a part" in problem.what] == []
    assert old[0].exists()
    remove_replaced(folder)
    assert list_parts(folder) == [new]
    assert not old[0].exists()


def test_an_older_part_gets_its_missing_columns(dataset: Dataset) -> None:
    fill(dataset, parts=2)
    part = dataset.part_files("measurements")[0]
    pq.write_table(pq.ParquetFile(part).read().drop(["direction"]), part)
    compact(dataset)
    assert dataset.scan().collect()["direction"].null_count() == 8


def test_a_part_with_columns_of_a_later_version_is_left_alone(dataset: Dataset) -> None:
    fill(dataset, parts=3)
    part = dataset.part_files("measurements")[0]
    rows = pq.ParquetFile(part).read()
    pq.write_table(rows.append_column("added_later", rows["seed"]), part)
    compact(dataset)
    assert part in dataset.part_files("measurements")
    assert len(dataset.part_files("measurements")) == 2


def test_a_damaged_part_stops_it_before_anything_is_lost(dataset: Dataset) -> None:
    fill(dataset, parts=3)
    part = dataset.part_files("measurements")[1]
    content = bytearray(part.read_bytes())
    content[len(content) // 20] ^= 1
    part.write_bytes(content)
    with pytest.raises(DatasetError, match=f"{part.name} is damaged"):
        compact(dataset)
    assert len(dataset.part_files("measurements")) == 3


def test_appending_after_it_knows_what_is_there(dataset: Dataset) -> None:
    fill(dataset, parts=2)
    compact(dataset)
    assert dataset.append_sketches([sketch()]) == 0
    dataset.append_measurements(ID, [measurement(100)])
    assert len(dataset.measured(ID)) == 9


def test_it_waits_for_readers_before_it_removes(dataset: Dataset, tmp_path: Path) -> None:
    fill(dataset, parts=3)
    with dataset.reading():
        frame = dataset.scan()
        compaction = threading.Thread(target=compact, args=(dataset,), daemon=True)
        compaction.start()
        for _ in range(1000):
            if list(dataset.path.glob("measurements/*/*-compacted.parquet")):
                break
            time.sleep(0.01)
        assert frame.collect().height == dataset.scan().collect().height == 12
    compaction.join(timeout=10)
    assert len(list(dataset.path.glob("measurements/*/*.parquet"))) == 1
