"""A compiled network beside the untuned one, PyTorch and other engines."""

from __future__ import annotations

import dataclasses
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from nvidia_smi import fake_smi

from costlib.canary_times import CanaryTimes
from costlib.errors import MeasureError
from costlib.hardware import Hardware
from costlib.measure.config import MeasureConfig
from costlib.measure.jobs import SLOW_SECS, fastest_call
from costlib.measure.measurer import Measurer
from costlib.tuning import comparison, rivals
from costlib.tuning.comparison import compare
from costlib.tuning.compiled import CompiledNetwork
from costlib.tuning.engines.catalogue import Engine
from costlib.tuning.engines.loading import Setting
from costlib.tuning.engines.process import EngineProcess
from costlib.tuning.originals import Original, call_library, faults_of
from costlib.tuning.rivals import _is_undisturbed
from costlib.workloads import load_network, prepare_network
from costlib.workloads.variants import with_dtype, with_weights

SOURCE, OTHER = "dense 16 16 16 bias=1 relu=1", "dense 16 16 16 bias=1"


@pytest.fixture(scope="module")
def measurer(hardware: Hardware) -> Iterator[Measurer]:
    reference = CanaryTimes(compute_s=1e-3, memory_s=1e-3)
    with Measurer(hardware, MeasureConfig(repeats=1, repeat_secs=0.001), reference) as found:
        yield found


@pytest.fixture(scope="module")
def libraries(tmp_path_factory: pytest.TempPathFactory, hardware: Hardware) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("libraries")
    found = {}
    for number, source in enumerate((SOURCE, OTHER)):
        found[source] = folder / f"{number}.so"
        prepared = prepare_network(load_network(source), hardware)
        CompiledNetwork.build(prepared, hardware).save(found[source])
    return found


def test_latencies_of_both_and_of_pytorch(measurer: Measurer, libraries: dict[str, Path]) -> None:
    network = load_network(SOURCE)
    original = Original(network, libraries[SOURCE], measurer)
    outputs, tuned_s = original.compare(libraries[SOURCE], measurer)
    assert all(0 < secs < SLOW_SECS for secs in (*tuned_s, *original.untuned_s))
    figures = compare(network, original, libraries[SOURCE], measurer, outputs, tuned_s)
    assert figures.original == "PyTorch"
    assert figures.max_abs_error < 1e-4 * max(figures.max_abs_output, 1.0)
    assert figures.latency_before_s > 0 and figures.latency_after_s > 0
    assert figures.pytorch_latency_s is not None and figures.pytorch_latency_s > 0
    assert figures.engines == ()


