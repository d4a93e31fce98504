from __future__ import annotations

import io
import json
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper
from torch import nn

from costlib.errors import (
    CostlibError,
    InputError,
    UnknownNameError,
    UnsupportedModelError,
)
from costlib.tvm_compat import tvm
from costlib.tvm_compat.api import module_to_json
from costlib.workloads import InputSpec, extract_tasks, load_network
from costlib.workloads.importers import torch_export

X = np.linspace(-1, 1, 12, dtype="float32").reshape(3, 4)


def refuse(source, error, message):
    with pytest.raises(error, match=message) as caught:
        load_network(source)
    assert "\n" not in str(caught.value)


def save_onnx(path, op="Relu", shape=(3, 4)):
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)
    graph = helper.make_graph([helper.make_node(op, ["x"], ["y"])], "g", [x], [y])
    opset = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=8), str(path))
    return path


def test_onnx(tmp_path, run):
    network = load_network(save_onnx(tmp_path / "net.onnx"))
    assert network.name == "net"
    assert network.inputs == (InputSpec("x", "float32", (3, 4)),)
    np.testing.assert_array_equal(run(network, [X])[0], X.clip(0))


def test_onnx_with_an_operator_that_tvm_lacks(tmp_path):
    refuse(save_onnx(tmp_path / "net.onnx", op="Det", shape=(4, 4)), UnsupportedModelError, "Det")


def test_onnx_with_a_dynamic_shape(tmp_path):
    path = save_onnx(tmp_path / "net.onnx", shape=("batch", 4))
    refuse(
        path, UnsupportedModelError, r"dimension 0 of input 'x' is dynamic \(batch\); `costlib tune"
    )


@pytest.mark.parametrize("suffix", [".onnx", ".pt2", ".py", ".json"])
@pytest.mark.parametrize("content", [b"", b"\x00\x01nonsense\xff", b'{"a": 1}'])
def test_files_that_are_not_what_their_name_says(tmp_path, suffix, content):
    path = tmp_path / f"net{suffix}"
    path.write_bytes(content)
    refuse(path, InputError, f"net{suffix}: ")


@pytest.mark.parametrize("suffix", [".onnx", ".pt2", ".py", ".json"])
def test_missing_files(tmp_path, suffix):
    refuse(tmp_path / f"no{suffix}", InputError, "No such file")


def test_other_kinds_of_file(tmp_path):
    refuse(tmp_path / "net.pb", InputError, "ends in one of .json, .onnx")
    refuse(str(tmp_path), InputError, "ends in one of")


def test_saved_program(tmp_path, run):
    torch.export.save(torch.export.export(nn.ReLU(), (torch.zeros(3, 4),)), tmp_path / "net.pt2")
    network = load_network(str(tmp_path / "net.pt2"))
    np.testing.assert_array_equal(run(network, [X])[0], X.clip(0))
    assert network.reference is not None
    np.testing.assert_array_equal(network.reference([X])[0], X.clip(0))


class TouchesAFile:
    """Makes a file where it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


def test_a_saved_program_cannot_execute_anything(tmp_path, monkeypatch):
    good, bad, touched = (tmp_path / name for name in ("good.pt2", "bad.pt2", "touched"))
    torch.export.save(torch.export.export(nn.ReLU(), (torch.zeros(3, 4),)), good)
    pickled = io.BytesIO()
    torch.save(TouchesAFile(touched), pickled)
    with zipfile.ZipFile(good) as before, zipfile.ZipFile(bad, "w") as after:
        replaced = 0
        for name in before.namelist():
            harmful = name.endswith(".pt")
            replaced += harmful
            after.writestr(name, pickled.getvalue() if harmful else before.read(name))
    assert replaced
    refuse(bad, InputError, "not a saved torch.export program")
    assert not touched.exists()
    monkeypatch.setattr(torch_export, "_FORCE_DATA_ALONE", "SOMETHING_ELSE")
    with pytest.raises(InputError):
        load_network(bad)
    assert touched.exists()  # PyTorch itself does execute it.


def test_program_with_a_dynamic_shape():
    dynamic = {"input": {0: torch.export.Dim("batch")}}
    program = torch.export.export(nn.ReLU(), (torch.zeros(3, 4),), dynamic_shapes=dynamic)
    refuse(program, UnsupportedModelError, "dimension 0 of input 'input' is dynamic")


def test_program_with_an_operator_that_tvm_lacks():
    class Det(nn.Module):
        def forward(self, x):
            return torch.linalg.det(x)

    program = torch.export.export(Det(), (torch.eye(3),))
    refuse(program, UnsupportedModelError, "det")


def test_module_needs_its_inputs(check):
    check(load_network(nn.GELU(), (InputSpec("x", "float32", (3, 4)),)))
    refuse(nn.GELU(), InputError, "say what GELU takes")


def test_relax_module_as_object_text_and_json_has_the_same_tasks(tmp_path, hardware):
    original = load_network("softmax 8 16")
    (tmp_path / "net.py").write_text(original.mod.script())
    (tmp_path / "net.json").write_text(module_to_json(original.mod))
    expected = [task.workload_id for task in extract_tasks(original, hardware)]
    for source in (original.mod, tmp_path / "net.py", tmp_path / "net.json"):
        assert [task.workload_id for task in extract_tasks(source, hardware)] == expected


def test_a_single_function_becomes_a_network(hardware):
    (task,) = extract_tasks("softmax 8 16", hardware)
    (again,) = extract_tasks(task.mod, hardware)
    assert again.workload_id == task.workload_id


def test_module_without_main():
    refuse(tvm.IRModule({}), UnsupportedModelError, "no function called 'main'")


def test_json_of_something_else(tmp_path):
    (tmp_path / "net.json").write_text(tvm.ir.save_json(tvm.tirx.const(1, "int32")))
    refuse(tmp_path / "net.json", InputError, "not an IRModule")


def test_json_with_a_hole_anywhere(tmp_path):
    """TVM's own reader crashes on some of these."""
    graph = json.loads(module_to_json(load_network("matmul 8 8 8").mod))
    path = tmp_path / "net.json"
    refused = 0
    for number, node in enumerate(graph["nodes"]):
        holed = {**graph, "nodes": list(graph["nodes"])}
        holed["nodes"][number] = {"type": "None"}
        if node != holed["nodes"][number]:
            path.write_text(json.dumps(holed))
            try:
                load_network(path)
            except CostlibError as error:
                assert "net" in str(error)
                assert "\n" not in str(error).strip()
                refused += 1
    assert refused > len(graph["nodes"]) / 2


def test_unknown_names():
    refuse("resnet18", UnknownNameError, "did you mean resnet_18")
    refuse("matmull 1 2 3", UnknownNameError, "did you mean matmul")
    refuse("", UnknownNameError, "known: ")
    refuse(5, InputError, "cannot be made of int")


def test_tasks_can_be_used_without_torch():
    program = "import sys, costlib.workloads.task; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True)
