"""TensorBoard's files, read back by TensorBoard."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData

from costlib.errors import InputError
from costlib.models import training_curve
from costlib.report.events import EventFile
from costlib.tuning.progress import TuneProgress
from costlib.tuning.result import CurvePoint
from costlib.workloads import Task


def read(folder: Path) -> dict[str, list[tuple[int, float]]]:
    events = EventAccumulator(str(folder)).Reload()
    values = {}
    for tag in events.Tags()["tensors"]:
        values[tag] = [(e.step, float(e.tensor_proto.float_val[0])) for e in events.Tensors(tag)]
    return values


def close(found: list[tuple[int, float]], expected: list[tuple[int, float]]) -> bool:
    return bool(np.allclose(found, expected))


def add(progress: TuneProgress, task: int, latency_s: float | None) -> None:
    known = [one for one in (progress.best_s[task], latency_s) if one is not None]
    progress.best_s[task] = best_s = min(known, default=None)
    progress.curve.append(CurvePoint(elapsed_s=0, task=task, latency_s=latency_s, best_s=best_s))


def test_a_tuning_run(tmp_path: Path, matmul: Task, dense: Task) -> None:
    progress = TuneProgress("tuning", 4, [matmul, dense], best_s=[None, None], task_trials=[0, 0])
    with EventFile(tmp_path) as events:
        events.tuning(progress)
        add(progress, 0, 2e-3)
        add(progress, 1, None)
        events.tuning(progress)
        add(progress, 0, 1e-3)
        add(progress, 1, 4e-3)
        progress.search_s = 7.0
        events.tuning(progress)
    values = read(tmp_path)
    assert close(values["trial/latency_by_best"], [(1, 1.0), (3, 1.0), (4, 1.0)])
    assert values["trial/failed"] == [(1, 0), (2, 1), (3, 1), (4, 1)]
    first, total = matmul.weight * 2.0, matmul.weight * 1.0 + dense.weight * 4.0
    expected = [(1, first), (2, first), (3, first / 2), (4, total)]
    assert close(values["tuned_tasks_ms"], expected)
    assert values["seconds/search"][-1] == (4, 7.0)


def test_a_training(tmp_path: Path) -> None:
    with EventFile(tmp_path) as events:
        with training_curve.listening(events.tell):
            training_curve.tell("mlp/loss", 1, 0.5)
        training_curve.tell("mlp/loss", 2, 0.25)
        events.metrics({"top1": 0.5, "networks": {"bert": {"top1": 0.75, "name": "x"}}})
    assert read(tmp_path) == {
        "mlp/loss": [(1, 0.5)],
        "judged/top1": [(0, 0.5)],
    }


def test_runs_can_be_compared_by_their_settings(tmp_path: Path) -> None:
    with EventFile(tmp_path / "one") as events:
        events.settings({"bundle": "none", "seed": 3}, ["tuned_tasks_ms"])
        events.tell("tuned_tasks_ms", 1, 0.5)
    found = EventAccumulator(str(tmp_path / "one")).Reload()
    assert set(found.PluginTagToContent("hparams")) == {
        "_hparams_/experiment",
        "_hparams_/session_start_info",
    }
    start = HParamsPluginData.FromString(
        found.PluginTagToContent("hparams")["_hparams_/session_start_info"]
    ).session_start_info
    assert start.hparams["bundle"].string_value == "none"
    assert start.hparams["seed"].number_value == 3
    assert "tuned_tasks_ms" in found.Tags()["tensors"]


def test_without_tensorboard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tensorboard.summary", None)
    with pytest.raises(InputError, match=r"pip install 'costlib\[tensorboard\]'"):
        EventFile(tmp_path / "events")
