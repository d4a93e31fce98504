from __future__ import annotations

import itertools
import os
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from costlib.errors import MeasureError
from costlib.hardware import Hardware
from costlib.measure.config import MeasureConfig, Outcome, Timing
from costlib.measure.measurement import Candidate
from costlib.measure.measurer import Measurer
from costlib.schema import CONFIRMED, Status
from costlib.space.design_space import DesignSpace
from costlib.tvm_compat import tvm
from costlib.workloads import Task

CONFIG = MeasureConfig(repeats=2, repeat_secs=0.001, max_retakes=0, check_output=True)


@pytest.fixture(scope="module")
def measurer(hardware: Hardware) -> Iterator[Measurer]:
    with Measurer(hardware, CONFIG) as measurer:
        yield measurer


def candidates(task: Task, count: int) -> list[Candidate]:
    valid = (Candidate(p, s) for p, s in DesignSpace(task).sample(0) if s is not None)
    return list(itertools.islice(valid, count))


@pytest.mark.parametrize("name", ["matmul", "dense"])
def test_measures_real_programs_and_checks_their_output(
    measurer: Measurer, name: str, request: pytest.FixtureRequest
) -> None:
    task = request.getfixturevalue(name)
    drawn = candidates(task, 4)
    measurements = measurer.measure(task, drawn)
    assert [m.program for m in measurements] == [c.program for c in drawn]
    for measurement in measurements:
        assert measurement.status is Status.OK, measurement.error
        assert measurement.latency_s is not None
        assert measurement.latency_s <= min(measurement.run_secs)
        assert measurement.build_secs is not None


def test_a_measuring_process_that_dies_is_started_once(measurer: Measurer, matmul: Task) -> None:
    os.kill(measurer.server.pid, signal.SIGKILL)
    pids = []
    for _ in range(2):
        (found,) = measurer.measure(matmul, candidates(matmul, 1))
        assert found.status is Status.OK, found.error
        pids.append(measurer.server.pid)
    assert pids[0] == pids[1]


def test_slow_programs_are_not_repeated(measurer: Measurer, matmul: Task) -> None:
    slow = measurer.measure(matmul, candidates(matmul, 1), best_s=1e-9)[0]
    assert slow.raced
    assert slow.status is Status.OK
    assert slow.latency_s is not None


def test_what_does_not_race_is_repeated_however_slow(measurer: Measurer, matmul: Task) -> None:
    candidate = replace(candidates(matmul, 1)[0], race=False)
    found = measurer.measure(matmul, [candidate], best_s=1e-9)[0]
    assert not found.raced
    assert len(found.run_secs) == CONFIG.repeats


def test_programs_that_can_win_are_repeated(measurer: Measurer, matmul: Task) -> None:
    fast = measurer.measure(matmul, candidates(matmul, 1), best_s=10.0)[0]
    assert not fast.raced
    assert len(fast.run_secs) == CONFIG.repeats


def test_invalid_program_is_a_record(measurer: Measurer, matmul: Task) -> None:
    program = candidates(matmul, 1)[0].program
    measurement = measurer.measure(matmul, [Candidate(program, None)])[0]
    assert measurement.status is Status.INVALID
    assert measurement.latency_s is None


def test_wrong_output_is_a_record(measurer: Measurer, matmul: Task, dense: Task) -> None:
    """A program of another task, with arguments of the same shapes, is found out."""
    program = candidates(matmul, 1)[0].program
    twice = tvm.script.from_source("""
@T.prim_func(s_tir=True)
def main(
    a: T.Buffer((64, 64), "float32"),
    b: T.Buffer((64, 64), "float32"),
    c: T.Buffer((64, 64), "float32"),
):
    for i, j in T.grid(64, 64):
        with T.sblock("c"):
            vi, vj = T.axis.remap("SS", [i, j])
            c[vi, vj] = a[vi, vj] + b[vi, vj]
""")
    impostor = tvm.s_tir.Schedule(tvm.IRModule({"main": twice}))
    measurement = measurer.measure(matmul, [Candidate(program, impostor)])[0]
    assert measurement.status is Status.WRONG_OUTPUT
    assert measurement.latency_s is None
    assert "differs" in str(measurement.error)


def test_a_batch_that_fails_with_the_machine(hardware: Hardware, matmul: Task) -> None:
    """No error number tells that the folder is gone, but a good program fails in it, too."""
    with Measurer(hardware, CONFIG) as measurer:
        folder = measurer.server.folder
        folder.rename(folder.with_name("elsewhere"))
        with pytest.raises(MeasureError, match="not even one that is known to be good"):
            measurer.measure(matmul, candidates(matmul, 2))
        folder.with_name("elsewhere").rename(folder)
        assert measurer.measure(matmul, candidates(matmul, 1))[0].status is Status.OK