def test_calls_that_took_long_count_as_turns(
    measurer: Measurer, libraries: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """So a slow network is not called again to be timed."""
    network = dataclasses.replace(load_network(SOURCE), reference=None)
    original = Original(network, libraries[SOURCE], measurer)
    original.untuned_s = [2.0]
    monkeypatch.setattr(comparison, "_run", lambda *call: pytest.fail("it is called again"))
    figures = compare(network, original, libraries[SOURCE], measurer, [], [1.5, 1.5])
    assert figures.latency_before_s == 2.0 and figures.latency_after_s == 1.5
    assert figures.doubtful == ()


def test_where_threads_disturb_each_other_pytorch_runs_patiently(
    measurer: Measurer, libraries: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every call in this process takes a tenth of a second longer, as on a busy machine."""
    monkeypatch.setattr(rivals, "fastest_call", lambda call, secs: 0.1 + fastest_call(call, 0))
    monkeypatch.setattr(rivals, "_is_undisturbed", _is_undisturbed)
    monkeypatch.setattr(rivals, "_HARM", 0.5)
    network, library = load_network(SOURCE), libraries[SOURCE]
    original = Original(network, library, measurer)
    figures = compare(network, original, library, measurer, [], [])
    assert figures.pytorch_latency_s is not None
    assert 0 < figures.pytorch_latency_s < 0.1


def test_engines_that_were_asked_for(
    measurer: Measurer, libraries: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[tuple[str, bool]] = []
    start = EngineProcess.__init__

    def note(process: EngineProcess, engine: Engine, *rest: Any, patient: bool = False) -> None:
        start(process, engine, *rest, patient=patient)
        started.append((engine.name, patient))

    monkeypatch.setattr(EngineProcess, "__init__", note)
    monkeypatch.setattr(rivals, "_is_undisturbed", lambda settings: len(settings) == 2)
    monkeypatch.setitem(sys.modules, "openvino", None)
    network, library = load_network(SOURCE), libraries[SOURCE]
    original = Original(network, library, measurer)
    stages: list[str] = []
    names = ["onnxruntime", "openvino"]
    figures = compare(network, original, library, measurer, [], [], names, stages.append)
    runs, absent = figures.engines
    assert runs.latency_s is not None and runs.latency_s > 0 and runs.problem is None
    assert [patient for name, patient in started if name == runs.name] == [False, True]
    assert runs.max_abs_error is not None and runs.max_abs_error < 1e-4
    assert absent.latency_s is None
    assert absent.problem == "openvino is not installed; pip install 'costlib[engines]'"
    assert figures.spread_s.keys() == {"untuned", "tuned", "PyTorch", "ONNX Runtime"}
    assert stages[0] == f"loading {SOURCE} into ONNX Runtime"
    assert stages[-1] == f"comparing {SOURCE} with untuned, PyTorch, ONNX Runtime"


def test_an_engine_that_computes_something_else_is_not_timed(
    measurer: Measurer,
    libraries: dict[str, Path],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    network, library = load_network(SOURCE), libraries[SOURCE]
    original = Original(network, library, measurer)
    judge = original.judge
    monkeypatch.setattr(original, "judge", lambda outputs, **how: judge([outputs[0] + 1], **how))
    figures = compare(network, original, library, measurer, [], [], ["onnxruntime"])
    (found,) = figures.engines
    assert found.latency_s is None
    assert found.problem is not None and "computes something else: output0" in found.problem
    assert found.problem in caplog.text


def test_an_engine_that_rounds_weights_is_off_by_no_more_than_twice_what_ours_is(
    measurer: Measurer, libraries: dict[str, Path], hardware: Hardware, tmp_path: Path
) -> None:
    network, library = with_weights(load_network(SOURCE), "int4"), tmp_path / "rounded.so"
    rounded = prepare_network(network, hardware, in_float=True)
    CompiledNetwork.build(rounded, hardware).save(library)
    original = Original(network, library, measurer, library)
    assert network.reference is not None
    (exact,) = network.reference(original.inputs)
    (ours,), _ = call_library(library, original.inputs, measurer)
    error = np.abs(ours - exact).max()
    near, far = exact + 1.9 * error, exact + 2.1 * error
    assert faults_of(original.judge([near]))
    assert not faults_of(original.judge([near], rounds_weights=True))
    assert faults_of(original.judge([far], rounds_weights=True))
    plain = Original(load_network(SOURCE), libraries[SOURCE], measurer)
    assert faults_of(plain.judge([near], rounds_weights=True))


def test_an_engine_that_dies_in_its_turn_does_not_end_the_run(
    measurer: Measurer,
    libraries: dict[str, Path],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def die(process: EngineProcess, secs: float) -> float:
        process._process._process.kill()
        return alive(process, secs)

    alive = EngineProcess.fastest_call
    monkeypatch.setattr(EngineProcess, "fastest_call", die)
    monkeypatch.setattr(comparison, "_MOST_TURNS", 3)
    network, library = load_network(SOURCE), libraries[SOURCE]
    original = Original(network, library, measurer)
    figures = compare(network, original, library, measurer, [], [], ["onnxruntime"])
    (found,) = figures.engines
    assert found.latency_s is None and found.problem == "it died over the network"
    assert caplog.text.count("ONNX Runtime: it died") == 1
    assert figures.pytorch_latency_s is not None
    assert "ONNX Runtime" not in figures.spread_s


def test_what_is_measured_elsewhere_is_not_compared_with_engines(
    measurer: Measurer, libraries: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    network, library = load_network(SOURCE), libraries[SOURCE]
    original = Original(network, library, measurer)
    monkeypatch.setattr(comparison, "_run", lambda *_: 1e-3)
    monkeypatch.setattr(measurer, "devices", object())
    figures = compare(network, original, library, measurer, [], [], ["openvino"])
    assert figures.pytorch_latency_s is None
    assert figures.engines[0].problem == "the network does not run on this machine's CPU"


def test_another_network_is_seen_to_compute_something_else(
    measurer: Measurer, libraries: dict[str, Path]
) -> None:
    original = Original(load_network(SOURCE), libraries[SOURCE], measurer)
    assert original.faults == []
    (fault,) = faults_of(original.compare(libraries[OTHER], measurer)[0])
    assert "elements differ" in fault, "negative values are not cut off"


def test_an_untuned_network_that_is_wrong_has_faults(
    measurer: Measurer, libraries: dict[str, Path]
) -> None:
    original = Original(load_network(SOURCE), libraries[OTHER], measurer)
    assert len(original.faults) == 1


def test_without_an_original_the_untuned_network_is_the_measure(
    measurer: Measurer, libraries: dict[str, Path]
) -> None:
    network = dataclasses.replace(load_network(SOURCE), reference=None)
    original = Original(network, libraries[OTHER], measurer)
    assert original.name == "the untuned network"
    assert original.faults == []
    assert faults_of(original.compare(libraries[SOURCE], measurer)[0])


def test_a_library_that_does_not_run_is_an_error(
    measurer: Measurer, libraries: dict[str, Path], tmp_path: Path
) -> None:
    broken = tmp_path / "broken.so"
    broken.write_bytes(b"no library")
    network = load_network(SOURCE)
    original = Original(network, libraries[SOURCE], measurer)
    with pytest.raises(MeasureError, match=r"broken\.so does not run"):
        compare(network, original, broken, measurer, [], [])
    with pytest.raises(MeasureError, match=r"broken\.so does not run"):
        Original(network, broken, measurer)


def test_on_a_gpu_pytorch_takes_its_turns_there_in_a_process_of_its_own(
    measurer: Measurer,
    libraries: dict[str, Path],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The CPU stands in for the GPU; its clock falls meanwhile."""
    asked = []

    class OnCpu(EngineProcess):
        def __init__(self, engine: Engine, handover: Any, setting: Setting, **how: Any) -> None:
            asked.append((engine.name, setting.device, setting.allow_tf32))
            super().__init__(engine, handover, setting.model_copy(update={"device": "cpu"}), **how)

    monkeypatch.setattr(rivals, "EngineProcess", OnCpu)
    on_gpu = Setting(threads=1, device="cuda")
    monkeypatch.setattr(comparison, "_setting", lambda *_: on_gpu)
    seen = tmp_path / "seen"
    fake_smi(
        tmp_path,
        f"if [ -e {seen} ]; then echo 1480, 1980, 60, 0x4; else echo 1980, 1980, 60, 0x0; fi\n"
        f"touch {seen}",
    )
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    network, library = load_network(SOURCE), libraries[SOURCE]
    original = Original(network, library, measurer)
    figures = compare(network, original, library, measurer, [], [], ["torch-bf16"])
    assert asked == [("pytorch", "cuda", False), ("torch-bf16", "cuda", False)]
    assert figures.pytorch_latency_s is not None
    (rounded,) = figures.engines
    assert rounded.latency_s is not None or "something else" in str(rounded.problem)
    assert [state.sm_mhz for state in figures.gpu] == [1980, 1480]
    assert "the GPU's clock went from 1980 to 1480 MHz meanwhile, throttled (0x4" in caplog.text


def test_pytorch_multiplies_as_we_do(measurer: Measurer) -> None:
    gpu = Hardware.cuda("sm_90")

    class Here:
        hardware, devices = gpu, None

    network = load_network(SOURCE)
    assert comparison._setting(network, Here()) == Setting(  # type: ignore[arg-type]
        threads=len(os.sched_getaffinity(0)), device="cuda"
    )
    allowed = comparison._setting(with_dtype(network, "tf32"), Here())  # type: ignore[arg-type]
    assert allowed is not None and allowed.allow_tf32
    here = comparison._setting(network, measurer)
    assert here is not None and here.device == "cpu"
