from __future__ import annotations

import importlib

import numpy as np
import onnx
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper
from torch import nn

from costlib.errors import UnsupportedModelError
from costlib.hardware import Hardware
from costlib.tuning.check import check
from costlib.tuning.compiled import CompiledNetwork
from costlib.workloads import Network, extract_tasks, load_network, prepare_network

FEW = settings(
    deadline=None,
    max_examples=3,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
ZEROS = {"uint8": 117, "int8": -9}


def model(
    nodes: list[onnx.NodeProto], shape: list[int], dtype: int, **arrays: np.ndarray
) -> Network:
    """Return a network that takes a tensor ``x`` and returns one that is called ``out``."""
    graph = helper.make_graph(
        nodes,
        "quantised",
        [helper.make_tensor_value_info("x", dtype, shape)],
        [helper.make_tensor_value_info("out", TensorProto.UNDEFINED, None)],
        [numpy_helper.from_array(array, name) for name, array in arrays.items()],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    return load_network(onnx.shape_inference.infer_shapes(made))


def qdq(product: onnx.NodeProto, shape: list[int], weight: np.ndarray, dtype: str) -> Network:
    """Quantise and expand activations and weights, multiply ``q`` by ``w``, and quantise again."""
    zero = np.array(ZEROS[dtype], dtype)
    axis = 0 if weight.ndim == 4 else 1
    scales = np.linspace(0.01, 0.02, weight.shape[axis], dtype="float32")
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["x_q"]),
        helper.make_node("DequantizeLinear", ["x_q", "s", "z"], ["q"]),
        helper.make_node("DequantizeLinear", ["w_q", "t", "u"], ["w"], axis=axis),
        product,
        helper.make_node("Relu", ["y"], ["r"]),
        helper.make_node("QuantizeLinear", ["r", "v", "z"], ["r_q"]),
        helper.make_node("DequantizeLinear", ["r_q", "v", "z"], ["out"]),
    ]
    arrays = {
        "s": np.float32(0.031),
        "v": np.float32(0.05),
        "z": zero,
        "w_q": weight,
        "t": scales,
        "u": np.zeros(len(scales), weight.dtype),
    }
    return model(nodes, shape, TensorProto.FLOAT, **{k: np.asarray(v) for k, v in arrays.items()})


def drawn(shape: tuple[int, ...], seed: int = 0, low: int = -127) -> np.ndarray:
    return np.random.default_rng(seed).integers(low, 128, shape).astype("int8")


def packed(network: Network, hardware: Hardware) -> list[str]:
    return [t.title for t in extract_tasks(network, hardware) if "_packed" in t.name]


@FEW
@given(st.sampled_from(sorted(ZEROS)), st.integers(1, 9), st.integers(1, 40), st.integers(1, 40))
def test_products_are_of_integers(
    hardware: Hardware, dtype: str, rows: int, depth: int, columns: int
) -> None:
    product = helper.make_node("MatMul", ["q", "w"], ["y"])
    network = qdq(product, [rows, depth], drawn((depth, columns)), dtype)
    found = check(network, hardware=hardware)
    assert found.status == "right", found.reason
    assert network.precision == "int8"


@FEW
@given(
    st.sampled_from(sorted(ZEROS)),
    st.integers(1, 9),
    st.integers(1, 20),
    st.sampled_from([1, 3]),
    st.integers(1, 2),
    st.integers(0, 1),
)
def test_convolutions_are_of_integers(
    hardware: Hardware, dtype: str, inputs: int, outputs: int, kernel: int, stride: int, pad: int
) -> None:
    product = helper.make_node(
        "Conv", ["q", "w"], ["y"], strides=[stride, stride], pads=[pad, 0, pad, pad]
    )
    weight = drawn((outputs, inputs, kernel, kernel))
    found = check(qdq(product, [1, inputs, 6, 5], weight, dtype), hardware=hardware)
    assert found.status == "right", found.reason


