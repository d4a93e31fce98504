"""What children do, in this process: timing by the clock and by a device's own timer."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from costlib.hardware import Hardware
from costlib.measure import jobs
from costlib.measure.canary import Canary, build_canary
from costlib.measure.config import BuildJob, CheckJob, MeasureConfig, RunJob
from costlib.tvm_compat import tvm
from costlib.tvm_compat.api import build_library, module_to_json
from costlib.workloads import Task

QUICK = MeasureConfig(repeats=2, repeat_secs=0.001, max_retakes=0)


@pytest.fixture(scope="module")
def library(matmul: Task, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("jobs") / "matmul.so"
    build_library(matmul.mod, matmul.tvm_target(), path)
    return path


@pytest.fixture(scope="module")
def canary(hardware: Hardware, tmp_path_factory: pytest.TempPathFactory) -> Canary:
    path = tmp_path_factory.mktemp("jobs") / "canary.so"
    target = hardware.tvm_target()
    build_canary(path, target, hardware.num_cores)
    return Canary(path, target, hardware.num_cores)


@pytest.mark.parametrize("is_on_cpu", [True, False])
def test_a_run_by_the_clock_or_by_the_devices_timer(
    monkeypatch: pytest.MonkeyPatch, library: Path, canary: Canary, matmul: Task, is_on_cpu: bool
) -> None:
    monkeypatch.setattr(canary, "is_on_cpu", is_on_cpu)
    job = RunJob(path=str(library), arguments=matmul.arguments, config=QUICK)
    timing = jobs.run(job, canary)
    assert len(timing.run_secs) == len(timing.canary_memory) == QUICK.repeats
    assert all(0 < secs < 1 for secs in timing.run_secs)


@pytest.mark.parametrize(("long_s", "calls"), [(0.0, 1), (1.0, 3)])
def test_what_is_slow_and_hopeless_is_called_once(
    monkeypatch: pytest.MonkeyPatch,
    library: Path,
    canary: Canary,
    matmul: Task,
    long_s: float,
    calls: int,
) -> None:
    counted: list[float] = []

    def clocked(call: Callable[[], object]) -> Callable[[], float]:
        return lambda: counted.append(1.0) or 0.5

    monkeypatch.setattr(jobs, "_clocked", clocked)
    monkeypatch.setattr(jobs, "_LONG_SECS", long_s)
    reference = canary.measure()
    job = RunJob(
        path=str(library),
        arguments=matmul.arguments,
        config=QUICK,
        best_s=1e-6,
        reference=reference,
    )
    timing = jobs.run(job, canary)
    assert timing.raced and timing.run_secs == (0.5,)
    assert len(counted) == calls


def test_a_devices_timer_calls_the_program(library: Path, matmul: Task) -> None:
    arguments = jobs.allocate(matmul.arguments, tvm.cpu())
    arguments[-1].copyfrom(arguments[-1].numpy() * 0)
    call_secs = jobs.device_stopwatch(tvm.runtime.load_module(str(library)), arguments, tvm.cpu())
    assert 0 < call_secs() < 1
    assert arguments[-1].numpy().min() > 0


def test_calls_stop_at_the_limit_or_when_the_time_is_over() -> None:
    calls: list[int] = []
    jobs.fastest_call(lambda: calls.append(1), secs=60, max_calls=3)
    assert len(calls) == 3
    jobs.fastest_call(lambda: calls.append(1), secs=0)
    assert len(calls) == 4


def test_a_build_for_another_target_than_the_servers(matmul: Task, tmp_path: Path) -> None:
    path = tmp_path / "a.so"
    job = BuildJob(
        mod_json=module_to_json(matmul.mod),
        path=str(path),
        target={"kind": "llvm", "mcpu": "x86-64"},
        timeout_secs=30,
        memory_bytes=1 << 30,
    )
    jobs.build(job, None)
    check = CheckJob(
        path=str(path),
        reference_path=str(path),
        arguments=matmul.arguments,
        timeout_secs=30,
        memory_bytes=1 << 30,
    )
    jobs.check(check, tvm.cpu())


@pytest.mark.parametrize(
    ("expected", "actual", "difference"),
    [
        ([1.0, 2.0], [1.0, 2.5], 0.25),
        ([np.nan, np.inf, 2.0], [np.nan, np.inf, 2.0], 0.0),
        ([np.nan, 1.0], [0.0, 1.0], np.nan),
        ([np.inf, 1.0], [1.0, 1.0], np.inf),
        ([True, False], [True, True], 1.0),
        ([], [], 0.0),
    ],
)
def test_differences(expected: list[float], actual: list[float], difference: float) -> None:
    found = jobs._difference(np.array(expected, "float64"), np.array(actual, "float64"))
    np.testing.assert_equal(found, difference)
