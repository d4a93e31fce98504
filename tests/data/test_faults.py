"""Compaction and merging are killed at random moments; a full disk."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest
from dataset_rows import fill, hardware, measurement, workload
from forked import Popen

from costlib.data.compact import compact
from costlib.data.dataset import Dataset
from costlib.data.merge import merge
from costlib.data.verify import verify
from costlib.errors import StorageError

COMPACT = """
import sys
from costlib.data import compact
from costlib.data.dataset import Dataset
compact.PART_BYTES = int(sys.argv[2])
print("begun", flush=True)
compact.compact(Dataset.create(sys.argv[1]))
"""

MERGE = """
import sys
from costlib.data import copying
from costlib.data.merge import merge
copying.BATCH_ROWS = 20
print("begun", flush=True)
merge(sys.argv[1:-1], sys.argv[-1])
"""

APPEND = """
import sys
from dataset_rows import hardware, measurement, workload
from costlib.data.dataset import Dataset
dataset = Dataset.create(sys.argv[1])
print("begun", flush=True)
for number in range(int(sys.argv[2]), int(sys.argv[3])):
    dataset.append_workloads([workload(f"w{number}")])
    dataset.append_measurements(hardware().hardware_id, [measurement(number)])
"""


def start(code: str, *arguments: object) -> Popen:
    command = [sys.executable, "-c", code, *map(str, arguments)]
    process = Popen(command, cwd=Path(__file__).parent, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    process.stdout.readline()
    return process


def kill_at_random(process: Popen, moment: float) -> bool:
    """Return whether it was killed before it had finished."""
    time.sleep(moment)
    process.kill()
    return finish(process) != 0


def finish(process: Popen) -> int:
    process.communicate()
    return process.returncode


def programs_of(dataset: Dataset) -> list[str]:
    return sorted(dataset.scan().collect()["program_id"])


def many_parts(path: Path, first: int = 0, parts: int = 20) -> Dataset:
    dataset = Dataset.create(path)
    hardware_id = fill(dataset, count=1)
    for part in range(parts):
        dataset.append_workloads([workload(f"w{first + part}")])
        rows = [measurement(first + part * 5 + i) for i in range(1, 6)]
        dataset.append_measurements(hardware_id, rows)
    return dataset


@pytest.fixture
def moments() -> random.Random:
    """Random, and repeatable: pytest shows the seed of a test that fails."""
    seed = random.SystemRandom().randrange(2**32)
    print(f"seed of the moments: {seed}")
    return random.Random(seed)


def test_kill_9_during_compaction(tmp_path: Path, moments: random.Random) -> None:
    dataset = many_parts(tmp_path / "ds")
    programs = programs_of(dataset)
    killed = 0
    for _ in range(4):
        # Groups of few parts, so that there is always something to do.
        size = 3 * max(part.stat().st_size for part in dataset.part_files("measurements"))
        killed += kill_at_random(start(COMPACT, dataset.path, size), moments.uniform(0, 0.03))
        assert verify(dataset) == []
        assert programs_of(dataset) == programs
        dataset.append_measurements(hardware().hardware_id, [measurement(1000 + len(programs))])
        programs = programs_of(dataset)
    assert killed
    compact(dataset)
    assert len(dataset.part_files("measurements")) == 1
    assert verify(dataset) == []
    assert programs_of(dataset) == programs
    plain = pl.scan_parquet(dataset.path / "measurements/**/*.parquet").collect()
    assert sorted(plain["program_id"]) == programs


def test_kill_9_during_a_merge(tmp_path: Path, moments: random.Random) -> None:
    sources = [many_parts(tmp_path / f"ds{i}", 100 * i).path for i in range(2)]
    out = tmp_path / "out"
    killed = sum(
        kill_at_random(start(MERGE, *sources, out), moments.uniform(0, 0.06)) for _ in range(5)
    )
    assert killed
    if (out / "dataset.json").exists():
        assert verify(Dataset.open(out)) == []
    merge(sources, out)
    merged = Dataset.open(out)
    assert verify(merged) == []
    assert programs_of(merged) == sorted(
        {program for source in sources for program in programs_of(Dataset.open(source))}
    )


def test_two_writers_two_compactors_and_readers_at_once(
    tmp_path: Path, moments: random.Random
) -> None:
    dataset = many_parts(tmp_path / "ds", parts=10)
    before = len(programs_of(dataset))
    writers = [start(APPEND, dataset.path, 1000 * i, 1000 * i + 15) for i in (1, 2)]
    while any(writer.poll() is None for writer in writers):
        compactors = [start(COMPACT, dataset.path, 1 << 20) for _ in range(2)]
        while any(compactor.poll() is None for compactor in compactors):
            assert verify(dataset) == []
        assert [finish(compactor) for compactor in compactors] == [0, 0]
    assert [finish(writer) for writer in writers] == [0, 0]
    compact(dataset)
    assert verify(dataset) == []
    assert len(programs_of(dataset)) == before + 30
    assert len(dataset.part_files("workloads")) == len(dataset.part_files("measurements")) == 1


def test_a_writer_is_killed_while_a_compaction_runs(tmp_path: Path, moments: random.Random) -> None:
    dataset = many_parts(tmp_path / "ds", parts=10)
    for attempt in range(2):
        before = set(programs_of(dataset))
        first = 10_000 * (attempt + 1)
        writer = start(APPEND, dataset.path, first, first + 5000)
        compactor = start(COMPACT, dataset.path, 1 << 20)
        kill_at_random(writer, moments.uniform(0, 0.2))
        assert finish(compactor) == 0
        assert verify(dataset) == []
        assert before <= set(programs_of(dataset))
    compact(Dataset.create(dataset.path))
    assert verify(dataset) == []
    assert list(dataset.scratch.iterdir()) == []


def test_a_full_disk_while_compacting_or_merging(small_disk: Path, tmp_path: Path) -> None:
    source = many_parts(tmp_path / "ds", parts=8)
    full = Dataset.create(small_disk / "ds")
    merge([source.path], full.path)
    full.append_measurements(hardware().hardware_id, [measurement(500)])
    programs = programs_of(full)
    with (
        (small_disk / "ballast").open("wb", buffering=0) as ballast,
        pytest.raises(OSError, match="space"),
    ):
        while True:
            ballast.write(b"0" * 512)
    with pytest.raises(StorageError, match=r"cannot write .*no space left.*free some space"):
        compact(full)
    assert programs_of(full) == programs
    with pytest.raises(StorageError, match=r"no space left"):
        merge([many_parts(tmp_path / "other", 300, parts=8).path], full.path)
    assert programs_of(full) == programs
    (small_disk / "ballast").unlink()
    compact(full)
    assert verify(full) == []
    assert programs_of(full) == programs
