"""ONNX models of several nodes, and files that are none."""

from __future__ import annotations

import importlib.util

import numpy as np
import onnx
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper
from onnx_cases import Case

from costlib.errors import CostlibError, InputError, UnsupportedModelError
from costlib.workloads.importers.onnx import import_onnx, import_onnx_model
from costlib.workloads.importers.onnx.reference import OnnxReference

X = np.linspace(-1, 1, 24, dtype="float32").reshape(2, 3, 4)


def node(operator, inputs, outputs, **attributes):
    return helper.make_node(operator, inputs.split(), outputs.split(), **attributes)


def weights(**arrays):
    return [numpy_helper.from_array(np.asarray(array), name) for name, array in arrays.items()]


def floats(name, *shape):
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


def graph(nodes, inputs=(), outputs=("y",), constants=()):
    declared = [
        helper.make_empty_tensor_value_info(name) if isinstance(name, str) else name
        for name in outputs
    ]
    return helper.make_graph(nodes, "graph", inputs, declared, constants)


def model(nodes, inputs=None, outputs=("y",), constants=(), opset=18, **more):
    inputs = [floats("x", *X.shape)] if inputs is None else inputs
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("mine", 1)]
    opsets.append(helper.make_opsetid("com.microsoft", 1))
    body = graph(nodes, inputs, outputs, constants)
    return helper.make_model(body, opset_imports=opsets, ir_version=10, **more)


SHAPES = model(
    [
        node("Shape", "x", "shape"),
        node("Gather", "shape first", "batch"),
        node("Mul", "batch two", "rows"),
        node("Concat", "rows rest", "target", axis=0),
        node("Reshape", "x target", "y"),
    ],
    constants=weights(first=[0], two=[2], rest=[-1]),
)

BRANCHES = model(
    [
        node("Size", "x", "count"),
        node("Less", "count limit", "is_small"),
        node(
            "If",
            "is_small",
            "a",
            then_branch=graph([node("Relu", "x", "b")], outputs="b"),
            else_branch=graph([node("Neg", "x", "c")], outputs="c"),
        ),
        node("ReduceSum", "a", "total", keepdims=0),
        node("Greater", "total zero", "is_large"),
        node(
            "If",
            "is_large",
            "y",
            then_branch=graph([node("Exp", "a", "d")], outputs="d"),
            else_branch=graph([node("Abs", "a", "e")], outputs="e"),
        ),
    ],
    constants=weights(limit=100, zero=np.float32(1e9)),
)

LOOP = model(
    [
        node("Loop", "times yes x", "y all", body=graph(
            [node("Add", "v one", "w"), node("Identity", "go", "on"), node("Mul", "w w", "z")],
            [helper.make_tensor_value_info("i", TensorProto.INT64, []),
             helper.make_tensor_value_info("go", TensorProto.BOOL, []), floats("v", *X.shape)],
            ["on", "w", "z"],
        )),
    ],
    outputs=("y", "all"),
    constants=weights(times=3, yes=True, one=np.float32(1)),
)  # fmt: skip

SCAN = model(
    [
        node("Scan", "start x", "last y", num_scan_inputs=1, scan_input_axes=[1], body=graph(
            [node("Add", "s part", "t"), node("Tanh", "t", "u")],
            [floats("s", 2, 4), floats("part", 2, 4)], ["t", "u"],
        ), scan_input_directions=[1], scan_output_axes=[1]),
    ],
    outputs=("last", "y"),
    constants=weights(start=np.ones((2, 4), "float32")),
)  # fmt: skip

FUNCTION = model(
    [node("Twice", "x", "y", domain="mine", by=3.0)],
    functions=[
        helper.make_function(
            "mine", "Twice", ["a"], ["c"],
            [onnx.NodeProto(op_type="LeakyRelu", input=["a"], output=["b"], attribute=[
                onnx.AttributeProto(name="alpha", ref_attr_name="by", type=1)]),
             node("Add", "b b", "c")],
            [helper.make_opsetid("", 18)], ["by"],
        )
    ],
)  # fmt: skip

SEQUENCE = model(
    [
        node("SplitToSequence", "x", "parts", axis=1),
        node("SequenceAt", "parts last", "part"),
        node("SequenceInsert", "parts part", "more"),
        node("ConcatFromSequence", "more", "y", axis=1),
    ],
    constants=weights(last=-1),
)

