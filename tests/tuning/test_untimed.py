"""Whole runs for devices that are not here: made-up latencies, real builds, outputs compared."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from cross_tools import needs_cross_linker, needs_emulator
from cuda_compiler import needs_cuda_compiler

from costlib.data.dataset import Dataset
from costlib.errors import DatasetError, InputError, MeasureError
from costlib.hardware import Hardware, find_hardware
from costlib.measure.emulator import EmulatedNetwork
from costlib.report.curve import draw_curve
from costlib.report.run import run_report
from costlib.space.design_space import DesignSpace
from costlib.training.batches import chosen_hardware
from costlib.tuning import library as library_module
from costlib.tuning import untimed
from costlib.tuning.config import TuneConfig
from costlib.tuning.left import WRONG
from costlib.tuning.library import NetworkLibrary
from costlib.tuning.profile import profile_run
from costlib.tuning.result import TuneResult
from costlib.tuning.trials import TRIALS
from costlib.tuning.tune import tune
from costlib.tvm_compat import cuda, tvm
from costlib.tvm_compat.networks import scheduled_by_default
from costlib.workloads import extract_tasks, load_network, prepare_network

SOURCE = "dense 16 32 24 bias=1 relu=1"
ARM = find_hardware("aarch64+dotprod").simulated()


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[TuneResult, Path]:
    out = tmp_path_factory.mktemp("run")
    return tune(SOURCE, out=out, trials=4, hardware=ARM), out


@needs_emulator
@needs_cross_linker
def test_the_tuned_network_is_compared_under_the_emulator(run: tuple[TuneResult, Path]) -> None:
    result, out = run
    (network,) = result.untimed
    assert network.not_compared is None and network.original == "PyTorch"
    assert network.max_abs_error is not None and network.max_abs_output is not None
    assert network.max_abs_error < 1e-4 < network.max_abs_output
    assert (out / "network.so").read_bytes()[18:20] == b"\xb7\x00", "an ELF file for AArch64"


def test_all_that_a_run_writes_says_that_it_is_simulated(run: tuple[TuneResult, Path]) -> None:
    result, out = run
    assert result.simulated and result.hardware_id.startswith("simulated-aarch64-neon-dotprod-")
    assert (result.networks, result.bundle, result.trials) == ((), "none", 4)
    (task,) = result.tasks
    assert task.latency_after_s is not None and task.latency_before_s is not None
    assert task.latency_after_s < task.latency_before_s, "the tuned program is compiled"
    rows = Dataset.open(out / TRIALS).scan().select("hardware", "status").unique().collect()
    assert rows.rows() == [(result.hardware_id, "ok")]
    assert draw_curve(out).exists()
    page = run_report(out)
    assert "Nothing here was measured" in str(page.verdict[0])
    assert "simulated on" in page.text
    with pytest.raises(InputError, match="a run on a simulated device"):
        profile_run(out)
    assert TuneResult.model_validate_json((out / "result.json").read_text()) == result


def test_nothing_is_trained_on_made_up_latencies_unless_they_are_named(
    run: tuple[TuneResult, Path],
) -> None:
    result, out = run
    dataset = Dataset.open(out / TRIALS)
    with pytest.raises(DatasetError, match="made-up latencies of simulated-aarch64"):
        chosen_hardware(dataset, None)
    assert list(chosen_hardware(dataset, [result.hardware_id])) == [result.hardware_id]


def test_without_an_emulator_or_a_linker_it_is_said_and_object_files_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(library_module, "cross_tool", lambda *_: None)
    monkeypatch.setattr("costlib.measure.emulator.shutil.which", lambda _: None)
    result = tune(SOURCE, out=tmp_path, trials=1, hardware=ARM)
    (network,) = result.untimed
    assert network.not_compared == "qemu-aarch64 is not installed (apt-get install qemu-user)"
    assert network.outputs == () and network.max_abs_error is None
    assert network.library == str(tmp_path / "network.tar")
    assert Path(network.library).stat().st_size > 1000
    assert "apt-get install binutils-aarch64-linux-gnu" in caplog.text
    assert f"not compared: {network.not_compared}" in str(run_report(tmp_path).verdict)


@needs_emulator
@needs_cross_linker
def test_a_program_that_is_wrong_on_the_device_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    calls = iter(range(100))

    class Wrong(EmulatedNetwork):
        """Wrong with the tuned program, which is tried first, and when that is blamed."""

        def __call__(self, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
            return [output + (next(calls) < 2) for output in super().__call__(arrays)]

    monkeypatch.setattr(untimed, "EmulatedNetwork", Wrong)
    result = tune(SOURCE, out=tmp_path, trials=2, hardware=ARM)
    assert "computes something else once tuned" in caplog.text
    assert [task.left for task in result.tasks] == [WRONG]
    assert result.untimed[0].not_compared is None


def test_a_gpu_that_is_not_here_nor_a_compiler(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delenv("TVM_CUDA_COMPILE_MODE", raising=False)
    monkeypatch.setattr(cuda, "_has_nvrtc", lambda: False)
    which = cuda.shutil.which
    monkeypatch.setattr(cuda.shutil, "which", lambda name: None if "nvcc" in name else which(name))
    gpu = find_hardware("cuda:sm_90").simulated()
    result = tune("softmax 16 32", out=tmp_path, trials=1, hardware=gpu)
    (network,) = result.untimed
    assert network.not_compared == "code for cuda needs such a device, and nothing emulates one"
    assert "have seen no cuda, only x86-64" in caplog.text
    assert "programs stay CUDA source that nothing has compiled: no CUDA compiler" in caplog.text
    statuses = Dataset.open(tmp_path / TRIALS).scan().select(pl.col("status").unique()).collect()
    assert statuses["status"].to_list() == ["ok"]
    assert b"__global__" in Path(network.library).read_bytes()
    (task,) = extract_tasks("softmax 16 32", gpu)
    (sketch,) = Dataset.open(tmp_path / TRIALS).scan().collect()["sketch_id"]
    assert sketch in {one.sketch_id for one in DesignSpace(task).sketches}


def test_what_gets_a_default_schedule_stays_as_it_is() -> None:
    (task,) = extract_tasks("softmax 16 32", find_hardware("cuda:sm_90"))
    before = task.mod.script()
    scheduled = scheduled_by_default(task.mod, task.tvm_target())
    assert "threadIdx.x" in scheduled.script()
    assert task.mod.script() == before
    (here,) = extract_tasks("softmax 16 32", Hardware.local())
    assert scheduled_by_default(here.mod, here.tvm_target()) is here.mod


@needs_cuda_compiler
def test_a_network_without_programs_compiles_for_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = []
    compile_cuda = tvm.support.nvcc.compile_cuda
    monkeypatch.setattr(
        tvm.support.nvcc, "compile_cuda", lambda *a, **k: compiled.append(compile_cuda(*a, **k))
    )
    gpu = find_hardware("cuda:sm_80")
    NetworkLibrary.build(prepare_network(load_network("softmax 8 16"), gpu), gpu)
    assert len(compiled) == 1 and len(compiled[0]) > 1000


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        ({"memory": Path("m")}, "a memory keeps real latencies"),
        ({"against": ("openvino",)}, "nothing is timed on a simulated device"),
    ],
)
def test_what_made_up_latencies_would_spoil(
    settings: dict[str, Any], line: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=line):
        tune(SOURCE, out=tmp_path, hardware=ARM, config=TuneConfig(**settings))


@pytest.mark.parametrize(
    ("spec", "line"),
    [("aarch64", "this machine is no aarch64; measure on a fleet"), ("cuda:sm_80", "no CUDA dev")],
)
def test_what_is_not_here_is_not_measured(spec: str, line: str, tmp_path: Path) -> None:
    if cuda.why_no_runtime() is None and "cuda" in spec:
        pytest.skip("there is a GPU")
    with pytest.raises(MeasureError, match=line) as error:
        tune(SOURCE, out=tmp_path / "run", hardware=find_hardware(spec))
    assert "\n" not in str(error.value)
    assert not (tmp_path / "run").exists()
