"""The bench against other engines: what it keeps, and its page."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from made_runs import made_profile, made_result

from costlib.errors import UnsupportedModelError
from costlib.files import write_file
from costlib.hardware import Hardware
from costlib.report.svg import save_drawing
from costlib.tuning.comparison import EngineResult
from costlib.tuning.profile import RunProfile
from costlib.workloads import Network, load_network
from costlib.workloads.zoo import list_networks
from tools.benchmarks import engine_case
from tools.benchmarks import engines as bench
from tools.benchmarks.outside import OUTSIDE, load_any
from tools.evidence.beside_engines import BesideEngines, summarise_engines
from tools.evidence.pages import engines as page


def row(name: str = "net", batch: int = 1, threads: int = 2, **fields: Any) -> BesideEngines:
    made = {"costlib_s": 1e-3, "pytorch_s": 2e-3, "openvino_s": 0.5e-3, **fields}
    return BesideEngines(
        name=name, batch=batch, threads=threads, hardware="some-cpu", trials=16, **made
    )


def test_a_row_of_a_run() -> None:
    result = made_result()
    engines = (
        EngineResult(name="openvino", title="OpenVINO", latency_s=2e-3, max_abs_error=1e-6),
        EngineResult(name="onnxruntime", title="ONNX Runtime", latency_s=None, problem="it fails"),
    )
    doubtful = ("untuned", "tuned", "OpenVINO")
    network = result.networks[0].model_copy(update={"engines": engines, "doubtful": doubtful})
    run = result.model_copy(update={"networks": (network,)})
    found = BesideEngines.of_run("net", 8, 1, run, made_profile(run))
    assert found.case == ("net", 8, 1, result.hardware_id)
    assert (found.costlib_s, found.pytorch_s, found.openvino_s) == (1e-3, 1.5e-3, 2e-3)
    assert found.onnxruntime_s is None and found.problems == {"onnxruntime": "it fails"}
    assert found.doubtful == ("costlib", "openvino")
    assert found.agreement == {"costlib": 1e-6, "openvino": 1e-6}
    assert found.tune_s == 3.0
    (profile,) = made_profile(run).networks
    assert found.ratio_to_tasks == profile.network_s / profile.tasks_s
    assert found.dispatch_share == profile.dispatch_s / profile.network_s
    unknown = BesideEngines.of_run("net", 8, 1, run, RunProfile(networks=()))
    assert unknown.ratio_to_tasks is None and unknown.dispatch_share is None


def test_means_are_over_the_networks_that_an_engine_runs() -> None:
    rows = [
        row(),
        row("other", openvino_s=2e-3),
        row("third", openvino_s=None),
        row(costlib_s=None),
    ]
    summary = summarise_engines(rows)
    assert summary["geometric_mean"] == {"pytorch": 2.0, "openvino": 1.0}
    assert [BesideEngines.model_validate(one) for one in summary["networks"]] == rows
    assert rows[0].ratio_to_best == 0.5


def test_a_compiled_network_that_is_slower_than_the_original_counts_as_that() -> None:
    made = row(compiled_s=9e-3, compiled_max_autotune_s=1.5e-3)
    assert (made.ratio("compiled"), made.ratio("compiled_max_autotune")) == (2.0, 1.5)
    assert row(compiled_s=9e-3, pytorch_s=None).ratio("compiled") == 9.0


def test_a_full_run_keeps_what_is_committed_of_other_cases(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    committed, run = tmp_path / "committed", tmp_path / "run"
    content = json.dumps(summarise_engines([row(), row("other")]))
    write_file(committed / "engines.json", content.encode())
    monkeypatch.setattr(bench, "COMMITTED", committed)
    monkeypatch.setattr(bench, "RESULTS", run)
    assert bench._begun(run / "engines.json", [row().case]) == [row("other")]
    assert bench._begun(committed / "engines.json", [row().case]) == [row(), row("other")]
    assert bench._begun(tmp_path / "engines.json", [row().case]) == []
    write_file(run / "engines.json", json.dumps(summarise_engines([row()])).encode())
    assert bench._begun(run / "engines.json", [row().case]) == [row()]


def test_the_bench_goes_on_where_it_was_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "engines.json"
    tried: list[tuple[str, str, str]] = []

    def in_a_process(_: str, name: str, batch: str, threads: str, *__: str) -> dict[str, Any]:
        tried.append((name, batch, threads))
        if len(tried) == 2:
            raise subprocess.CalledProcessError(-9, "python")
        hardware_id = Hardware.local(num_cores=int(threads)).hardware_id
        found = row(name, int(batch), int(threads))
        return found.model_copy(update={"hardware": hardware_id}).model_dump(mode="json")

    monkeypatch.setattr(bench, "in_a_process", in_a_process)
    words = ["engines", "--runs", str(tmp_path), "--out", str(out), "--networks", "vgg_11", "gpt2"]
    monkeypatch.setattr(sys, "argv", [*words, "--batches", "1", "--threads", "2", "1"])
    bench.main()
    first = ["vgg_11 1 2", "gpt2 1 2", "vgg_11 1 1", "gpt2 1 1"]
    assert [" ".join(one) for one in tried] == first
    assert len(json.loads(out.read_text())["networks"]) == 3
    bench.main()
    assert tried[4:] == [("gpt2", "1", "2")], "what died is tried again, and nothing else"
    assert {one.case[0] for one in bench.read_rows(out)} == {"vgg_11", "gpt2"}
    monkeypatch.setattr(sys, "argv", [*words, "--minutes", "0"])
    bench.main()
    assert len(tried) == 5


def test_a_case_goes_on_with_its_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    network = load_network("dense 16 16 16 bias=1 relu=1")
    monkeypatch.setattr(engine_case, "load_any", lambda name: network)
    monkeypatch.setattr(engine_case, "AGAINST", ())
    for trials in (1, 2):
        found = engine_case.measured("net", 1, 1, trials, tmp_path)
        assert found.case[:3] == ("net", 1, 1)
        assert found.trials == trials
        assert found.costlib_s is not None and found.pytorch_s is not None
        assert found.ratio_to_tasks is not None
    assert [folder.name for folder in tmp_path.iterdir()] == ["net-b1-t1"]


def test_of_several_profiles_the_calmest_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (first,) = made_profile(made_result()).networks
    made = [
        RunProfile(networks=(first.model_copy(update={"network_s": times * first.network_s}),))
        for times in (1.5, 0.5, 2.0)
    ]
    later = iter(made[1:])
    monkeypatch.setattr(engine_case, "read_profile", lambda folder: made[0])
    monkeypatch.setattr(engine_case, "profile_run", lambda folder: next(later))
    assert engine_case.calmest_profile(tmp_path) == made[1]
    assert next(later, None) is None
    monkeypatch.setattr(engine_case, "read_profile", lambda folder: RunProfile(networks=()))
    assert engine_case.calmest_profile(tmp_path).networks == ()


def test_a_network_that_cannot_be_imported_is_a_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(name: str) -> Network:
        raise UnsupportedModelError("there is no such operator")

    monkeypatch.setattr(engine_case, "load_any", fail)
    found = engine_case.measured("net", 1, 1, 1, tmp_path)
    assert found.costlib_s is None
    assert found.problems == {"costlib": "there is no such operator"}


def test_networks_from_outside_are_ten_and_none_of_the_zoo() -> None:
    assert len(OUTSIDE) == 10 and not OUTSIDE.keys() & set(list_networks())
    network = load_any("electra_small@b2")
    assert network.name == "electra_small@b2"
    assert network.inputs[0].shape == (2, 128)


def test_a_page_of_few_networks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [
        row(doubtful=("costlib",), agreement={"costlib": 1e-6}, tune_s=90.0),
        row("other", openvino_s=None, problems={"openvino": "it fails: no | such thing"}),
        row("other", 8, 1, network_s=1.2e-3, tasks_s=1e-3, dispatch_s=6e-6),
    ]
    content = {"versions": {"torch": "2.13.0", "openvino": "2026.4.1"}, **summarise_engines(rows)}
    monkeypatch.setattr(page, "read_result", lambda name: content)
    text = "\n".join(page.parts())
    assert "| OpenVINO | 2 | 0.50x | 0.50 | 2 |" in text
    assert "| `net` | 16 | 90 | 1? | 2 |  |  |  | 0.5 |  |  | 1.0e-06 |" in text
    assert "| 1.20 | 0.5 % |" in text
    assert "takes 1.20x what its kernels took when they were tuned; 0 of 1 are within 10 %" in text
    assert (
        "| `other`, batch 1, 2 threads, some-cpu | OpenVINO | it fails: no \\| such thing |" in text
    )
    assert "## Batch 8, 1 thread, some-cpu" in text
    for name, make in page._pictures().items():
        save_drawing(make(), tmp_path / name)
        assert "times as fast" in (tmp_path / name).read_text()
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "engines-some-cpu-b1-t2.svg",
        "engines-some-cpu-b8-t1.svg",
    ]
