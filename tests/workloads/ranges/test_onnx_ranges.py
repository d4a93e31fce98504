"""ONNX files whose dimensions have names, in ranges."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper
from torch import nn

from costlib.errors import InputError
from costlib.tuning.check import check
from costlib.workloads import prepare_network
from costlib.workloads.ranges.ranged import ranged

WIDTH = 8


def attention(path: Path, last: str) -> Path:
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
            helper.make_node("Reshape", ["mixed", "extents"], ["laid_out"]),
            helper.make_node(last, ["laid_out"], ["out"]),
        ],
        "attention",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", "sequence", WIDTH])],
        [helper.make_tensor_value_info("out", TensorProto.FLOAT, ["batch", "sequence", WIDTH])],
        [numpy_helper.from_array(weight, "w")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, path)
    return path


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A model that can be padded."""
    return attention(tmp_path / "attention.onnx", "Tanh")


@pytest.fixture
def unpaddable(tmp_path: Path) -> Path:
    """A model with an operator that PyTorch's are not written for."""
    return attention(tmp_path / "attention.onnx", "Softsign")


def test_shapes_are_padded_and_compared_with_the_original(file: Path, hardware) -> None:
    dims = {"batch": (1, 2), "sequence": (2, 60)}
    found = check(file, hardware=hardware, dim=dims)
    assert found.status == "right"
    assert any(one.sizes != one.served_by for one in found.shapes)
    assert {one.original for one in found.shapes} == {"ONNX Runtime"}


@pytest.mark.parametrize("sequence", [(3, 5), (2, 60)], ids=["each a point", "any shape"])
def test_what_cannot_be_padded_is_compared_too(unpaddable: Path, hardware, sequence) -> None:
    found = check(unpaddable, hardware=hardware, dim={"batch": (1, 2), "sequence": sequence})
    assert found.status == "right"
    assert [one.sizes["sequence"] for one in found.shapes[:2]] == [*sequence]
    assert all(one.sizes == one.served_by for one in found.shapes)


def test_few_shapes_have_programs_of_their_own(unpaddable: Path) -> None:
    found = ranged(unpaddable, {"batch": (2, 2), "sequence": (3, 5)})
    assert found is not None and found.table.anywhere is None
    assert found.unpadded == "Softsign is not written in PyTorch"
    assert [point.sizes for point in found.table.points] == [(2, 3), (2, 4), (2, 5)]
    assert found.table.inputs == (("batch", "sequence", WIDTH),)
    assert found.networks[0].inputs[0].shape == (2, 3, WIDTH)


def test_a_file_of_torch_is_padded(tmp_path: Path, hardware) -> None:
    """Shapes that are computed, positions counted, heads split: as PyTorch writes them."""
    pytest.importorskip("onnxscript")
    dims = {0: torch.export.Dim("batch", min=1, max=4), 1: torch.export.Dim("length", min=2, max=9)}
    program = torch.onnx.export(
        Encoder().eval(),
        (torch.ones(2, 5, dtype=torch.int64),),
        dynamo=True,
        dynamic_shapes=(dims,),
        verbose=False,
    )
    program.save(tmp_path / "encoder.onnx")
    wanted = {"batch": (1, 2), "length": (2, 4)}
    network = ranged(tmp_path / "encoder.onnx", wanted)
    assert network is not None and network.table.padded == ("batch", "length")
    assert network.table.outputs == (("batch", "length", WIDTH), ("batch", WIDTH))
    assert network.table.lengths == ("length",)
    found = check(tmp_path / "encoder.onnx", hardware=hardware, dim=wanted)
    assert found.status == "right"


class Encoder(nn.Module):
    """Attention with two heads over tokens at their positions."""

    def __init__(self):
        super().__init__()
        self.tokens, self.places = nn.Embedding(20, WIDTH), nn.Embedding(16, WIDTH)
        self.norm, self.qkv = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 3 * WIDTH)

    def forward(self, tokens):
        x = self.tokens(tokens) + self.places(torch.arange(tokens.shape[1]))
        batch, length, _ = x.shape
        q, k, v = (
            part.reshape(batch, length, 2, WIDTH // 2).transpose(1, 2)
            for part in self.qkv(self.norm(x)).chunk(3, -1)
        )
        mixed = nn.functional.scaled_dot_product_attention(q, k, v).transpose(1, 2)
        found = x + mixed.reshape(batch, length, WIDTH)
        return found, found.mean(1)


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
