"""``costlib dataset`` as a person uses it."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
from command_line import costlib

from costlib.data.dataset import Dataset


def run(*arguments: object, code: int = 0) -> str:
    process = costlib("dataset", *arguments)
    assert process.returncode == code, process.stderr
    return process.stdout


@pytest.mark.parametrize("command", ["info", "verify", "merge", "compact", "sample"])
def test_help_has_an_example(command: str) -> None:
    assert f"Example: costlib dataset {command}" in run(command, "--help")


def test_sample_merge_compact_verify_info(dataset: Dataset, tmp_path: Path) -> None:
    path = dataset.path
    for seed in (1, 2):
        out = tmp_path / str(seed)
        summary = json.loads(
            run("sample", path, "--out", out, "--programs-per-task", 2, "--seed", seed, "--json")
        )
        assert summary["measurements_per_task_max"] == 2
        assert (out / "README.md").is_file()
    merged = tmp_path / "merged"
    done = json.loads(run("merge", tmp_path / "1", tmp_path / "2", "--out", merged, "--json"))
    assert done["measurements"] + done["repeated"] == 2 * summary["measurements"]
    assert "were there already" in run("merge", tmp_path / "1", "--out", merged)
    assert json.loads(run("compact", merged, "--json"))["parts_after"] > 0
    assert "parts of" in run("compact", merged)
    assert json.loads(run("verify", merged, "--json")) == []
    assert "no problems" in run("verify", merged)

    picture = tmp_path / "coverage.png"
    shown = run("info", merged, "--plot", picture)
    assert "operators" in shown
    assert picture.is_file()
    info = json.loads(run("info", merged, "--json"))
    wanted = {"measurements", "ok", "tasks", "hardware", "heldout_measurements"}
    assert info.keys() >= wanted | {"mutation_parents", "bytes_per_measurement"}
    assert info["measurements"] == done["measurements"]


def test_a_damaged_part_is_one_line(dataset: Dataset, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    run("merge", dataset.path, "--out", copy)
    part = Dataset.open(copy).part_files("measurements")[0]
    content = bytearray(part.read_bytes())
    content[4:200] = b"\xff" * 196
    part.write_bytes(content)
    process = costlib("dataset", "info", copy)
    assert process.returncode == 2
    (line,) = process.stderr.splitlines()
    assert "a part of the dataset is damaged" in line
    assert "costlib dataset verify" in line


def test_a_panic_of_polars_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def panic(*_: object, **__: object) -> None:
        raise pl.exceptions.PanicException("range end index 9 out of range\nmore")

    monkeypatch.setattr("costlib.cli.app.app", panic)
    process = costlib("dataset", "info", "any")
    assert process.returncode == 2
    (line,) = process.stderr.splitlines()
    assert "(range end index 9 out of range)" in line


def test_verify_exits_with_1_and_names_the_part(dataset: Dataset, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    run("merge", dataset.path, "--out", copy)
    part = Dataset.open(copy).part_files("measurements")[0]
    part.write_bytes(part.read_bytes()[:-20])
    (problem,) = json.loads(run("verify", copy, "--json", code=1))
    assert problem["file"] == str(part.relative_to(copy))
    assert part.name in run("verify", copy, code=1)
