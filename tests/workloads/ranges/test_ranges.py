"""Ranges, the points that serve them, and what cannot have them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from costlib.errors import InputError, UnsupportedModelError
from costlib.workloads.importers.torch_export import export_in_ranges
from costlib.workloads.ranges.dimension import Dimension, parse_dims
from costlib.workloads.ranges.points import columns_of
from costlib.workloads.ranges.ranged import ranged
from costlib.workloads.ranges.symbolic import symbolic
from costlib.workloads.ranges.table import Point, ShapeTable, grid, padded_to
from costlib.workloads.signature import TensorSpec, flat_signature

BATCH, SEQUENCE = (torch.export.Dim(name, min=1, max=8) for name in ("batch", "sequence"))
ranges = st.tuples(st.integers(1, 600), st.integers(0, 600)).map(lambda p: (p[0], p[0] + p[1]))


def exported(module: nn.Module, dims=None):
    shapes = ({0: BATCH, 1: SEQUENCE} if dims is None else dims,)
    return torch.export.export(module.eval(), (torch.randn(3, 4, 2),), dynamic_shapes=shapes)


class Flip(nn.Module):
    def forward(self, x):
        return x.flip(1)


class Deviation(nn.Module):
    def forward(self, x):
        return x.flip(1) / x.std(1, keepdim=True)


class Fixed(nn.Module):
    def forward(self, x):
        return x + torch.ones(3, 4)


class Twice(nn.Module):
    def forward(self, x):
        return torch.cat([x, x], 1)


class Size(nn.Module):
    def forward(self, x):
        return x, x.shape[1]


class Scaled(nn.Module):
    def forward(self, x):
        return x * x.shape[1]


class Counting(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("calls", torch.zeros(1))

    def forward(self, x):
        self.calls.add_(1)
        return x + self.calls


def test_dims_as_they_are_written() -> None:
    assert parse_dims(["batch=1:32", "x.1=7:7"]) == {"batch": (1, 32), "x.1": (7, 7)}


@pytest.mark.parametrize(
    ("texts", "reason"),
    [
        (["sequence"], "'sequence' is no range"),
        (["sequence=16"], "no range"),
        (["sequence=16:a"], "no range"),
        (["=1:2"], "no range"),
        (["sequence=128:16"], "is empty; write sequence=16:128"),
        (["sequence=-3:16"], "begins below 0"),
        (["sequence=0:0"], "holds nothing but 0"),
        (["a=1:2", "a=1:3"], "two ranges"),
    ],
)
def test_what_is_no_range(texts: list[str], reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        parse_dims(texts)


def table_of(dims: list[Dimension], columns, padded: list[str]) -> ShapeTable:
    """Return the table of a network that takes and returns a matrix, one dimension an axis."""
    points = grid(columns)
    spec = TensorSpec(name="x", dtype="float32", shape=points[-1])
    return ShapeTable(
        signature=flat_signature([spec], [spec]),
        dims=tuple(dims),
        padded=tuple(padded),
        inputs=(tuple(dim.name for dim in dims),),
        outputs=((dims[0].name, f"{dims[-1].name} - 1"),),
        lengths=(dims[-1].name,),
        columns=tuple(columns),
        points=tuple(Point(function=str(sizes), sizes=sizes) for sizes in points),
    )


@given(st.lists(ranges, min_size=1, max_size=3), st.data())
def test_the_nearest_point_that_is_large_enough_serves(ends: list[tuple[int, int]], data) -> None:
    dims = [Dimension.of(f"d{n}", *pair) for n, pair in enumerate(ends)]
    table = table_of(
        dims, [columns_of([dim], 4)[0] for dim in dims], padded=[dim.name for dim in dims]
    )
    (spec,) = table.signature.inputs
    sizes = tuple(data.draw(st.integers(dim.low, dim.high)) for dim in dims)
    enough = [p for p in grid(table.columns) if all(n <= m for n, m in zip(sizes, p, strict=True))]
    assert table.serving(sizes).sizes == min(enough)
    assert table.sizes_of([spec.model_copy(update={"shape": sizes})]) == sizes
    assert table.served(sizes).outputs == [(sizes[0], sizes[-1] - 1)]
    assert [int(n) for n in table.served(sizes).lengths] == [sizes[-1]]
    assert ShapeTable.model_validate_json(table.model_dump_json()) == table


def test_a_larger_point_serves_where_it_is_faster() -> None:
    dims = [Dimension.of("batch", 1, 3), Dimension.of("sequence", 1, 2)]
    table = table_of(dims, [(1, 2, 3), (1, 2)], padded=["batch"])
    faster = table.with_fastest([3.0, 1.0, 4.0, 2.0, 2.0, 0.5])
    assert faster.serving((1, 1)).sizes == (3, 1)
    assert faster.serving((2, 1)).sizes == (3, 1)
    assert faster.serving((1, 2)).sizes == faster.serving((3, 2)).sizes == (3, 2)
    assert table.with_fastest([1.0] * 6) == table


def test_padding_repeats_the_last() -> None:
    found = padded_to(np.array([[1, 2], [3, 4]]), (3, 4))
    assert found.tolist() == [[1, 2, 2, 2], [3, 4, 4, 4], [3, 4, 4, 4]]
    assert found.ctypes.data % 64 == 0


def test_ranges_are_those_of_the_program_unless_others_are_wanted() -> None:
    program = exported(nn.Linear(2, 2))
    found = ranged(program, {"sequence": (4, 4)})
    assert found is not None
    assert found.table.dims == (Dimension.of("batch", 1, 8), Dimension.of("sequence", 4, 4))
    assert found.table.padded == ("batch",)
    assert found.table.inputs == found.table.outputs == (("batch", "sequence", 2),)
    assert found.table.lengths == ()
    assert found.unpadded is None


def test_a_saved_program_has_forgotten_the_names(tmp_path: Path) -> None:
    torch.export.save(exported(nn.Softmax(1)), tmp_path / "net.pt2")
    found = symbolic(tmp_path / "net.pt2", {"input.1": (2, 3)})
    assert found is not None
    assert [dim.name for dim in found.dims] == ["input.0", "input.1"]
    assert [len(dim) for dim in found.dims] == [8, 2]


def test_each_extent_by_itself_where_a_larger_one_does_not_serve() -> None:
    found = ranged(exported(Flip()), {"batch": (1, 1), "sequence": (1, 3)})
    assert found is not None
    assert found.table.padded == ()
    assert [point.sizes for point in found.table.points] == [(1, 1), (1, 2), (1, 3)]
    assert "aten.flip" in str(found.unpadded)


def test_what_is_computed_with_the_size_is_told_the_size() -> None:
    found = ranged(exported(Scaled()), {"batch": (1, 2), "sequence": (2, 3)})
    assert found is not None
    assert found.table.padded == ("batch", "sequence")
    assert found.table.lengths == ("sequence",)
    for network in found.networks:
        x, _ = network.examples
        (expected,) = network.reference([x])
        np.testing.assert_allclose(x * x.shape[1], expected)


def test_an_output_may_be_of_any_extent_where_nothing_is_padded() -> None:
    found = ranged(exported(Twice()), {"batch": (1, 2), "sequence": (2, 3)})
    assert found is not None
    assert found.table.padded == ("batch",)
    assert found.table.outputs == (("batch", None, 2),)
    assert found.table.served((1, 2)).outputs == [(1, None, 2)]


def test_a_network_of_the_zoo_has_no_more_than_it_takes() -> None:
    assert symbolic("bert_tiny", {}) is None
    assert symbolic("matmul 8 8 8", {}) is None


HALF = torch.export.Dim("half", min=1, max=4)
OPEN = {0: torch.export.Dim("batch")}


@pytest.mark.parametrize(
    ("source", "dims", "reason"),
    [
        ("bert_tiny", {"length": (1, 2)}, "no dimension 'length'; it has batch, sequence"),
        ("bert_tiny", {"sequence": (8, 8)}, "single extent"),
        ("matmul 8 8 8", {"n": (1, 2)}, "matmul 8 8 8 cannot have ranges; they take"),
        (lambda: exported(nn.ReLU()), {"n": (1, 2)}, "no dimension 'n'; it has batch, sequence"),
        (lambda: exported(nn.ReLU()), {"batch": (1, 9)}, "takes 1 to 8 for 'batch', not 1 to 9"),
        (lambda: exported(nn.ReLU(), {}), {"batch": (1, 2)}, "its shapes are fixed"),
        (lambda: exported(nn.ReLU(), OPEN), {}, "'batch' has no largest extent"),
        (lambda: exported(nn.ReLU(), {1: 2 * HALF}), {}, "a range takes one that is a number"),
        (lambda: exported(Counting()), {}, "keeps state"),
        (lambda: exported(Size()), {}, "returns a size as a number"),
        (Path("none.pt2"), {}, "no such file"),
    ],
)
def test_what_cannot_have_ranges(source, dims, reason: str) -> None:
    with pytest.raises(InputError, match=reason) as caught:
        ranged(source() if callable(source) else source, dims)
    assert "\n" not in str(caught.value)


def test_too_many_extents_one_by_one() -> None:
    wide = torch.export.Dim("sequence", min=1, max=100)
    found = ranged(exported(Flip(), {1: wide}), {})
    assert found is not None and found.table.anywhere is not None
    assert found.table.padded == ()
    assert len(found.table.points) == 6
    for extent in range(1, 101):
        anywhere = Point(function=found.table.anywhere, sizes=(extent,))
        is_point = extent in found.table.columns[0]
        assert (found.table.serving((extent,)) == anywhere) != is_point


def test_no_program_of_any_shape_either() -> None:
    wide = torch.export.Dim("sequence", min=2, max=100)
    with pytest.raises(InputError, match=r"aten.*99 are too many, and TVM has no program of any"):
        ranged(exported(Deviation(), {1: wide}), {})


def test_a_module_that_fixes_what_should_have_a_range() -> None:
    with pytest.raises(UnsupportedModelError, match="these ranges are not possible") as caught:
        export_in_ranges(Fixed(), (torch.randn(3, 4),), ({0: BATCH},), "it")
    assert "\n" not in str(caught.value)