FUSED = model(
    [
        node("SkipLayerNormalization", "x x scale", "a", domain="com.microsoft"),
        node("FastGelu", "a", "b", domain="com.microsoft"),
        node("FusedMatMul", "b x", "y", domain="com.microsoft", transB=1, alpha=0.5),
    ],
    constants=weights(scale=np.ones(4, "float32")),
)

NOT_A_NUMBER = model(
    [node("Less", "x half", "a"), node("Not", "a", "b"), node("Cast", "b", "y", to=1)],
    constants=weights(half=np.float32(0.5)),
)

SEVERAL = {
    "shape arithmetic": SHAPES,
    "branches": BRANCHES,
    "loop": LOOP,
    "scan": SCAN,
    "function": FUNCTION,
    "sequence": SEQUENCE,
    "fused": FUSED,
    "NaN": NOT_A_NUMBER,
}


@pytest.mark.parametrize("name", SEVERAL)
def test_models_of_several_nodes(name, run):
    inputs = [np.where(X > 0.9, np.nan, X) if name == "NaN" else X]
    network = import_onnx_model(SEVERAL[name], name)
    expected = network.reference(inputs)
    for ours, theirs in zip(run(network, inputs), expected, strict=True):
        assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype)
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5)


def test_pools_keep_nan(run):
    """ONNX Runtime keeps one, or loses it, by its place in the window; PyTorch keeps it."""
    x = np.random.default_rng(0).standard_normal((1, 2, 6, 6)).astype("float32")
    x[0, 0, 0, 0] = x[0, 1, 3, 2] = np.nan
    x[0, 1, 5] = -np.inf
    attributes = {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}
    source = model(
        [node("MaxPool", "x", "y places", **attributes), node("GlobalMaxPool", "x", "most")],
        [floats("x", *x.shape)],
        ("y", "places", "most"),
    )
    pool = torch.nn.MaxPool2d(3, 2, 1, return_indices=True)
    values, places = (found.numpy() for found in pool(torch.from_numpy(x)))
    y, indices, most = run(import_onnx_model(source, "net"), [x])
    np.testing.assert_array_equal(y, values)
    np.testing.assert_array_equal(indices, places + np.array([0, 36]).reshape(1, 2, 1, 1))
    np.testing.assert_array_equal(most, x.max((2, 3), keepdims=True))


def test_shapes_leave_nothing_to_compute():
    text = import_onnx_model(SHAPES, "net").mod.script()
    assert "R.reshape" in text
    assert "R.multiply" not in text


def refuse(source, error, message):
    with pytest.raises(error, match=message) as caught:
        import_onnx_model(source, "net")
    assert "\n" not in str(caught.value)
    return caught.value


REFUSED = {
    "Det .write the determinant out": model([node("Det", "x", "y")]),
    r"not supported: NonZero|NonZero .*depends on the data": model([node("NonZero", "x", "y")]),
    "RandomUniformLike .random numbers": model([node("RandomUniformLike", "x", "y")]),
    "Reshape .'r'. has a shape that depends on the data; make it a constant": model(
        [node("Cast", "x", "a", to=7), node("Reshape", "x a", "y", name="r")],
        [floats("x", 3)],
    ),
    "mine.Unknown": model([node("Unknown", "x", "y", domain="mine")]),
    "more than .* elements": model(
        [
            node("ConstantOfShape", "size", "a"),
            node("ReduceSum", "a", "b"),
            node("Add", "b x", "y"),
        ],
        constants=weights(size=[1 << 20, 1 << 20]),
    ),
    "Loop ends when the data say so": model([node("Loop", "times yes x", "y all", body=graph(
        [node("ReduceSum", "v", "s", keepdims=0), node("Cast", "s", "on", to=9),
         node("Identity", "v", "w")],
        [helper.make_tensor_value_info("i", TensorProto.INT64, []),
         helper.make_tensor_value_info("go", TensorProto.BOOL, []), floats("v", *X.shape)],
        ["on", "w", "s"]))], constants=weights(times=3, yes=True)),
    "is a sequence; give out tensors": model(
        [node("SequenceConstruct", "x x", "y")],
        outputs=[helper.make_tensor_sequence_value_info("y", TensorProto.FLOAT, None)],
    ),
    "has no elements": model([node("Relu", "x", "y")], [floats("x", 0, 2)]),
    "which the file declares": model([node("Relu", "x", "y")], outputs=[floats("y", 4, 3, 2)]),
    "no tensor": model(
        [node("SequenceAt", "x i", "y")],
        [helper.make_tensor_sequence_value_info("x", TensorProto.FLOAT, None)],
        constants=weights(i=0),
    ),
    "computes with string": model(
        [node("Identity", "x", "y")], [helper.make_tensor_value_info("x", TensorProto.STRING, [2])]
    ),
}  # fmt: skip