def test_a_batch_that_fails_by_itself(hardware: Hardware, matmul: Task) -> None:
    hasty = CONFIG.model_copy(update={"build_timeout_secs": 0.001})
    with Measurer(hardware, hasty) as measurer:
        drawn = candidates(matmul, 2)
        found = measurer.measure(matmul, [*drawn, Candidate(drawn[0].program, None)])
    assert [m.status for m in found] == [*2 * [Status.BUILD_TIMEOUT], Status.INVALID]
    assert [str(m.error).endswith(CONFIRMED) for m in found] == [True, True, False]


def test_what_was_measured_before_the_machine_failed(
    measurer: Measurer, matmul: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, runs = measurer.run_library, iter([True, False])

    def run_library(*arguments: Any) -> tuple[Outcome, float | None]:
        ran = next(runs, None)
        if ran is None:
            raise MeasureError("the disk is full")
        return real(*arguments) if ran else (Outcome(error="crashed"), None)

    monkeypatch.setattr(measurer, "run_library", run_library)
    drawn = candidates(matmul, 3)
    with pytest.raises(MeasureError) as raised:
        measurer.measure(matmul, drawn)
    (kept,) = raised.value.finished
    assert kept.program == drawn[0].program, "the second one may have failed for the same reason"


def test_flushing_caches_calls_a_program_once_a_repeat(hardware: Hardware, matmul: Task) -> None:
    config = CONFIG.model_copy(update={"flush_cache": True, "check_output": False})
    with Measurer(hardware, config) as measurer:
        measurement = measurer.measure(matmul, candidates(matmul, 1))[0]
    assert measurement.status is Status.OK
    assert len(measurement.run_secs) == CONFIG.repeats


def test_a_best_by_correction_alone_is_run_again(
    measurer: Measurer, monkeypatch: pytest.MonkeyPatch
) -> None:
    reference = measurer.reference

    def outcome(secs: float, slow_down: float) -> Outcome:
        compute, memory = reference.compute_s * slow_down, reference.memory_s
        timing = Timing(
            run_secs=(secs,), canary_compute=(compute,), canary_memory=(memory,), raced=False
        )
        return Outcome(timing=timing)

    def latencies(best_s: float | None, *outcomes: Outcome) -> tuple[float, int]:
        queue = list(outcomes)
        monkeypatch.setattr(measurer, "run_job", lambda _: queue.pop(0))
        _, latency_s = measurer.run_library(Path("x.so"), (), best_s)
        assert latency_s is not None
        return latency_s, len(outcomes) - len(queue)

    calm, busy, busier = outcome(1e-3, 1.0), outcome(1.05e-3, 1.2), outcome(1.1e-3, 5.0)
    assert latencies(2e-3, calm) == (1e-3, 1)
    assert latencies(2e-3, busier, calm) == (1e-3, 2)
    assert latencies(None, busier, calm) == (1e-3, 2)
    assert latencies(2e-3, busier, busy, busier, calm) == (1e-3, 4)
    assert latencies(1e-4, busier)[1] == 1, "it is not the best"
    never_calm, runs = latencies(2e-3, busier, busy, *[busier] * 4)
    assert runs == 5, "it gives up"
    assert never_calm == pytest.approx(1.05e-3 / 1.2 * 1.05)
    assert latencies(9e-4, busier, busy) == (never_calm, 2), "it is not the best any more"
    failed = Outcome(error="it crashed")
    assert latencies(2e-3, busier, *[failed] * 4) == (pytest.approx(1.1e-3 / 5 * 1.05), 5)


def test_a_gpu_that_is_not_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tvm, "cuda", lambda _: SimpleNamespace(exist=False))
    with pytest.raises(MeasureError, match="no CUDA device here; measuring needs one"):
        Measurer(Hardware.cuda("sm_80"))


def test_another_gpu_than_the_one_that_is_here(monkeypatch: pytest.MonkeyPatch) -> None:
    here = Hardware.cuda("sm_90", model="NVIDIA H100", num_cores=132)
    monkeypatch.setattr(Hardware, "local_cuda", lambda: here)
    with pytest.raises(MeasureError, match="not the GPU that is here, nvidia-h100-sm-90-132c"):
        Measurer(Hardware.cuda("sm_90"))
    with pytest.raises(MeasureError, match="flush_cache"):
        Measurer(here, MeasureConfig(flush_cache=True))


def test_a_kind_of_device_that_cannot_be_measured() -> None:
    phone = Hardware(kind="metal", model="x", num_cores=1, target={"kind": "metal"}, vector_bits=32)
    with pytest.raises(MeasureError, match="measuring on 'metal' is not possible"):
        Measurer(phone)
