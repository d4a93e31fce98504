"""ONNX files whose dimensions have names, in ranges."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from costlib.errors import InputError
from costlib.tuning.check import check
from costlib.workloads import prepare_network
from costlib.workloads.ranges.ranged import ranged

WIDTH = 8


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Attention of rows to one another, without masks, and a shape that the graph computes."""
    weight = np.random.default_rng(0).standard_normal((WIDTH, WIDTH)).astype("float32")
    graph = helper.make_graph(
        [
            helper.make_node("MatMul", ["x", "w"], ["y"]),
            helper.make_node("Transpose", ["x"], ["t"], perm=[0, 2, 1]),
            helper.make_node("MatMul", ["y", "t"], ["scores"]),
            helper.make_node("Softmax", ["scores"], ["weights"], axis=-1),
            helper.make_node("MatMul", ["weights", "x"], ["mixed"]),
            helper.make_node("Shape", ["x"], ["extents"]),
            helper.make_node("Reshape", ["mixed", "extents"], ["out"]),
        ],
        "attention",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", "sequence", WIDTH])],
        [helper.make_tensor_value_info("out", TensorProto.FLOAT, ["batch", "sequence", WIDTH])],
        [numpy_helper.from_array(weight, "w")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, tmp_path / "attention.onnx")
    return tmp_path / "attention.onnx"


@pytest.mark.parametrize("sequence", [(3, 5), (2, 60)], ids=["each a point", "any shape"])
def test_shapes_are_compared_with_the_original(file: Path, hardware, sequence) -> None:
    dims = {"batch": (1, 2), "sequence": sequence}
    found = check(file, hardware=hardware, dim=dims)
    assert found.status == "right"
    assert [one.sizes for one in found.shapes[:2]] == [
        {"batch": batch, "sequence": extent} for batch, extent in zip((1, 2), sequence, strict=True)
    ]
    assert all(one.sizes == one.served_by for one in found.shapes)


def test_few_shapes_have_programs_of_their_own(file: Path) -> None:
    found = ranged(file, {"batch": (2, 2), "sequence": (3, 5)})
    assert found is not None and found.table.anywhere is None
    assert [point.sizes for point in found.table.points] == [(2, 3), (2, 4), (2, 5)]
    assert found.table.inputs == (("batch", "sequence", WIDTH),)
    assert found.networks[0].inputs[0].shape == (2, 3, WIDTH)


@pytest.mark.parametrize(
    ("dims", "reason"),
    [
        ({"batch": (1, 2)}, "'sequence' has no range; give it one: --dim sequence=1:32"),
        ({"length": (1, 2)}, "no dimension 'length'; it has batch, sequence"),
        ({"batch": (0, 2), "sequence": (1, 2)}, "'batch' of 0"),
    ],
)
def test_what_has_no_range(file: Path, dims, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        ranged(file, dims)


def test_a_file_of_something_else(tmp_path: Path) -> None:
    (tmp_path / "not.onnx").write_bytes(b"\xff\x00 nothing")
    with pytest.raises(InputError, match="not a valid ONNX model"):
        ranged(tmp_path / "not.onnx", {"batch": (1, 2)})


def test_a_constraint_of_the_model_is_named(tmp_path: Path, hardware) -> None:
    """A graph that adds five rows takes no other number of them, but 1."""
    rows = numpy_helper.from_array(np.ones((5, WIDTH), "float32"), "rows")
    graph = helper.make_graph(
        [helper.make_node("Add", ["x", "rows"], ["out"])],
        "rows",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", WIDTH])],
        [helper.make_tensor_value_info("out", TensorProto.FLOAT, None)],
        [rows],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, tmp_path / "rows.onnx")
    found = check(tmp_path / "rows.onnx", hardware=hardware, dim={"n": (4, 6)})
    assert found.status == "unsupported"
    assert found.reason is not None and "n=6" in found.reason
    assert "\n" not in found.reason


def test_the_networks_can_be_prepared(file: Path, hardware) -> None:
    found = ranged(file, {"batch": (1, 1), "sequence": (3, 3)})
    assert found is not None
    prepared = [prepare_network(network, hardware) for network in found.networks]
    assert "main" in {v.name_hint for v in found.as_one(prepared, hardware).functions}
