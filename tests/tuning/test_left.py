"""Tasks that a run leaves as TVM compiles them: the run goes on, and says so."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from costlib.cli.tune import _print_result
from costlib.hardware import Hardware
from costlib.measure.config import MeasureConfig
from costlib.report.page import render
from costlib.report.run import run_report
from costlib.schema import Origin
from costlib.search.history import TaskHistory
from costlib.space.program import Program
from costlib.tuning.compiled import CompiledNetwork
from costlib.tuning.config import TuneConfig
from costlib.tuning.left import outcome_to_leave
from costlib.tuning.tune import tune
from costlib.tvm_compat import tvm

ACCUMULATES = """
@T.prim_func(s_tir=True)
def main(A: T.Buffer((64, 64), "float32"), C: T.Buffer((64, 64), "float32")):
    for i, j, k in T.grid(64, 64, 64):
        with T.sblock("update"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            C[vi, vj] = C[vi, vj] + A[vi, vk]
"""


def test_a_run_of_nothing_but_such_a_task(
    hardware: Hardware, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mod = tvm.IRModule({"main": tvm.script.from_source(ACCUMULATES)})
    quick = TuneConfig(measure=MeasureConfig(repeats=1, repeat_secs=0.001, max_retakes=0))
    out = tmp_path / "run"
    result = tune(mod, out=out, trials=4, bundle="none", hardware=hardware, config=quick)
    assert result.trials == 0
    assert result.stopped == "no task has anything to tune"
    (task,) = result.tasks
    assert task.left is not None
    _print_result(result, out / "curve.png")
    assert "left as TVM compiles them" in capsys.readouterr().out
    assert "a schedule rule of TVM fails on it" in render(run_report(out))
    a, before = (np.random.default_rng(0).random((64, 64), "float32") for _ in range(2))
    (computed,) = CompiledNetwork.load(out / "network.so")(a, before)
    np.testing.assert_allclose(computed, before + a.sum(1, keepdims=True), rtol=1e-4)


@pytest.mark.parametrize(
    ("latencies_s", "exhausted", "said"),
    [
        ([], True, "none of its programs is valid"),
        ([], False, "the run ended before its turn came"),
        ([None, None], False, "none of the 2 programs that were measured runs"),
        ([None, 1.0], False, None),
    ],
)
def test_what_came_of_a_search(latencies_s: list[Any], exhausted: bool, said: str | None) -> None:
    history = TaskHistory()
    for number, latency_s in enumerate(latencies_s):
        history.add(Program("w", "s", [[number, 0]]), latency_s, Origin.RANDOM)
    search: Any = SimpleNamespace(history=history, exhausted=exhausted)
    assert outcome_to_leave(search) == said
