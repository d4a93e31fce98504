"""A tuning run is killed, resumed and interrupted."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from command_line import costlib
from forked import Popen

from costlib.data.dataset import Dataset
from costlib.data.verify import verify
from costlib.hub import Bundle
from costlib.schema import Origin
from costlib.tuning.trials import TRIALS


@pytest.fixture
def sources(network_file: Callable[[str], str]) -> list[str]:
    return [network_file(operator) for operator in ("matmul 32 32 32", "dense 32 64 32 relu=1")]


def command(sources: list[str], bundle: Bundle, trials: int) -> list[str]:
    settings = ["--pretrained", str(bundle.path), "--trials", str(trials)]
    return ["tune", *sources, *settings, "--json"]


def parts(out: Path) -> int:
    return len(list((out / TRIALS).glob("measurements/*/part-*.parquet")))


def start_and_wait_for_a_batch(command: list[str], out: Path) -> Popen:
    before = parts(out)
    command = [sys.executable, "-m", "costlib", *command]
    process = Popen(
        command, cwd=out.parent, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    deadline = time.monotonic() + 120
    while parts(out) <= before:
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.01)
    return process


def test_killed_and_resumed(tmp_path: Path, sources: list[str], bundle: Bundle) -> None:
    out = tmp_path / "run"
    again = [*command(sources, bundle, 12), "--out", str(out)]
    process = start_and_wait_for_a_batch(again, out)
    process.kill()
    process.communicate()
    dataset = Dataset.open(out / TRIALS)
    assert [p for p in verify(dataset) if "canary" not in p.what] == []
    kept = set(dataset.scan().collect()["program_id"])
    assert 0 < len(kept) < 12

    refused = costlib(*again)
    assert refused.returncode == 2
    assert "--resume goes on with it" in refused.stderr

    resumed = costlib(*again, "--resume")
    assert resumed.returncode == 0, resumed.stderr
    result = json.loads(resumed.stdout)
    assert result["trials"] == len(result["curve"]) == 12
    assert [p for p in verify(dataset) if "canary" not in p.what] == []
    trials = dataset.scan().collect()
    new = trials.filter(pl.col("origin") != str(Origin.REPEATED))["program_id"]
    assert len(trials) == 12
    assert len(new) == new.n_unique() == trials["program_id"].n_unique()
    assert kept <= set(new)


def test_a_second_one_is_refused_and_sigterm_compiles_what_was_found(
    tmp_path: Path, sources: list[str], bundle: Bundle
) -> None:
    out = tmp_path / "run"
    process = start_and_wait_for_a_batch(command(sources[:1], bundle, 4000), out)
    for options in ([], ["--resume"]):
        second = costlib(*command(sources[:1], bundle, 4000), "--out", out, *options)
        assert second.returncode == 2
        assert f"is being tuned by process {process.pid} on" in second.stderr.splitlines()[-1]
    process.send_signal(signal.SIGTERM)
    stdout, stderr = process.communicate(timeout=240)
    assert process.returncode == 0, stderr
    assert "stopping after this batch; again to abort" in stderr
    result = json.loads(stdout)
    assert result["stopped"] == "it was interrupted"
    assert 0 < result["trials"] < 4000
    assert all((tmp_path / network["library"]).is_file() for network in result["networks"])
