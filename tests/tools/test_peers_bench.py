"""Races with a side that is elsewhere, and tensor expressions that are the same there."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import numpy as np
import pytest

from costlib.errors import EnvironmentMismatchError, InputError
from costlib.hardware import Hardware
from costlib.hub.bundle import Bundle
from costlib.measure.config import MeasureConfig
from costlib.measure.measurer import Measurer
from costlib.search.config import SearchConfig
from costlib.tvm_compat import te, tirx, tvm
from costlib.workloads import extract_tasks
from costlib.workloads.task import Task
from tools.benchmarks import peers
from tools.benchmarks.cases import Case
from tools.benchmarks.peer_process import tensors_of
from tools.benchmarks.sides import ours
from tools.benchmarks.te_of_task import tensor_expressions
from tools.evidence.peers_summary import summarise_peers

OPERATORS = (
    "conv2d 1 6 9 9 8 3 pad=1 stride=2 relu=1",
    "max_pool2d 1 4 8 8 3 stride=2 pad=1",
    "softmax 4 8",
    "layer_norm 4 16",
    "dense 3 8 6 bias=1",
    "gelu 3 8",
)


@pytest.mark.parametrize("operator", OPERATORS)
def test_tensor_expressions_compute_what_the_task_does(operator: str, hardware: Hardware) -> None:
    (task,) = extract_tasks(operator, hardware)
    tensors = tensors_of(tensor_expressions(task), te, tirx.const)
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=shape).astype(dtype) for dtype, shape in task.arguments]
    results = []
    for mod in (task.mod, te.create_prim_func(tensors)):
        given = [tvm.runtime.tensor(array.copy()) for array in arrays]
        tvm.build(mod, target="llvm")["main"](*given)
        results.append(given[-1].numpy())
    assert np.abs(results[0] - arrays[-1]).max() > 0.1
    np.testing.assert_array_equal(*results)


def test_weights_may_have_another_layout_elsewhere(dense: Task) -> None:
    described = tensor_expressions(dense)
    assert [one["free"] for one in described["inputs"]] == [False, True]
    (output,) = tensors_of(described, te, tirx.const)[2:]
    assert [str(one.name) for one in output.op.attrs["layout_free_placeholders"]] == ["input1"]
    # Such a layout is written as sizes and names in turns.
    axes = [axis.var.name for axis in [*output.op.axis, *output.op.reduce_axis]]
    assert len(set(axes)) == 3 and all(name.isalpha() for name in axes)


def test_what_has_no_such_form_is_said() -> None:
    script = """
@T.prim_func(s_tir=True)
def main(a: T.Buffer((8,), "float32"), b: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.sblock("turned"):
            v = T.axis.spatial(8, i)
            b[v] = T.cos(a[v])
"""
    mod = tvm.IRModule({"main": tvm.script.from_source(script)})
    with pytest.raises(InputError, match=r"turned has no form as a tensor expression: .*cos"):
        tensor_expressions(Task("turned", mod, {"kind": "llvm"}))


PEER = """
import json, sys, time
def say(**message):
    print(json.dumps(message), flush=True)
say(version="of long ago", processors=["x86-64"])
job = json.loads(sys.stdin.readline())
for batch in range(job["trials"] // job["batch"]):
    time.sleep(0.2)
    say(task=0, latency_s=[None, 1e-3 / (batch + 1)], measure_s=0.05)
    assert sys.stdin.readline()
say(done=True)
for line in sys.stdin:
    say(run_secs=[2e-3, int(line) * 1e-3])
"""


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """An interpreter that has what it takes."""
    script = tmp_path / "peer.py"
    script.write_text(dedent(PEER))
    monkeypatch.setattr(peers, "_PROCESS", script)
    monkeypatch.setattr(peers, "STOCK_BATCH", 2)
    yield f"A=b {sys.executable}"


def test_a_race_with_a_side_that_is_elsewhere(
    elsewhere: str, matmul: Task, hardware: Hardware, bundle: Bundle
) -> None:
    with Measurer(hardware, MeasureConfig(repeats=1, repeat_secs=0.001)) as measurer:
        theirs = peers.peer("ansor", elsewhere, [matmul], 4, 0, measurer)
        here = ours("costlib", [matmul], 4, 0, measurer, None, SearchConfig())
        case = Case("heavy", "net-0", 0, [matmul], lambda *_: [theirs, here])
        race = case.race(measurer, bundle)
    side = race.sides["ansor"]
    assert [latency for _, latency, _ in side.trials] == [None, 1e-3, None, 5e-4]
    settings = {"tvm": "of long ago", "mcpu": "x86-64"}
    assert (side.measure_s, side.settings) == (0.1, settings)
    assert dict(side.again or ()) == pytest.approx({1: 1.5e-3, 3: 2.5e-3})
    assert race.sides["costlib"].again
    (row,) = summarise_peers([race])["races"]
    assert (row["against"], row["stock_s"], row["tvm"]) == ("ansor", 2.5e-3, "of long ago")


def test_an_older_llvm_compiles_for_a_processor_that_is_alike(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    here = {"x86-64", "znver2", "znver4", "cooperlake", "k6"}
    monkeypatch.setattr(peers, "runs_here", here.__contains__)
    assert peers.nearest_processor("sapphirerapids", {"sapphirerapids"}) == "sapphirerapids"
    assert peers.nearest_processor("znver5", {*here, "sapphirerapids"}) == "znver4"
    assert peers.nearest_processor("znver3", here - {"znver4"}) == "znver2"
    with pytest.raises(EnvironmentMismatchError, match="no processor that is like znver5"):
        peers.nearest_processor("znver5", {"sapphirerapids"})


@pytest.mark.parametrize("python", [sys.executable, "false", "/nowhere/python"])
def test_an_interpreter_without_it_is_one_line(python: str) -> None:
    with pytest.raises(EnvironmentMismatchError, match="has no TVM with auto_scheduler"):
        peers.Peer(python)


def test_what_ends_in_a_race_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "peer.py"
    script.write_text(PEER.replace("for batch", "raise SystemExit('no such target')\nfor batch"))
    monkeypatch.setattr(peers, "_PROCESS", script)
    peer = peers.Peer(sys.executable)
    peer.write({"trials": 4, "batch": 2})
    with pytest.raises(EnvironmentMismatchError, match=r"ended with 1: no such target$"):
        peer.read()
    peer.close()


def test_nothing_raced_is_no_summary() -> None:
    assert summarise_peers([]) == {}
