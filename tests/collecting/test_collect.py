from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from forked import Popen

from costlib.collecting import collect as collect_module
from costlib.collecting.collect import CollectProgress, collect
from costlib.data.dataset import Dataset
from costlib.data.verify import verify
from costlib.errors import InputError
from costlib.hardware import Hardware
from costlib.measure.config import MeasureConfig
from costlib.measure.measurer import Measurer
from costlib.tuning.interrupt import STOPPING
from costlib.workloads import Task

QUICK = MeasureConfig(repeats=1, repeat_secs=0.001, max_retakes=0)


def test_collects_random_programs_and_mutations(measured_dataset: Dataset) -> None:
    records = measured_dataset.scan().collect()
    assert set(records["origin"]) == {"random", "mutation"}
    mutations = records.filter(pl.col("origin") == "mutation")
    assert set(mutations["parent_id"]) <= set(records["program_id"])
    assert mutations["direction"].null_count() == 0
    assert records["program_id"].is_unique().all()
    canary_problems = [p for p in verify(measured_dataset) if "canary" not in p.what]
    assert canary_problems == []


def test_going_on_measures_what_is_missing_and_nothing_twice(
    tmp_path: Path, matmul: Task, hardware: Hardware
) -> None:
    seen: list[CollectProgress] = []

    def run(programs: int) -> Dataset:
        return collect(
            [matmul, matmul],
            tmp_path / "ds",
            programs_per_task=programs,
            hardware=hardware,
            config=QUICK,
            on_progress=seen.append,
        )

    run(4)
    assert (seen[-1].done, seen[-1].total) == (4, 4)
    dataset = run(10)
    records = dataset.scan().collect()
    assert len(records) == 10
    assert records["program_id"].is_unique().all()
    seen.clear()
    run(10)
    assert seen == [], "nothing was left to do"


@pytest.mark.parametrize(("presses", "kept"), [(1, 2), (2, 0)])
def test_ctrl_c_waits_for_the_batch_and_a_second_one_does_not(
    tmp_path: Path,
    matmul: Task,
    hardware: Hardware,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    presses: int,
    kept: int,
) -> None:
    real, handler = Measurer.measure, signal.getsignal(signal.SIGINT)

    def interrupted(self: Measurer, *arguments: Any) -> Any:
        for _ in range(presses):
            os.kill(os.getpid(), signal.SIGINT)
        return real(self, *arguments)

    monkeypatch.setattr(Measurer, "measure", interrupted)
    monkeypatch.setattr(collect_module, "BATCH", 2)
    with pytest.raises(KeyboardInterrupt):
        collect([matmul], tmp_path, programs_per_task=6, hardware=hardware, config=QUICK)
    assert caplog.messages == [STOPPING]
    assert len(Dataset.open(tmp_path).scan().collect()) == kept
    assert signal.getsignal(signal.SIGINT) is handler


def test_a_small_space_ends(tmp_path: Path, hardware: Hardware) -> None:
    from costlib.workloads import extract_tasks

    tasks = extract_tasks("max 2 4", hardware)
    dataset = collect(tasks, tmp_path, programs_per_task=500, hardware=hardware, config=QUICK)
    assert 1 <= len(dataset.scan().collect()) < 500


def test_nothing_to_tune(tmp_path: Path, hardware: Hardware) -> None:
    with pytest.raises(InputError, match="anything to tune"):
        collect([], tmp_path / "ds", hardware=hardware)
    assert not (tmp_path / "ds").exists()


def test_no_programs(tmp_path: Path, matmul: Task) -> None:
    with pytest.raises(InputError, match="at least 1"):
        collect([matmul], tmp_path / "ds", programs_per_task=0)


def test_two_collectors_share_the_work(tmp_path: Path, network_file: Callable[[str], str]) -> None:
    out = tmp_path / "ds"
    tasks = [network_file(one) for one in ("matmul 32 32 32", "matmul 16 32 32", "softmax 16 32")]
    command = [sys.executable, "-m", "costlib", "collect", *tasks, "--out", str(out)]
    both = [Popen([*command, "--programs", "4"], stderr=subprocess.PIPE) for _ in range(2)]
    errors = [process.communicate()[1].decode() for process in both]
    assert [process.returncode for process in both] == [0, 0], errors
    records = Dataset.open(out).scan().collect()
    assert records["program_id"].is_unique().all()
    counts = records.group_by("workload_id").agg(pl.len())["len"]
    assert counts.to_list() == [4, 4, 4]
