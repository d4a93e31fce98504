"""Other engines, each in a process of its own."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from torch import nn

from costlib.errors import InputError, MeasureError
from costlib.tuning.config import TuneConfig
from costlib.tuning.engines.catalogue import ENGINES, PYTORCH, Engine
from costlib.tuning.engines.handover import FILES, Handover
from costlib.tuning.engines.loading import Setting
from costlib.tuning.engines.process import EngineProcess
from costlib.tuning.tune import tune
from costlib.workloads import Network, TorchReference, load_network
from costlib.workloads.importers.onnx.reference import OnnxReference
from costlib.workloads.quantised_layers import quantised

SOURCE = "dense 16 16 16 bias=1 relu=1"


@pytest.fixture(scope="module")
def network() -> Network:
    return load_network(SOURCE)


@pytest.fixture(scope="module")
def handover(network: Network, tmp_path_factory: pytest.TempPathFactory) -> Handover:
    folder = tmp_path_factory.mktemp("handover")
    return Handover(network.reference, network.random_inputs(0), folder)


TRIED = [PYTORCH, *(engine for engine in ENGINES.values() if "autotune" not in engine.name)]
"""Compiling for longer is ``torch.compile`` all the same."""

SHORTER = {"VEC_ISA_OK": "1", "CPP_CACHE_PRECOMPILE_HEADERS": "0"}
"""It compiles neither programs that show what vectors there are, nor headers for the next time."""


@pytest.mark.parametrize("engine", TRIED, ids=lambda engine: engine.name)
def test_each_engine_computes_on_the_same_inputs(
    engine: Engine, network: Network, handover: Handover, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip(engine.package)
    for name, value in SHORTER.items():
        monkeypatch.setenv(f"TORCHINDUCTOR_{name}", value)
    assert network.reference is not None
    expected = network.reference(network.random_inputs(0))
    with EngineProcess(engine, handover, Setting(threads=1), patient=True) as process:
        assert 0 < process.fastest_call(0.01) < 1
    (output,) = process.outputs
    assert output.dtype == "float32"
    coarse = {"bf16": 2e-2, "int8-weights": 2e-2, "int4-weights": 0.2}
    tolerance = next((atol for end, atol in coarse.items() if engine.name.endswith(end)), 1e-4)
    np.testing.assert_allclose(output, expected[0], atol=tolerance)
    assert engine.rounds_weights == engine.name.endswith("-weights")
    if engine.rounds_weights:
        assert not np.allclose(output, expected[0], atol=1e-4)


def test_an_engine_that_dies_is_an_error(handover: Handover) -> None:
    with EngineProcess(PYTORCH, handover, Setting(threads=1)) as process:
        process._process._process.kill()
        with pytest.raises(MeasureError, match="died"):
            process.fastest_call(0.01)


def test_an_engine_that_is_not_installed(
    handover: Handover, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "openvino", None)
    with pytest.raises(MeasureError, match=r"openvino is not installed; .*costlib\[engines\]"):
        EngineProcess(ENGINES["openvino"], handover, Setting(threads=1))


def test_without_what_writes_onnx_models(
    network: Network, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "onnxscript", None)
    handover = Handover(network.reference, network.random_inputs(0), tmp_path)
    for _ in range(2):
        with pytest.raises(MeasureError, match="onnxscript is not installed"):
            handover.provide("onnx")
    handover.provide("program")
    assert (tmp_path / FILES["program"]).exists() and not (tmp_path / FILES["onnx"]).exists()


def test_a_program_that_cannot_be_saved(network: Network, tmp_path: Path) -> None:
    assert isinstance(network.reference, TorchReference)
    broken = dataclasses.replace(network.reference, program=None)
    with pytest.raises(MeasureError, match="cannot save"):
        Handover(broken, network.random_inputs(0), tmp_path).provide("program")


@pytest.mark.parametrize("name", ["onnxruntime", "openvino"])
def test_a_model_that_an_engine_cannot_load_is_a_line(name: str, tmp_path: Path) -> None:
    pytest.importorskip(name)
    x, y = (onnx.helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, [2]) for n in "xy")
    node = onnx.helper.make_node("Nobodys", ["x"], ["y"], domain="com.example")
    opsets = [onnx.helper.make_opsetid("", 18), onnx.helper.make_opsetid("com.example", 1)]
    graph = onnx.helper.make_graph([node], "graph", [x], [y])
    model = onnx.helper.make_model(graph, opset_imports=opsets)
    handover = Handover(OnnxReference(model), [np.ones(2, "float32")], tmp_path)
    with pytest.raises(MeasureError, match="Nobodys") as error:
        EngineProcess(ENGINES[name], handover, Setting(threads=1))
    assert "\n" not in str(error.value)


def test_an_onnx_model_keeps_its_weights_and_goes_to_no_pytorch(tmp_path: Path) -> None:
    weights = np.arange(4096, dtype="float32")
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("Add", ["x", "w"], ["y"])],
        "graph",
        [onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [4096])],
        [onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [4096])],
        [onnx.numpy_helper.from_array(weights, "w")],
    )
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)])
    reference = OnnxReference(model)
    handover = Handover(reference, [np.ones(4096, "float32")], tmp_path)
    with EngineProcess(ENGINES["onnxruntime"], handover, Setting(threads=1)) as process:
        np.testing.assert_array_equal(process.outputs[0], weights + 1)
    np.testing.assert_array_equal(onnx.numpy_helper.to_array(model.graph.initializer[0]), weights)
    with pytest.raises(MeasureError, match="networks of PyTorch alone"):
        handover.provide("program")


def test_weights_are_rounded_where_products_have_any(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    network = load_network("softmax 64 64")
    handover = Handover(network.reference, network.random_inputs(0), tmp_path)
    with pytest.raises(MeasureError, match="no product has constant weights"):
        handover.provide("onnx-int4-weights")
    assert not (tmp_path / FILES["onnx-int4-weights"]).exists()


def test_an_engine_that_there_is_not(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="did you mean openvino"):
        tune(SOURCE, out=tmp_path / "run", config=TuneConfig(against=("openvin",)))
    assert not (tmp_path / "run").exists()


def test_a_quantised_program_is_handed_over(tmp_path: Path) -> None:
    """In a process of its own PyTorch has not declared its operators yet."""
    x = torch.randn(1, 3, 8, 8)
    module = quantised(nn.Sequential(nn.Conv2d(3, 16, 3), nn.ReLU()), x)
    network = load_network(module, example_inputs=(x,))
    handover = Handover(network.reference, [x.numpy()], tmp_path)
    handover.provide("onnx")
    kinds = {node.op_type for node in onnx.load(tmp_path / FILES["onnx"]).graph.node}
    assert {"QuantizeLinear", "DequantizeLinear"} <= kinds
