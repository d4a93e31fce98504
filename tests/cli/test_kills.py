"""Collecting, importing and feature building are killed at random moments, again and again."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from command_line import costlib
from forked import Popen

from costlib.data.dataset import Dataset
from costlib.data.verify import verify
from costlib.features.build import build_features
from costlib.hardware import Hardware

KILLS = 2
SEED = random.randrange(2**32)

BUILD_FEATURES = """
import sys
from costlib.data.dataset import Dataset
from costlib.features import build
build._JOB_PROGRAMS = 4
dataset = Dataset.open(sys.argv[1])
build.build_features(dataset, next(iter(dataset.hardware())))
"""


def kill_again_and_again(command: list[str], out: Path, begun: str, longest: float) -> None:
    """Start, kill a moment after the first file matching ``begun`` appeared, look, start again."""
    rng = random.Random(SEED)
    kept: set[str] = set()
    for _ in range(KILLS):
        before = len(list(out.glob(begun)))
        process = Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 300
        while len(list(out.glob(begun))) <= before and process.poll() is None:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        time.sleep(rng.uniform(0, longest))
        process.kill()
        process.wait()
        problems = [p for p in verify(Dataset.open(out)) if "canary" not in p.what]
        assert problems == [], f"seed {SEED}"
        found = set(programs(out))
        assert kept <= found, f"seed {SEED}"
        kept = found
    assert Popen(command, stdout=subprocess.DEVNULL).wait() == 0


def programs(out: Path) -> list[str]:
    return sorted(Dataset.open(out).scan().collect()["program_id"])


def test_collecting(tmp_path: Path, network_file: Callable[[str], str]) -> None:
    sources = [network_file(one) for one in ("matmul 16 16 16", "softmax 8 16", "matmul 8 16 32")]
    plan = tmp_path / "plan.toml"
    plan.write_text(
        f"sources = {json.dumps(sources)}\n"
        "programs_per_task = 2\nmin_flops = 0\nmix = {evolved = 0, mutated = 0}\n"
    )
    command = [sys.executable, "-m", "costlib", "collect", "--plan", str(plan), "--out"]
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    kill_again_and_again(
        [*command, str(killed)], killed, "measurements/*/part-*.parquet", longest=3
    )
    assert costlib("collect", "--plan", plan, "--out", whole).returncode == 0
    assert programs(killed) == programs(whole), f"seed {SEED}"
    assert len(programs(whole)) == 6


def test_importing(tmp_path: Path) -> None:
    step = ["SP", 2, 0, 512, [8, 4, 16], 1]
    with (tmp_path / "long.log").open("w") as log:
        for number in range(4_000):
            key = json.dumps([f"task{number % 50}", 128, 128])
            steps = [["SP", 2, 0, 512, [8, 4, number], 1], step]
            record = {
                "i": [[key, "llvm -keys=cpu"], [[], steps]],
                "r": [[0.001 + number * 1e-9], 0, 1.0, 1600000000],
                "v": "v0.6",
            }
            log.write(json.dumps(record) + "\n")
    command = [sys.executable, "-m", "costlib", "import", str(tmp_path / "long.log"), "--out"]
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    kill_again_and_again(
        [*command, str(killed)], killed, "measurements/*/part-*.parquet", longest=1
    )
    assert costlib("import", tmp_path / "long.log", "--out", whole).returncode == 0
    assert programs(killed) == programs(whole), f"seed {SEED}"
    assert len(programs(whole)) == 4_000


def test_building_features(tmp_path: Path, measured_dataset: Dataset, hardware: Hardware) -> None:
    without = shutil.ignore_patterns("features")
    out = Path(shutil.copytree(measured_dataset.path, tmp_path / "ds", ignore=without))
    undisturbed = Dataset.open(shutil.copytree(out, tmp_path / "undisturbed"))
    command = [sys.executable, "-c", BUILD_FEATURES, str(out)]
    kill_again_and_again(command, out, "features/*/*/part-*.parquet", longest=0.05)
    killed = build_features(Dataset.open(out), hardware.hardware_id)
    whole = build_features(undisturbed, hardware.hardware_id)
    for workload_id in undisturbed.scan().collect()["workload_id"].unique():
        left, right = killed.known(workload_id), whole.known(workload_id)
        assert sorted(left["program_id"]) == sorted(right["program_id"]), f"seed {SEED}"
