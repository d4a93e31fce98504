"""A machine that fails while programs are collected, and programs that are measured again."""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from kept_server import KeptServer
from limited import limited

from costlib.collecting import collect as collect_module
from costlib.collecting.collect import CollectProgress, collect
from costlib.data.dataset import Dataset
from costlib.errors import MeasureError
from costlib.hardware import Hardware
from costlib.measure import measurer
from costlib.measure.config import MeasureConfig
from costlib.measure.measurer import Measurer
from costlib.schema import CONFIRMED
from costlib.workloads import Task

QUICK = MeasureConfig(repeats=1, repeat_secs=0.001, max_retakes=0)
HASTY = QUICK.model_copy(update={"build_timeout_secs": 0.001})


def statuses(dataset: Dataset) -> list[str]:
    return dataset.scan().collect()["status"].to_list()


def test_what_was_measured_stays_when_the_disk_is_full(
    tmp_path: Path, matmul: Task, hardware: Hardware, monkeypatch: pytest.MonkeyPatch
) -> None:
    servers: list[KeptServer] = []

    class Server(KeptServer):
        def __init__(self, target: dict[str, Any]) -> None:
            super().__init__(target)
            servers.append(self)

    monkeypatch.setattr(measurer, "MeasureServer", Server)
    monkeypatch.setattr(collect_module, "BATCH", 2)

    def run(on_progress: Callable[[CollectProgress], None] | None = None) -> Dataset:
        return collect(
            [matmul],
            tmp_path / "ds",
            programs_per_task=3,
            hardware=hardware,
            config=QUICK,
            on_progress=on_progress,
        )

    with pytest.MonkeyPatch.context() as patch:

        def fill_the_disk(_: CollectProgress) -> None:
            patch.setattr(servers[0], "work", no_room)

        def no_room(jobs: Any) -> Any:
            with limited(servers[0].pid, resource.RLIMIT_FSIZE, 1 << 10):
                return KeptServer.work(servers[0], jobs)

        with pytest.raises(MeasureError, match="ulimit -f"):
            run(fill_the_disk)
    assert statuses(Dataset.open(tmp_path / "ds")) == 2 * ["ok"]
    assert statuses(run()) == 3 * ["ok"]


def test_failed_programs_are_measured_again(
    tmp_path: Path, matmul: Task, dense: Task, hardware: Hardware
) -> None:
    seen: list[CollectProgress] = []

    def run(tasks: list[Task], programs: int, config: MeasureConfig, again: bool) -> pl.DataFrame:
        dataset = collect(
            tasks,
            tmp_path / "ds",
            programs_per_task=programs,
            hardware=hardware,
            config=config,
            retry_failed=again,
            on_progress=seen.append,
        )
        return dataset.scan().sort("program_id").collect()

    failed = run([matmul, dense], 3, HASTY, again=False)
    assert failed["status"].to_list() == 6 * ["build_timeout"]
    assert failed["error"].str.ends_with(CONFIRMED).all()
    assert run([matmul, dense], 3, QUICK, again=False).equals(failed), "not unless asked for"
    again = run([matmul], 3, QUICK, again=True)
    here = pl.col("workload_id") == matmul.workload_id
    assert again.filter(~here).equals(failed.filter(~here)), "another task's stay as they are"
    assert again.filter(here)["status"].to_list() == 3 * ["ok"]
    same = ["program_id", "sketch_id", "decisions", "origin", "parent_id", "direction", "seed"]
    assert again.select(same).equals(failed.select(same))
    assert (seen[-1].done, seen[-1].total) == (3, 3)
    assert run([matmul], 3, HASTY, again=True).equals(again), "none is left"
    assert len(run([matmul, dense], 4, QUICK, again=True)) == 8


def test_the_machine_fails_again(
    tmp_path: Path, matmul: Task, hardware: Hardware, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(config: MeasureConfig, again: bool) -> Dataset:
        return collect(
            [matmul],
            tmp_path / "ds",
            programs_per_task=3,
            hardware=hardware,
            config=config,
            retry_failed=again,
        )

    failed = run(HASTY, again=False).scan().collect()
    real, runs = Measurer.run_library, iter(range(1))

    def run_library(self: Measurer, *arguments: Any) -> Any:
        if next(runs, None) is None:
            raise MeasureError("the disk is full")
        return real(self, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(Measurer, "run_library", run_library)
        with pytest.raises(MeasureError):
            run(QUICK, again=True)
    half = Dataset.open(tmp_path / "ds").scan().collect()
    assert set(half["program_id"]) == set(failed["program_id"])
    assert sorted(half["status"]) == ["build_timeout", "build_timeout", "ok"]
    assert statuses(run(QUICK, again=True)) == 3 * ["ok"]


@pytest.mark.parametrize(
    ("limit", "most", "mend"),
    [
        (resource.RLIMIT_AS, 1 << 30, "ulimit -v"),
        (resource.RLIMIT_FSIZE, 12 << 10, "ulimit -f"),
    ],
)
def test_one_line_on_the_command_line(
    tmp_path: Path, network_file: Callable[[str], str], limit: int, most: int, mend: str
) -> None:
    task = network_file("matmul 32 32 32")
    command = [sys.executable, "-m", "costlib", "collect", task, "--out", str(tmp_path / "ds")]
    done = subprocess.run(
        [*command, "--programs", "2"],
        check=False,
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(limit, (most, most)),
    )
    assert done.returncode == 1
    assert mend in done.stderr
    assert done.stderr.count("\n") == 1
    assert not list(tmp_path.rglob("measurements/*/part-*"))