@pytest.mark.parametrize("message", REFUSED)
def test_what_cannot_be_imported_is_named(message):
    refuse(REFUSED[message], UnsupportedModelError, message)


def test_unsupported_operators_are_listed():
    source = model([node("Det", "x", "a"), node("Odd", "a", "y", domain="mine")])
    assert refuse(source, UnsupportedModelError, "Det").operators == ("Det", "mine.Odd")


def test_functions_that_call_each_other_without_end():
    body = [node("F", "a", "b", domain="mine")]
    opsets = [helper.make_opsetid("mine", 1)]
    endless = helper.make_function("mine", "F", ["a"], ["b"], body, opsets)
    refuse(model([node("F", "x", "y", domain="mine")], functions=[endless]), InputError, "net: .*F")


def test_weights_beside_the_model(tmp_path, run, monkeypatch):
    weight = np.random.default_rng(0).standard_normal((4, 70_000)).astype("float32")
    source = model([node("MatMul", "x w", "y")], constants=weights(w=weight))
    path = tmp_path / "net.onnx"
    onnx.save(source, path, save_as_external_data=True, location="net.data", size_threshold=0)
    network = import_onnx(path)
    assert network.reference.model.ByteSize() < 1000
    expected = X @ weight
    for outputs in (run(network, [X]), network.reference([X])):
        np.testing.assert_allclose(outputs[0], expected, rtol=1e-5, atol=1e-6)
    with monkeypatch.context() as patch:
        patch.setattr(importlib.util, "find_spec", lambda name: None)
        reference = OnnxReference(network.reference.model, str(path))
        np.testing.assert_allclose(reference([X])[0], expected, rtol=1e-5, atol=1e-6)
    (tmp_path / "net.data").unlink()
    with pytest.raises(InputError, match="data beside it"):
        import_onnx(path)


def test_weights_outside_the_folder(tmp_path):
    source = model([node("MatMul", "x w", "y")], constants=weights(w=np.ones((4, 5), "float32")))
    (tmp_path / "in").mkdir()
    path = tmp_path / "in/net.onnx"
    onnx.save(source, path, save_as_external_data=True, location="net.data", size_threshold=0)
    (tmp_path / "in/net.data").rename(tmp_path / "net.data")
    moved = onnx.load(path, load_external_data=False)
    moved.graph.initializer[0].external_data[0].value = "../net.data"
    path.write_bytes(moved.SerializeToString())
    with pytest.raises(InputError, match=r"net\.onnx: ") as caught:
        import_onnx(path)
    assert "\n" not in str(caught.value)