@pytest.mark.parametrize("dtype", sorted(ZEROS))
def test_sums_are_exact(hardware: Hardware, dtype: str) -> None:
    """Of the largest numbers, which TVM's own AVX-512 product saturates."""
    weight = np.full((70, 21), -128, "int8")
    weight[:, 1] = 127
    nodes = [helper.make_node("MatMulInteger", ["x", "w", "z"], ["out"])]
    zero = np.array(ZEROS[dtype], dtype)
    code = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    network = model(nodes, [3, 70], code, w=weight, z=zero)
    largest = np.iinfo(dtype).max
    compiled = CompiledNetwork.build(prepare_network(network, hardware), hardware)
    x = np.full((3, 70), largest, dtype)
    x[1] = np.iinfo(dtype).min
    expected = (x.astype("int32") - int(zero)) @ weight.astype("int32")
    np.testing.assert_array_equal(compiled(x), expected)
    assert check(network, hardware=hardware).max_abs_error == 0


def test_weights_that_no_signed_byte_holds_stay_as_they_are(hardware: Hardware) -> None:
    weight = np.arange(256, dtype="uint8").reshape(16, 16)
    product = helper.make_node("MatMul", ["q", "w"], ["y"])
    network = qdq(product, [2, 16], weight, "uint8")
    assert packed(network, hardware) == []
    assert check(network, hardware=hardware).status == "right"


def test_weights_are_packed_and_what_follows_is_fused(hardware: Hardware) -> None:
    if hardware.vector_bits != 512:
        pytest.skip("weights are packed for AVX-512, which this processor lacks")
    product = helper.make_node("Conv", ["q", "w"], ["y"], pads=[1, 1, 1, 1])
    network = qdq(product, [1, 8, 6, 6], drawn((32, 8, 3, 3)), "uint8")
    (task,) = [t for t in extract_tasks(network, hardware) if "_packed" in t.name]
    assert ("int8", (2, 3, 3, 2, 16, 4)) in task.arguments
    assert "quantise" in task.title
    assert task.title.startswith("conv2d 1×6×6×8 → 1×6×6×32, 3×3 NHWC uint8")


def test_layers_that_differ_in_scales_are_one_task(hardware: Hardware) -> None:
    """One layer after the other, each with a scale and a zero point of its own."""
    nodes, arrays = [], {}
    given = "x"
    for layer, zero in enumerate((3, -20, 77)):
        s, z, w, q = (f"{name}{layer}" for name in "szwq")
        arrays |= {s: np.float32(0.01 * (layer + 1)), z: np.int8(zero), w: drawn((32, 32), layer)}
        nodes += [
            helper.make_node("QuantizeLinear", [given, s, z], [q]),
            helper.make_node("DequantizeLinear", [q, s, z], [q + "f"]),
            helper.make_node("DequantizeLinear", [w, s], [w + "f"]),
            helper.make_node("MatMul", [q + "f", w + "f"], [f"y{layer}"]),
        ]
        given = f"y{layer}"
    nodes[-1].output[0] = "out"
    arrays = {name: np.asarray(array) for name, array in arrays.items()}
    network = model(nodes, [4, 32], TensorProto.FLOAT, **arrays)
    weights = [t.weight for t in extract_tasks(network, hardware) if t.name.startswith("matmul")]
    assert sorted(weights) == [1, 2], "the last is not quantised again"
    found = check(network, hardware=hardware)
    assert found.status == "right", found.reason


