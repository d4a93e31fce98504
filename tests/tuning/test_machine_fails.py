"""A machine that fails in the middle of a run."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from costlib.data.dataset import Dataset
from costlib.errors import EnvironmentMismatchError, MeasureError, StorageError
from costlib.hardware import Hardware
from costlib.measure.measurer import Measurer
from costlib.tuning.compiled import CompiledNetwork
from costlib.tuning.trials import TRIALS
from costlib.tuning.tune import tune
from costlib.tuning.untuned import untuned_latencies
from costlib.workloads import Task, load_network, prepare_network


def test_a_run_goes_on_where_the_machine_failed(
    tmp_path: Path, hardware: Hardware, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(resume: bool) -> Any:
        return tune(
            "matmul 32 32 32",
            out=tmp_path / "run",
            trials=6,
            bundle="none",
            hardware=hardware,
            resume=resume,
        )

    real, runs = Measurer.run_library, iter(range(4))

    def run_library(self: Measurer, *arguments: Any) -> Any:
        if next(runs, None) is None:
            raise MeasureError("the disk is full")
        return real(self, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(Measurer, "run_library", run_library)
        with pytest.raises(MeasureError, match="the disk is full"):
            run(resume=False)
    trials = Dataset.open(tmp_path / "run" / TRIALS)
    kept = trials.scan().collect()
    assert kept["status"].to_list() == 3 * ["ok"], "the first run is of the untuned task"
    assert run(resume=True).trials == 6
    records = trials.scan().sort("measured_at").collect()
    assert records[:3].equals(kept)
    assert len(records) == 6


def test_untuned_tasks_that_do_not_run(hardware: Hardware, matmul: Task) -> None:
    with Measurer(hardware) as measurer:
        folder = measurer.server.folder
        folder.rename(folder.with_name("elsewhere"))
        with pytest.raises(MeasureError, match="known to be good"):
            untuned_latencies([matmul], measurer)
        folder.with_name("elsewhere").rename(folder)


def test_a_network_that_cannot_be_written(
    hardware: Hardware, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepared = prepare_network(load_network("matmul 32 32 32"), hardware)
    network = CompiledNetwork.build(prepared, hardware)
    with pytest.raises(StorageError, match=r"cannot write /dev/full: no space left on device"):
        network.save("/dev/full")
    usage = SimpleNamespace(free=4096)
    monkeypatch.setattr("costlib.tuning.library.shutil.disk_usage", lambda _: usage)
    with pytest.raises(StorageError, match=r"has 4 left; free some space there"):
        network.save(tmp_path / "network.so")
    monkeypatch.undo()
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EnvironmentMismatchError, match="install g\\+\\+ or clang"):
        network.save(tmp_path / "network.so")