def test_reference_without_onnx_runtime(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    reference = OnnxReference(SHAPES)
    assert reference.name == "onnx's reference evaluator"
    np.testing.assert_array_equal(reference([X])[0], X.reshape(4, 6))


@pytest.mark.parametrize("mode", ["linear", "cubic"])
def test_corners_are_aligned_where_a_length_is_rounded(mode, run, monkeypatch):
    """onnx's node tests, and its evaluator, divide by a length between two numbers."""
    attributes = {"mode": mode, "coordinate_transformation_mode": "align_corners"}
    image = floats("x", 1, 1, 4, 10)
    resized = [node("Resize", "x none scales", "z", **attributes)]
    source = model(
        [node("If", "yes", "y", then_branch=graph(resized, outputs="z"), else_branch=graph(
            [node("Identity", "x", "same")], outputs=["same"]))],
        [image],
        ("y",),
        weights(none=np.float32([]), scales=np.float32([1, 1, 0.6, 0.7]), yes=True),
    )  # fmt: skip
    x = np.random.default_rng(0).standard_normal((1, 1, 4, 10)).astype("float32")
    (ours,) = run(import_onnx_model(source, "net"), [x])
    np.testing.assert_array_equal(ours[..., -1, -1], x[..., -1, -1])
    reference = OnnxReference(source)
    assert reference.name == "ONNX Runtime"
    np.testing.assert_allclose(ours, reference([x])[0], rtol=1e-5, atol=1e-6)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    reference = OnnxReference(source)
    assert reference.name == "onnx's reference evaluator"
    np.testing.assert_allclose(ours, reference([x])[0], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("transformation", ["half_pixel", "align_corners", "asymmetric"])
def test_a_resized_output_has_the_extent_that_the_file_declares(run, mode, transformation):
    """0.7 of 10 is 7 in single precision, and 6 for ONNX's own shape inference."""
    attributes = {"mode": mode, "coordinate_transformation_mode": transformation}
    x = np.random.default_rng(0).standard_normal((1, 1, 1, 10)).astype("float32")
    for extent, original in ((7, "ONNX Runtime"), (6, "onnx's reference evaluator")):
        source = model(
            [node("Resize", "x none scales", "z", **attributes), node("Relu", "z", "y")],
            [floats("x", 1, 1, 1, 10)],
            (floats("y", 1, 1, 1, extent),),
            weights(none=np.float32([]), scales=np.float32([1, 1, 1, 0.7])),
        )
        network = import_onnx_model(source, "net")
        (ours,) = run(network, [x])
        assert ours.shape == (1, 1, 1, extent)
        assert network.reference.name == original
        np.testing.assert_allclose(ours, network.reference([x])[0], rtol=1e-5, atol=1e-6)


def test_the_evaluator_takes_the_nearest_of_infinities():
    x = np.float32([[[[-np.inf, 1, np.inf, -np.inf, -np.inf]]]])
    source = model(
        [node("Resize", "x none scales", "y", mode="nearest")],
        [floats("x", 1, 1, 1, 5)],
        ("y",),
        weights(none=np.float32([]), scales=np.float32([1, 1, 1, 2])),
    )
    theirs = OnnxReference(source, is_exact=True)([x])[0]
    np.testing.assert_array_equal(theirs, np.repeat(x, 2, axis=-1))


def test_reference_says_why_it_fails():
    reference = OnnxReference(SHAPES)
    assert reference.name == "ONNX Runtime"
    with pytest.raises(CostlibError, match="ONNX Runtime cannot run the model"):
        reference([X[:1]])


EXTENTS = st.integers(1, 5)
STEPS = (-2, -1, 1, 2)


@settings(
    max_examples=4, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_of_any_shape(data, run):
    """One model of several nodes, so that little is compiled."""
    draw = data.draw
    compare_nodes(
        run,
        rows=draw(st.integers(2, 6)),
        columns=draw(st.integers(2, 6)),
        scale=(draw(st.floats(0.5, 2.5)), draw(st.floats(0.5, 2.5))),
        mode=draw(st.sampled_from(["linear", "cubic", "nearest"])),
        strides=[draw(st.integers(1, 3)), draw(st.integers(1, 3))],
        cut=(draw(st.integers(-7, 7)), draw(st.integers(-7, 7)), draw(st.sampled_from(STEPS))),
    )


def test_what_keeps_its_shape_is_not_resized_and_slices_backwards_start_in_the_axis(run):
    compare_nodes(
        run, rows=2, columns=2, scale=(1.0, 1.25), mode="linear", strides=[1, 1], cut=(-3, -3, -2)
    )


def compare_nodes(run, *, rows, columns, scale, mode, strides, cut):
    image = np.random.default_rng(0).standard_normal((1, 2, rows, columns)).astype("float32")
    kernel = np.random.default_rng(1).standard_normal((2, 3, 2, 3)).astype("float32")
    begin, end, step = cut
    cases = [
        Case("a", "Resize", (image,), (None, np.float32([1, 1, *scale])), {"mode": mode}),
        Case("b", "ConvTranspose", (image,), (kernel,),
             {"strides": strides, "output_shape": [rows * strides[0], columns * strides[1]]}),
        Case("c", "MaxPool", (image,), (), {"kernel_shape": [2, 2], "strides": strides}, 18, 2),
        Case("d", "AveragePool", (image,), (),
             {"kernel_shape": [2, 2], "strides": strides, "ceil_mode": 1, "pads": [1, 0, 0, 1]},
             19),
        Case("e", "Slice", (image,), (np.array([begin]), np.array([end]), np.array([3]),
                                      np.array([step]))),
    ]  # fmt: skip
    for case in cases:
        expected = OnnxReference(case.model())(case.feeds())
        if not expected[0].size:
            continue
        network = import_onnx_model(case.model(), case.name)
        for ours, theirs in zip(run(network, case.feeds()), expected, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=2e-5, err_msg=case.name)