class Twice(nn.Module):
    """Rounds one tensor for each of its two readers, to the same numbers or to others."""

    def __init__(self, scales: tuple[float, float]) -> None:
        super().__init__()
        importlib.import_module("torch.ao.quantization.fx._decomposed")
        self.scales = scales
        self.register_buffer("one", torch.from_numpy(drawn((16, 16), 1)))
        self.register_buffer("two", torch.from_numpy(drawn((16, 16), 2)))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        ops, around = torch.ops.quantized_decomposed, (-128, 127, torch.int8)
        x, parts = torch.sin(x), []
        for scale, weight in zip(self.scales, (self.one, self.two), strict=True):
            q = ops.quantize_per_tensor(x, scale, 3, *around)
            w = ops.dequantize_per_tensor(weight, 0.01, 0, *around)
            parts.append(nn.functional.linear(ops.dequantize_per_tensor(q, scale, 3, *around), w))
        return parts[0] - parts[1]


@pytest.mark.parametrize(("scales", "times"), [((0.02, 0.02), 1), ((0.02, 0.03), 2)])
def test_what_several_read_is_rounded_once(
    hardware: Hardware, scales: tuple[float, float], times: int
) -> None:
    network = load_network(Twice(scales), example_inputs=(torch.randn(4, 16),))
    found = [
        t.weight for t in extract_tasks(network, hardware) for _ in range(t.name.count("round"))
    ]
    assert sum(found) == times
    assert check(network, hardware=hardware).status == "right"


class Quantised(nn.Module):
    """Two convolutions with a residual, pooled, and a layer behind it: as pt2e writes them."""

    def __init__(self) -> None:
        super().__init__()
        importlib.import_module("torch.ao.quantization.fx._decomposed")
        for name, shape in {"one": (16, 3, 3, 3), "two": (16, 16, 1, 1)}.items():
            self.register_buffer(name, torch.from_numpy(drawn(shape)))
        self.register_buffer("last", torch.from_numpy(drawn((10, 16))))
        self.register_buffer("scales", torch.linspace(0.001, 0.002, 16))
        self.register_buffer("zeros", torch.zeros(16, dtype=torch.int64))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        ops, f = torch.ops.quantized_decomposed, nn.functional
        around = (-128, 127, torch.int8)

        def again(y: torch.Tensor, scale: float, zero: int) -> torch.Tensor:
            q = ops.quantize_per_tensor(y, scale, zero, *around)
            return ops.dequantize_per_tensor(q, scale, zero, *around)

        one, two = (
            ops.dequantize_per_channel(w, self.scales, self.zeros, 0, *around)
            for w in (self.one, self.two)
        )
        x = again(torch.relu(f.conv2d(again(x, 0.03, 3), one, padding=1)), 0.02, -128)
        x = again(torch.relu(x + again(f.conv2d(x, two), 0.03, 5)), 0.04, -128)
        x = again(f.max_pool2d(x, 2), 0.04, -128).mean((2, 3))
        return f.linear(again(x, 0.02, 0), ops.dequantize_per_tensor(self.last, 0.002, 0, *around))


def test_programs_of_pt2e(hardware: Hardware) -> None:
    network = load_network(Quantised(), example_inputs=(torch.randn(1, 3, 8, 8),))
    found = check(network, hardware=hardware)
    assert found.status == "right", found.reason
    if hardware.vector_bits == 512:
        assert len(packed(network, hardware)) == 3
    moved = [t.name for t in extract_tasks(network, hardware) if "transpose" in t.name]
    assert len(moved) <= 2, "channels stay last between convolutions"


@pytest.mark.parametrize("operator", ["QLinearNothing", "QGemmAndMore"])
def test_a_quantised_operator_that_does_not_exist(operator: str) -> None:
    node = helper.make_node(operator, ["x"], ["out"], domain="com.microsoft")
    graph = helper.make_graph(
        [node],
        "unknown",
        [helper.make_tensor_value_info("x", TensorProto.UINT8, [2, 3])],
        [helper.make_tensor_value_info("out", TensorProto.UINT8, [2, 3])],
    )
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    with pytest.raises(UnsupportedModelError, match=operator) as caught:
        load_network(helper.make_model(graph, opset_imports=opsets, ir_version=10))
    assert "\n" not in str(caught.value)
