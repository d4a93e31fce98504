"""The bench of precisions: what it keeps, and that it goes on where it was cut off."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from made_runs import made_result

from costlib.hardware import Hardware
from costlib.tuning.comparison import EngineResult
from tools.benchmarks import precision as bench
from tools.evidence.in_precisions import InPrecision, Precision, summarise_precisions
from tools.evidence.pages import page as pages
from tools.evidence.pages import precision as page


def row(precision: Precision, ours: float, **fields: Any) -> InPrecision:
    made = {"seconds": {"costlib": ours, "OpenVINO": 2e-3}, "largest_output": 1.0, **fields}
    here = Hardware.local(num_cores=1).hardware_id
    return InPrecision(name="net", precision=precision, threads=1, hardware=here, trials=16, **made)


def test_a_row_of_a_run() -> None:
    result = made_result()
    engines = (
        EngineResult(name="openvino", title="OpenVINO", latency_s=2e-3, max_abs_error=1e-6),
        EngineResult(name="onnxruntime", title="ONNX Runtime", latency_s=None, problem="it fails"),
    )
    network = result.networks[0].model_copy(update={"engines": engines, "doubtful": ("tuned",)})
    made = result.model_copy(update={"networks": (network,)})
    found = InPrecision.of_run("net", "int8", 1, made)
    assert found.case == ("net", "int8", 1, result.hardware_id)
    assert found.seconds == {"costlib": 1e-3, "PyTorch": 1.5e-3, "OpenVINO": 2e-3}
    assert found.problems == {"ONNX Runtime": "it fails"}
    assert found.doubtful == ("costlib",)


def test_means_are_by_precision_and_over_our_own_float32() -> None:
    rows = [row("float32", 4e-3), row("int8", 1e-3)]
    summary = summarise_precisions(rows)
    assert summary["by_engine"] == {"float32": {"OpenVINO": 0.5}, "int8": {"OpenVINO": 2.0}}
    assert summary["by_float32"] == {"int8": 4.0}
    assert [InPrecision.model_validate(one) for one in summary["cases"]] == rows


def test_what_is_there_is_not_measured_again_and_what_fails_costs_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = []

    def in_a_process(_: str, name: str, precision: Precision, *__: str) -> dict[str, Any]:
        asked.append(precision)
        if precision == "bfloat16":
            raise subprocess.CalledProcessError(1, "python")
        return row(precision, 1e-3).model_copy(update={"name": name}).model_dump()

    out = tmp_path / "precision.json"
    out.write_text(json.dumps(summarise_precisions([row("float32", 1e-3)])))
    monkeypatch.setattr(bench, "in_a_process", in_a_process)
    arguments = ["--runs", str(tmp_path), "--out", str(out), "--networks", "net", "--threads", "1"]
    monkeypatch.setattr(sys, "argv", ["precision", *arguments])
    bench.main()
    assert asked == ["bfloat16", "int8", "int8-weights", "int4-weights"]
    assert [one.precision for one in bench.read_rows(out)][:2] == ["float32", "int8"]
    assert "bfloat16 ended with 1" in capsys.readouterr().out
    asked.clear()
    arguments = [*arguments[:4], "--precisions", "int4-weights"]
    monkeypatch.setattr(sys, "argv", ["precision", *arguments])
    bench.main()
    assert asked == ["int4-weights"] * len(bench.DECODERS), "other networks have none"


def test_the_page_has_each_precision_and_what_did_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [
        row("float32", 4e-3, agreement={"costlib": 1e-6}),
        row("int8", 1e-3, rounding_error=0.02, problems={"ONNX Runtime": "it fails"}),
    ]
    content = {"versions": {"torch": "2.13"}, **summarise_precisions(rows)}
    for module in (page, pages):
        monkeypatch.setattr(
            module, "read_result", lambda name: content if name == "precision" else {}
        )
    text = page.PAGE.text()
    assert "| int8 | OpenVINO | 2.00x |" in text
    assert "| int8 | costlib in float32 | 4.00x |" in text
    assert "## In float32" in text and "## In int8" in text and "## In bfloat16" not in text
    assert "| `net`, int8 | ONNX Runtime | it fails |" in text
    assert [make().axes != [] for make in page.PAGE.pictures().values()] == [True, True]
