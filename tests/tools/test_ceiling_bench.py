"""The bench of the ceiling: what it builds and looks at, and that a killed one goes on."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from costlib.data.dataset import Dataset
from tools.benchmarks import ceiling as bench
from tools.benchmarks.top_programs import Workbench, top_programs
from tools.evidence import files


@pytest.fixture
def zoo(measured_dataset: Dataset, tmp_path: Path) -> Path:
    """A dataset whose held-out networks are all that was measured."""
    Dataset.create(tmp_path / "zoo")
    shutil.copytree(measured_dataset.path, tmp_path / "zoo" / "heldout")
    return tmp_path / "zoo"


@pytest.fixture
def call(zoo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Call the bench on three programs of a task."""
    monkeypatch.setattr(bench, "TOP", 3)
    monkeypatch.setattr(files, "RESULTS", tmp_path / "results")

    def run(*options: str) -> dict[str, Any]:
        settings = ["--dataset", str(zoo), "--work", str(tmp_path / "work"), *options]
        monkeypatch.setattr(sys, "argv", ["ceiling", *settings])
        bench.main()
        file = tmp_path / "results" / "ceiling.json"
        return dict(json.loads(file.read_text())) if file.exists() else {}

    return run


def test_the_best_programs_are_those_with_the_best_labels(measured_dataset: Dataset) -> None:
    (hardware_id,) = measured_dataset.hardware()
    tops = top_programs(measured_dataset, hardware_id, 3)
    assert len(tops) == 3
    ran = measured_dataset.scan().filter(status="ok").collect()
    for top in tops:
        latency_s = ran.filter(workload_id=top.workload_id)["latency_s"].sort().to_list()
        assert list(top.labels.values()) == latency_s[:3]


def test_a_bench_that_was_stopped_goes_on(
    call: Any, zoo: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = ("--tasks", "2", "--looks", "2")
    assert call(*settings, "--minutes", "0") == {}
    assert "stopped after 0 min; the same call goes on" in capsys.readouterr().out
    found = call(*settings)
    assert (found["tasks"], found["programs"], found["left_out"], found["looks"]) == (2, 6, 0, 2)
    assert 0 < found["ceiling"]["top1"] <= found["ceiling"]["top5"] <= 1
    assert found["noise"]["largest"] > 0
    first, second = (tmp_path / "work" / f"look-{number}" for number in (1, 2))
    kept = {file: file.read_bytes() for file in (*first.iterdir(), *second.iterdir())}
    again = sorted(second.iterdir())[0]
    again.unlink()  # As if killed before it was written.
    call(*settings)
    assert again.exists()
    assert {file for file, text in kept.items() if file.read_bytes() != text} == {again}


def test_a_program_that_does_not_run_is_left_out(call: Any, zoo: Path, tmp_path: Path) -> None:
    held_out = Dataset.open(zoo).held_out()
    assert held_out is not None
    ((hardware_id, hardware),) = held_out.hardware().items()
    top = top_programs(held_out, hardware_id, 3)[0]
    call("--tasks", "1", "--looks", "2")
    shutil.rmtree(tmp_path / "work" / "look-2")
    library = tmp_path / "work" / "built" / f"{next(iter(top.labels))}.so"
    library.write_bytes(b"no library")
    found = call("--tasks", "1", "--looks", "2")
    assert (found["programs"], found["left_out"]) == (2, 1)
    look = Workbench(tmp_path / "work", held_out, hardware).looked(top, 2)
    assert look is not None and look.latency_s[next(iter(top.labels))] is None


def test_labels_of_another_machine_are_refused(call: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "is_here", lambda hardware: False)
    with pytest.raises(SystemExit, match="which this machine is not"):
        call()


@pytest.mark.parametrize("option", [("--looks", "1"), ("--tasks", "0")])
def test_too_little_to_look_at_is_refused(call: Any, option: tuple[str, str]) -> None:
    with pytest.raises(SystemExit) as refused:
        call(*option)
    assert refused.value.code == 2
