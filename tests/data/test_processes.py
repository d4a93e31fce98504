"""Writers that are killed, and several processes on one dataset."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
from dataset_rows import WORKLOAD_ID, fill, hardware
from forked import Popen

from costlib.data.dataset import Dataset
from costlib.data.verify import verify

BATCH = 5

WRITER = """
import sys
from dataset_rows import CANARY, fill, hardware, measurement, sketch, workload
from costlib.data.dataset import Dataset

path, first, batches = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
dataset = Dataset.create(path)
dataset.add_hardware(hardware(), CANARY)
hardware_id = hardware().hardware_id
for batch in range(batches):
    dataset.append_workloads([workload(), workload(f"w{first}-{batch}"), workload(f"w{batch}")])
    dataset.append_sketches([sketch()])
    numbers = range(first + batch * 5, first + batch * 5 + 5)
    dataset.append_measurements(hardware_id, [measurement(i) for i in numbers])
    print(batch + 1, flush=True)
"""


def start_writer(path: Path, first: int, batches: int) -> Popen:
    command = [sys.executable, "-c", WRITER, str(path), str(first), str(batches)]
    return Popen(command, cwd=Path(__file__).parent, stdout=subprocess.PIPE, text=True)


def finish(writer: Popen) -> int:
    """Wait for a writer; return how many batches it says it has written."""
    assert writer.stdout is not None
    output = writer.stdout.read()  # Others leave what is buffered behind a line read before.
    writer.wait(60)
    return len(output.split())


def rows_of(path: Path) -> pl.DataFrame:
    dataset = Dataset.open(path)
    assert verify(dataset) == []
    return dataset.scan().collect()


def test_kill_9_loses_at_most_the_batch_in_flight(tmp_path: Path) -> None:
    moments = random.Random(0)
    path = tmp_path / "ds"
    written = 0
    for attempt in range(3):
        writer = start_writer(path, attempt * 1_000_000, 100_000)
        assert writer.stdout is not None
        writer.stdout.readline()
        time.sleep(moments.uniform(0, 0.3))
        writer.kill()
        reported = 1 + finish(writer)
        rows = rows_of(path)
        assert reported * BATCH <= rows.height - written <= (reported + 1) * BATCH
        assert rows["program_id"].is_unique().all()
        assert pl.scan_parquet(path / "measurements/**/*.parquet").collect().height == rows.height
        written = rows.height
    dataset = Dataset.create(path)
    assert list(dataset.scratch.iterdir()) == []
    assert len(dataset.measured(hardware().hardware_id)) == written


def test_two_writers_and_a_reader_at_once(tmp_path: Path) -> None:
    path = tmp_path / "ds"
    fill(Dataset.create(path), count=1)
    writers = [start_writer(path, (i + 1) * 1_000_000, 12) for i in range(2)]
    seen = 1
    while any(writer.poll() is None for writer in writers):
        height = rows_of(path).height
        assert height >= seen
        assert (height - 1) % BATCH == 0
        plain = pl.scan_parquet(path / "measurements/**/*.parquet").select(pl.len()).collect()
        assert plain.item() >= height
        seen = height
    assert [finish(writer) for writer in writers] == [12, 12]
    assert rows_of(path).height == 1 + 2 * 12 * BATCH
    workloads = Dataset.open(path).scan("workloads").collect()["workload_id"]
    assert workloads.is_unique().all()
    assert WORKLOAD_ID in workloads
    assert len(workloads) == 1 + 2 * 12 + 12


def test_writers_that_start_at_once_agree_on_the_reference(tmp_path: Path) -> None:
    code = """
import sys
from dataset_rows import hardware
from costlib.data.dataset import Dataset
from costlib.canary_times import CanaryTimes
dataset = Dataset.create(sys.argv[1])
own = CanaryTimes(compute_s=float(sys.argv[2]), memory_s=1)
sys.stdin.readline()
print(dataset.add_hardware(hardware(), own).compute_s)
"""
    command = [sys.executable, "-c", code, str(tmp_path / "ds")]
    writers = [
        Popen(
            [*command, str(i + 1)],
            cwd=Path(__file__).parent,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for i in range(3)
    ]
    answers = {writer.communicate("\n", timeout=60)[0] for writer in writers}
    assert len(answers) == 1
