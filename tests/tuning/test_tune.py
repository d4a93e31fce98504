"""The whole path on small operators: tuned, compiled, saved, loaded, right."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from costlib.data.dataset import Dataset
from costlib.errors import DatasetError, InputError, StorageError
from costlib.hardware import Hardware
from costlib.hub import Bundle
from costlib.measure.config import MeasureConfig
from costlib.report.curve import best_so_far_s, draw_curve
from costlib.tuning.bundles import bundle_for
from costlib.tuning.compiled import CompiledNetwork
from costlib.tuning.compiling import library_name
from costlib.tuning.config import TuneConfig
from costlib.tuning.database import RECORDS, WORKLOADS
from costlib.tuning.memory import Memory
from costlib.tuning.progress import TuneProgress
from costlib.tuning.result import TuneResult
from costlib.tuning.trials import TRIALS
from costlib.tuning.tune import tune
from costlib.tvm_compat import ms, relax, tvm
from costlib.workloads import load_network
from costlib.workloads.layout import best_block

QUICK = MeasureConfig(repeats=1, repeat_secs=0.001, max_retakes=0)
CONFIG = TuneConfig(measure=QUICK)
SOURCE = "dense 64 64 64 bias=1 relu=1"


@pytest.fixture(scope="module")
def run(
    tmp_path_factory: pytest.TempPathFactory, bundle: Bundle, hardware: Hardware
) -> tuple[TuneResult, Path, list[str]]:
    out = tmp_path_factory.mktemp("run")
    stages: list[str] = []

    def note(progress: TuneProgress) -> None:
        stages.append(progress.stage)

    result = tune(
        SOURCE,
        out=out,
        trials=6,
        bundle=bundle,
        hardware=hardware,
        config=CONFIG,
        on_progress=note,
    )
    return result, out, stages


def test_result(run: tuple[TuneResult, Path, list[str]]) -> None:
    result, out, stages = run
    assert result.trials == len(result.curve) == sum(task.trials for task in result.tasks) == 6
    (network,) = result.networks
    assert network.latency_after_s > 0
    assert network.latency_before_s > 0
    assert network.pytorch_latency_s is not None
    assert network.max_abs_error < 1e-4 * max(1.0, network.max_abs_output)
    assert stages[0] == "importing the network"
    assert stages[-1] == "done"
    written = TuneResult.model_validate_json((out / "result.json").read_text())
    assert written == result


def test_an_engine_that_is_missing_costs_a_line(
    bundle: Bundle,
    hardware: Hardware,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setitem(sys.modules, "openvino", None)
    config = CONFIG.model_copy(update={"against": ("openvino",)})
    result = tune(SOURCE, out=tmp_path, trials=2, bundle=bundle, hardware=hardware, config=config)
    (network,) = result.networks
    (engine,) = network.engines
    assert engine.title == "OpenVINO" and engine.latency_s is None
    assert caplog.text.count(f"OpenVINO: {engine.problem}") == 1
    assert network.pytorch_latency_s is not None
    assert TuneResult.model_validate_json((tmp_path / "result.json").read_text()) == result


def test_the_library_runs_in_two_lines(run: tuple[TuneResult, Path, list[str]]) -> None:
    _, out, _ = run
    network = load_network(SOURCE)
    inputs = network.random_inputs(3)
    compiled = CompiledNetwork.load(out / "network.so")
    output = compiled(*inputs)
    assert network.reference is not None
    np.testing.assert_allclose(output, network.reference(inputs)[0], atol=1e-4)


def test_the_library_runs_without_costlib(run: tuple[TuneResult, Path, list[str]]) -> None:
    _, out, _ = run
    inputs = load_network(SOURCE).random_inputs(0)
    machine = relax.VirtualMachine(tvm.runtime.load_module(str(out / "network.so")), tvm.cpu())
    machine["main"](*(tvm.runtime.tensor(array) for array in inputs))


def test_stock_tvm_opens_the_database(run: tuple[TuneResult, Path, list[str]]) -> None:
    _, out, _ = run
    database = ms.database.JSONDatabase(str(out / WORKLOADS), str(out / RECORDS))
    records = database.get_all_tuning_records()
    assert len(records) >= 6
    best = min(float(record.run_secs[0]) for record in records)
    assert 0 < best < 1


def test_the_curve_never_rises(run: tuple[TuneResult, Path, list[str]]) -> None:
    result, out, _ = run
    curve = best_so_far_s(result, SOURCE)
    assert len(curve) == result.trials + 1
    assert (np.diff(curve) <= 0).all()
    picture = draw_curve(out)
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_a_run_is_resumed_when_asked(bundle: Bundle, hardware: Hardware, tmp_path: Path) -> None:
    def go_on(trials: int, seed: int = 0, resume: bool = True) -> TuneResult:
        return tune(
            SOURCE,
            out=tmp_path,
            trials=trials,
            bundle=bundle,
            hardware=hardware,
            config=CONFIG,
            seed=seed,
            resume=resume,
        )

    with pytest.raises(InputError, match="holds no run to go on with"):
        go_on(2)
    first = go_on(2, resume=False)
    with pytest.raises(InputError, match="--resume goes on"):
        go_on(4, resume=False)
    with pytest.raises(InputError, match="choose another folder"):
        go_on(4, seed=1)
    second = go_on(4)
    assert (first.trials, second.trials) == (2, 4)
    assert [p.latency_s for p in second.curve[:2]] == [p.latency_s for p in first.curve]
    programs = Dataset.open(tmp_path / TRIALS).scan().collect()["program_id"]
    assert programs.n_unique() == len(programs) == 4


def test_16_programs_of_each_task_unless_a_run_is_told(hardware: Hardware, tmp_path: Path) -> None:
    totals: list[int | None] = []

    def note(progress: TuneProgress) -> None:
        totals.append(progress.total)

    source = "matmul 16 16 16"
    result = tune(
        source, out=tmp_path, bundle="none", hardware=hardware, config=CONFIG, on_progress=note
    )
    assert (totals[0], totals[-1]) == (None, 16)
    assert 4 < result.trials <= 16


def test_two_networks_at_once(bundle: Bundle, hardware: Hardware, tmp_path: Path) -> None:
    other = "dense 32 64 64 bias=1 relu=1"
    result = tune(
        SOURCE,
        other,
        out=tmp_path / "run",
        trials=6,
        bundle="none",
        hardware=hardware,
        config=TuneConfig(objective="speedup", memory=tmp_path / "memory", measure=QUICK),
    )
    assert [network.network for network in result.networks] == [SOURCE, other]
    assert result.bundle == "none"
    assert {tuple(task.calls) for task in result.tasks} == {(SOURCE,), (other,)}
    for network in result.networks:
        inputs = load_network(network.network).random_inputs(0)
        outputs = CompiledNetwork.load(network.library)(*inputs)
        assert np.isfinite(outputs[0]).all()
    picture = draw_curve(tmp_path / "run")
    assert picture.read_bytes().startswith(b"\x89PNG")
    remembered = Memory(tmp_path / "memory").bank()
    assert len(Memory(tmp_path / "memory", "aarch64").bank()) == 0, "of another processor"
    assert set(remembered.table["workload_id"]) == {task.workload_id for task in result.tasks}


def test_the_faster_layout_is_compiled(bundle: Bundle, hardware: Hardware, tmp_path: Path) -> None:
    source = "conv2d 1 16 12 12 32 3 pad=1"
    result = tune(
        source,
        SOURCE,
        out=tmp_path,
        trials=6,
        bundle=bundle,
        hardware=hardware,
        config=TuneConfig(layouts="all", measure=QUICK),
    )
    versions = {source, f"{source}+nhwc", f"{source}+{best_block(hardware)}"}
    assert {name for task in result.tasks for name in task.calls} == versions | {SOURCE}
    chosen, other = result.networks
    assert chosen.network in versions and other.network == SOURCE
    assert chosen.library.endswith(f"{library_name(source, 2)}")
    sums = {}
    for name in versions:
        tasks = [task for task in result.tasks if name in task.calls]
        sums[name] = sum(t.latency_s or math.inf for t in tasks)
    assert sums[chosen.network] == min(sums.values())
    assert chosen.max_abs_error < 1e-3 < chosen.max_abs_output


@pytest.mark.parametrize(
    ("config", "suffix"),
    [
        (TuneConfig(weights="int4", measure=QUICK), "int4"),
        (TuneConfig(dtype="bfloat16", measure=QUICK), "bf16"),
    ],
)
def test_what_is_rounded_is_held_against_the_same_in_float32(
    config: TuneConfig, suffix: str, bundle: Bundle, hardware: Hardware, tmp_path: Path
) -> None:
    result = tune(
        "dense 1 64 128 bias=1",
        out=tmp_path,
        trials=4,
        bundle=bundle,
        hardware=hardware,
        config=config,
    )
    (network,) = result.networks
    assert network.network == f"dense 1 64 128 bias=1+{suffix}"
    assert network.original == "the rounded network in float32"
    assert network.rounding_error is not None
    assert 0 <= network.max_abs_error < 1e-2 * network.rounding_error
    library = CompiledNetwork.load(network.library)
    inputs = load_network("dense 1 64 128 bias=1").random_inputs(0)
    assert library(*inputs).shape == (1, 64)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"objective": "requirement"}, "takes 1 required latencies"),
        ({"required_s": (1.0,)}, "takes no required latency"),
        ({"objective": "requirement", "required_s": (0.0,)}, "must be a positive number"),
        ({"objective": "requirement", "required_s": (float("nan"),)}, "must be a positive number"),
    ],
)
def test_settings_that_make_no_sense(
    tmp_path: Path, bundle: Bundle, settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        tune(SOURCE, out=tmp_path / "run", bundle=bundle, config=TuneConfig(**settings))


@pytest.mark.parametrize("trials", [0, -3])
def test_no_trials(tmp_path: Path, bundle: Bundle, trials: int) -> None:
    with pytest.raises(InputError, match="at least 1"):
        tune(SOURCE, out=tmp_path / "run", trials=trials, bundle=bundle)
    assert not (tmp_path / "run").exists()


def test_a_folder_that_cannot_be_made(tmp_path: Path, bundle: Bundle) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError) as error:
        tune(SOURCE, out=tmp_path / "file" / "run", bundle=bundle)
    assert "\n" not in str(error.value)


def test_a_damaged_memory(tmp_path: Path) -> None:
    (tmp_path / "part-0.parquet").write_bytes(b"no parquet")
    with pytest.raises(DatasetError, match="no memory of tuning runs"):
        Memory(tmp_path).bank()


@pytest.mark.parametrize("content", [b"", b"not a library"])
def test_no_compiled_network(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "network.so").write_bytes(content)
    with pytest.raises(InputError, match="no compiled network"):
        CompiledNetwork.load(tmp_path / "network.so")
    with pytest.raises(InputError, match="does not exist"):
        CompiledNetwork.load(tmp_path / "none.so")


def test_result_is_json(run: tuple[TuneResult, Path, list[str]]) -> None:
    _, out, _ = run
    written = json.loads((out / "result.json").read_text())
    assert written["networks"][0]["network"] == SOURCE


def test_a_bundle_that_does_not_know_the_machine_offers_to_learn_it(
    bundle: Bundle, hardware: Hardware, caplog: pytest.LogCaptureFixture
) -> None:
    other = hardware.model_copy(update={"model": "another"})
    assert bundle_for(bundle, other) is bundle
    (line,) = caplog.messages
    assert "was trained on no measurement of" in line
    assert line.endswith(
        f"`costlib adapt --pretrained {bundle.path} --out MINE` teaches it this machine"
    )
    bundle_for(bundle, hardware)
    assert len(caplog.messages) == 1
