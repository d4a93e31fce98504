"""``costlib check``: right, different and unsupported, by exit code and JSON."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import pytest
import torch
from typer.testing import CliRunner

from costlib import workloads
from costlib.cli import check as command
from costlib.cli import child
from costlib.cli.app import app
from costlib.cli.child import in_child
from costlib.errors import CostlibError, InputError, UnsupportedModelError
from costlib.tuning import check as checking
from costlib.tuning.check import check
from costlib.workloads import load_network


class Select(torch.nn.Module):
    def forward(self, x):
        return {"last": x[:, -1], "top": x.amax(1)}


def run(path, *options):
    result = CliRunner().invoke(app, ["check", str(path), *options])
    return result.exit_code, result.stdout


def test_right_with_json(tmp_path, monkeypatch):
    path = tmp_path / "select.pt2"
    torch.export.save(torch.export.export(Select(), (torch.randn(2, 3),)), path)
    code, text = run(path, "--json")
    found = json.loads(text)
    assert (code, found["status"]) == (0, "right")
    assert found["max_abs_error"] == 0
    assert [output["shape"] for output in found["outputs"]] == [[2], [2]]
    assert found["unsupported_operators"] == []
    assert found["tasks"]


def test_unsupported_names_the_operators(tmp_path):
    class Triangular(torch.nn.Module):
        def forward(self, x):
            return torch.linalg.cholesky(x)

    path = tmp_path / "triangular.pt2"
    torch.export.save(torch.export.export(Triangular(), (torch.eye(4),)), path)
    code, text = run(path)
    assert code == 2
    assert text.startswith(f"{path}: unsupported: triangular: not supported: ")
    assert len(text.splitlines()) == 1
    found = json.loads(run(path, "--json")[1])
    assert "aten.linalg_cholesky_ex" in found["unsupported_operators"]


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"\x80\x04K\x01."])
def test_what_is_no_model_is_one_line(tmp_path, content):
    path = tmp_path / "model.pt2"
    path.write_bytes(content)
    code, text = run(path)
    assert code == 2
    assert "not a saved torch.export program" in text
    assert len(text.splitlines()) == 1


def test_a_difference_is_named(monkeypatch):
    real = checking.run

    def wrong(machine, arrays):
        outputs = real(machine, arrays)
        return [outputs[0] + 1, *outputs[1:]]

    monkeypatch.setattr(checking, "run", wrong)
    found = check(Select(), example_inputs=(torch.randn(2, 3),))
    assert found.status == "different"
    assert found.reason is not None
    assert "the inputs that came with it, output0: 2 of 2 elements differ" in found.reason
    assert [output.fault is None for output in found.outputs] == [False, True]
    assert command.EXIT_CODES[found.status] == 1


def test_state_is_part_of_what_is_compared():
    class Counter(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("calls", torch.zeros(1))

        def forward(self, x):
            self.calls.add_(1)
            return x + self.calls

    network = load_network(Counter(), example_inputs=(torch.ones(2),))
    found = check(network)
    assert found.status == "right"
    assert [output.name for output in found.outputs] == ["output0", "calls"]
    assert check(network).status == "right", "the original starts from its first state again"


def test_a_file_that_kills_its_reader_costs_a_line(tmp_path, monkeypatch):
    path = tmp_path / "deadly.onnx"
    path.write_bytes(b"")
    monkeypatch.setattr(child, "_imported", lambda source: os.abort())
    with pytest.raises(UnsupportedModelError, match=r"deadly\.onnx: .*crashed over it \(SIGABRT"):
        child.survive_import([str(path)])
    child.survive_import(["bert_tiny", str(tmp_path / "missing.onnx")])


def test_an_error_of_the_child_is_raised_here():
    def work():
        load_network("resnet18")

    with pytest.raises(CostlibError, match="did you mean resnet_18") as raised:
        in_child(work, 60)
    assert raised.value.exit_code == InputError.exit_code


def test_tasks_are_extracted_in_the_child_alone(tmp_path):
    path = tmp_path / "select.pt2"
    torch.export.save(torch.export.export(Select(), (torch.randn(2, 3),)), path)
    script = (
        f"import sys; from costlib.cli.tasks import tasks; tasks({str(path)!r}, as_json=True); "
        "assert not {'torch', 'tvm', 'onnx'} & sys.modules.keys()"
    )
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True)
    assert all(task["weight"] == 1 for task in json.loads(done.stdout))


def test_tasks_of_a_deadly_file_cost_a_line(tmp_path, monkeypatch):
    monkeypatch.setattr(workloads, "extract_tasks", lambda *_, **__: os.abort())
    result = CliRunner().invoke(app, ["tasks", str(tmp_path / "deadly.onnx")])
    assert isinstance(result.exception, UnsupportedModelError)
    assert "deadly.onnx: TVM or PyTorch crashed over it (SIGABRT)" in str(result.exception)


def test_a_child_that_dies_is_said_to_have(capfd):
    assert in_child(lambda: "text", 60) == ("text", "")
    text, death = in_child(lambda: os.kill(os.getpid(), signal.SIGSEGV) or "", 60)
    assert text is None
    assert "crashed over it (SIGSEGV)" in death
    text, death = in_child(lambda: time.sleep(60) or "", 0.2)
    assert (text, death) == (None, "took more than 0 s")
    text, death = in_child(lambda: "x" * (1 << 50), 60)
    assert (text, death) == (None, "it takes more memory than this machine has")
    text, death = in_child(lambda: str(1 // 0), 60)
    assert (text, death) == (None, "ZeroDivisionError: integer division or modulo by zero")
