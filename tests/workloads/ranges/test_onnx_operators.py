"""ONNX's operators in PyTorch, beside ONNX's own evaluator."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from costlib.workloads.ranges.labels import UnpaddableError
from costlib.workloads.ranges.onnx_node import OPERATORS, OnnxNode
from costlib.workloads.ranges.onnx_program import OnnxModule

SHAPE = (2, 3, 4)
ROW = np.linspace(0.5, 2, 4, dtype="float32")
SQUARE = np.linspace(-1, 1, 16, dtype="float32").reshape(4, 4)


def ints(*numbers: int) -> np.ndarray:
    return np.array(numbers, "int64")


def model_of(nodes: list[Any], constants: dict[str, Any], opset: int = 18) -> onnx.ModelProto:
    weights = [numpy_helper.from_array(np.asarray(array), n) for n, array in constants.items()]
    graph = helper.make_graph(
        nodes,
        "graph",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["a", 3, 4])],
        [helper.make_tensor_value_info("y", TensorProto.UNDEFINED, None)],
        weights,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)


def node(operator: str, *inputs: str, result: str = "y", **attributes: Any) -> Any:
    return helper.make_node(operator, list(inputs), [result], **attributes)


ALONE = [
    *((name, {}, {}) for name in ("Exp", "Tanh", "Erf", "Sigmoid", "Relu", "Neg", "Abs", "Cos")),
    *((name, {"b": ROW}, {}) for name in ("Add", "Sub", "Mul", "Div", "Min", "Max", "Less")),
    ("MatMul", {"b": SQUARE}, {}),
    *((name, {}, {"axis": axis}) for name in ("Softmax", "LogSoftmax") for axis in (1, -1)),
    *((name, {}, {}) for name in ("ReduceMean", "ReduceMax", "ReduceSum")),
    ("ReduceMean", {"axes": ints(1)}, {"keepdims": 0}),
    ("ReduceMin", {"axes": ints(-1, 0)}, {}),
    ("LayerNormalization", {"scale": ROW, "bias": ROW}, {"epsilon": 0.1}),
    ("Clip", {"low": np.float32(-0.5), "high": np.float32(0.5)}, {}),
    ("LeakyRelu", {}, {"alpha": 0.3}),
    ("Cast", {}, {"to": TensorProto.INT32}),
    ("Transpose", {}, {"perm": [2, 0, 1]}),
    ("Transpose", {}, {}),
    ("Reshape", {"shape": ints(0, -1)}, {}),
    ("Flatten", {}, {"axis": 2}),
    ("Unsqueeze", {"axes": ints(0, -1)}, {}),
    ("Concat", {"b": np.ones((2, 1, 4), "float32")}, {"axis": 1}),
    ("Slice", {"starts": ints(1, -3), "ends": ints(2**62, -1), "axes": ints(1, 2)}, {}),
    ("Gather", {"places": ints(2, -1, 0)}, {"axis": 2}),
    ("Gather", {"place": np.array(-1)}, {"axis": 1}),
    ("Expand", {"shape": ints(5, 1, 1, 4)}, {}),
    ("GlobalAveragePool", {}, {}),
    ("Conv", {"w": np.ones((2, 3, 3), "float32")}, {"pads": [1, 1], "strides": [2]}),
    ("BatchNormalization", dict.fromkeys("sbmv", ROW[:3]), {"epsilon": 0.01}),
]


@pytest.mark.parametrize(
    ("operator", "constants", "attributes"), ALONE, ids=[f"{one[0]} {one[2]}" for one in ALONE]
)
def test_an_operator(operator: str, constants: dict, attributes: dict) -> None:
    compare(model_of([node(operator, "x", *constants, **attributes)], constants))


SEVERAL = {
    "a shape that is computed": (
        [
            node("Shape", "x", result="shape"),
            node("Gather", "shape", "zero", result="batch"),
            node("Unsqueeze", "batch", "axis", result="first"),
            node("Mul", "first", "two", result="twice"),
            node("Div", "twice", "two", result="once"),
            node("Concat", "once", "rest", result="wanted", axis=0),
            node("Reshape", "x", "wanted"),
        ],
        {"zero": np.array(0), "axis": ints(0), "two": ints(2), "rest": ints(4, 3)},
    ),
    "a range as long as an axis": (
        [
            node("Shape", "x", result="shape", start=1, end=2),
            node("Squeeze", "shape", "axis", result="count"),
            node("Range", "zero", "count", "one"),
        ],
        {"axis": ints(0), "zero": np.array(0), "one": np.array(1)},
    ),
    "a shape with what is left open replaced": (
        [
            node("ConstantOfShape", "rank", result="ones", value=numpy_helper.from_array(ints(1))),
            node("Mul", "ones", "minus", result="open"),
            node("Shape", "x", result="shape"),
            node("Equal", "shape", "open", result="same"),
            node("Where", "same", "ones", "shape", result="wanted"),
            node("Expand", "row", "wanted"),
        ],
        {"rank": ints(3), "minus": ints(-1), "row": ROW},
    ),
}


@pytest.mark.parametrize("name", SEVERAL)
def test_several_operators(name: str) -> None:
    compare(model_of(*SEVERAL[name]))


def compare(model: onnx.ModelProto) -> None:
    x = np.random.default_rng(0).standard_normal(SHAPE).astype("float32")
    (expected,) = ReferenceEvaluator(model).run(None, {"x": x})
    (found,) = OnnxModule(model, ["x"])(torch.from_numpy(x))
    assert tuple(found.shape) == expected.shape
    assert str(found.dtype).removeprefix("torch.") == expected.dtype.name
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("nodes", "constants", "reason"),
    [
        ([node("Softsign", "x")], {}, "Softsign is not written in PyTorch"),
        ([node("Celu", "x", domain="mine")], {}, "Celu is not written"),
        ([node("Slice", "x", "a", "b", "c", "d")], "abcd", "Slice: it leaves out elements"),
        ([node("Softmax", "x", axis=0)], {}, "Softmax: it lays several axes out as one"),
        ([node("Conv", "x", "w", pads=[0, 1])], "w", "Conv: its pads differ"),
    ],
)
def test_what_is_refused(nodes: list[Any], constants: Any, reason: str) -> None:
    arrays = {name: ints(2) for name in constants}
    model = model_of(nodes, arrays, opset=11)
    with pytest.raises(UnpaddableError, match=reason):
        OnnxModule(model, ["x"])(torch.zeros(SHAPE))


def test_every_operator_is_one_of_onnx() -> None:
    assert all(onnx.defs.has(name) for name in OPERATORS)


def test_axes_that_depend_on_data_are_refused() -> None:
    node = OnnxNode((torch.ones(2, 3), torch.tensor([0, 1])), {}, 18)
    with pytest.raises(UnpaddableError, match="its axes depend on data"):
        node.given("axes", 1)
