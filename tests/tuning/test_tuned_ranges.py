"""One compiled file for all shapes of a range, and runs that tune it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from torch import nn

from costlib import tune
from costlib.errors import DifferentNetworkError, InputError
from costlib.tuning.check import check
from costlib.tuning.compiled import CompiledNetwork
from costlib.tuning.config import TuneConfig
from costlib.tuning.networks import NetworkSet
from costlib.tuning.ranges import ShapeResult, check_shapes
from costlib.tuning.session import points_for
from costlib.workloads import prepare_network
from costlib.workloads.interface import with_shapes
from costlib.workloads.ranges.ranged import RangedNetwork, ranged
from costlib.workloads.ranges.table import ShapeTable

WIDTH = 8
BATCH, SEQUENCE = (1, 2), (3, 6)


class Attention(nn.Module):
    """Attention and a mean: rows and columns mix. Called with nests, as a user's module may be."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(WIDTH, WIDTH)

    def forward(self, given):
        x, scale = given["x"], given["scale"]
        found = torch.softmax(x @ x.transpose(1, 2), -1) @ self.linear(x) * scale
        return {"all": found, "mean": found.mean(1)}


@pytest.fixture(scope="module")
def program():
    torch.manual_seed(0)
    ends = {"batch": BATCH, "sequence": SEQUENCE}
    dims = {
        n: torch.export.Dim(name, min=a, max=b) for n, (name, (a, b)) in enumerate(ends.items())
    }
    inputs = {"x": torch.randn(2, 6, WIDTH), "scale": torch.tensor(2.0)}
    shapes = ({"x": dims, "scale": None},)
    return torch.export.export(Attention().eval(), (inputs,), dynamic_shapes=shapes)


@pytest.fixture(scope="module")
def network(program) -> RangedNetwork:
    found = ranged(program, {})
    assert found is not None
    return found


@pytest.fixture(scope="module")
def compiled(network: RangedNetwork, hardware, tmp_path_factory) -> CompiledNetwork:
    modules = named_modules(network, hardware)
    path = tmp_path_factory.mktemp("ranges") / "network.so"
    CompiledNetwork.build(with_shapes(modules, network.table), hardware).save(path)
    return CompiledNetwork.load(path)


def named_modules(network: RangedNetwork, hardware):
    modules = [prepare_network(point, hardware) for point in network.networks]
    return dict(zip(network.functions, modules, strict=True))


def inputs(*shape: int):
    return {"x": torch.randn(*shape, WIDTH), "scale": torch.tensor(0.5)}


@settings(max_examples=25, deadline=None)
@given(st.tuples(st.integers(*BATCH), st.integers(*SEQUENCE)))
@example((1, 3))
@example((2, 6))
def test_every_shape_is_right(program, compiled: CompiledNetwork, shape: tuple[int, int]) -> None:
    given_ = inputs(*shape)
    expected = program.module()(given_)
    found = compiled(given_)
    for name, tensor in found.items():
        assert tensor.shape == expected[name].shape
        assert tensor.is_contiguous()
        torch.testing.assert_close(tensor, expected[name])
    as_numpy = compiled({name: tensor.numpy() for name, tensor in given_.items()})
    assert isinstance(as_numpy["all"], np.ndarray)
    np.testing.assert_array_equal(as_numpy["all"], found["all"].numpy())


def test_how_a_shape_is_computed_is_found_once(
    compiled: CompiledNetwork, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = [(x, compiled(x)) for x in (inputs(1, 4), inputs(1, 5))]
    monkeypatch.setattr(ShapeTable, "sizes_of", None)
    for x, expected in found:
        torch.testing.assert_close(compiled(x), expected)


@pytest.mark.parametrize(
    ("shape", "reason"),
    [
        ((3, 4), "'batch' is 3; the network takes batch=1:2"),
        ((1, 2), "'sequence' is 2; the network takes sequence=3:6"),
        ((1,), r"the network takes given_x: float32\[batch, sequence, 8\]; given was"),
    ],
)
def test_shapes_out_of_range(compiled: CompiledNetwork, shape, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        compiled(inputs(*shape))


def test_points_share_kernels_and_those_that_do_not_serve_are_left_out(
    network: RangedNetwork, hardware
) -> None:
    modules = named_modules(network, hardware)
    alone = len(with_shapes(modules, network.served_by([9, 9, 9, 9, 9, 1]).table).functions)
    last = network.table.points[-1]
    twice = (*network.table.points[:-2], last.model_copy(update={"function": "again"}), last)
    assert len(twice) == len(network.table.points) == 6
    again = network.table.model_copy(update={"points": (twice[-2], *[last] * 5)})
    assert len(with_shapes(modules | {"again": modules["main"]}, again).functions) == alone + 1


def test_there_are_as_many_points_as_trials_for_their_tasks(program, hardware) -> None:
    few, many = (NetworkSet.load([program], hardware, trials=trials) for trials in (60, 600))
    assert [len(found.networks) for found in (few, many)] == [4, 6]
    assert 0 < len(few.lesser_tasks) <= 60 / 2
    assert {*few.names} < {*many.names}
    assert [many.is_inner_point(name) for name in many.names] == [False, *[True] * 4, False]


def test_check_compares_both_ends_and_shapes_between(program, hardware) -> None:
    found = check(program, hardware=hardware, dim={"batch": (1, 1), "sequence": (4, 6)})
    assert found.status == "right"
    assert [one.sizes["sequence"] for one in found.shapes[:2]] == [4, 6]
    assert any(one.sizes != one.served_by for one in found.shapes)


def test_a_different_shape_is_an_error(network: RangedNetwork) -> None:
    sizes = {"batch": 1, "sequence": 4}
    wrong = ShapeResult(sizes=sizes, served_by=sizes, max_abs_error=1.0, fault="output0: wrong")
    with pytest.raises(DifferentNetworkError, match="with batch=1, sequence=4 computes something"):
        check_shapes(network, [wrong])


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        (TuneConfig(layouts="all"), "--layouts all takes networks of fixed shapes"),
        (TuneConfig(objective="requirement", required_s=(1.0,)), "'requirement' takes networks"),
    ],
)
def test_what_fixed_shapes_have(program, tmp_path: Path, config, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        tune(program, out=tmp_path / "run", bundle="none", config=config, dim={"batch": (1, 1)})


def test_a_run_of_a_range(program, hardware, tmp_path: Path) -> None:
    out = tmp_path / "run"
    dims = {"batch": (1, 1), "sequence": (5, 6)}
    result = tune(program, out=out, trials=4, bundle="none", hardware=hardware, dim=dims)
    (found,) = result.ranges
    assert found.dims == dims
    assert found.points[-1].sizes == {"batch": 1, "sequence": 6}
    assert [point.network for point in found.points] == [one.network for one in result.networks]
    assert all(point.latency_after_s > 0 for point in found.points)
    assert found.points[-1].trials > 0
    assert "the next larger point along sequence" in found.between
    assert not any(one.fault for one in found.compared)
    assert json.loads((out / "result.json").read_text())["ranges"][0]["dims"]["sequence"] == [5, 6]
    assert points_for(out, 400) == points_for(out, None) == 4
    assert CompiledNetwork.load(out / "network.so")(inputs(1, 5))["all"].shape == (1, 5, WIDTH)


@pytest.mark.parametrize(
    ("config", "least"),
    [(TuneConfig(weights="int8"), 4), (TuneConfig(dtype="bfloat16", against=("onnxruntime",)), 5)],
    ids=["int8", "bfloat16"],
)
def test_a_run_of_a_range_in_fewer_bits_beside_engines(
    program, hardware, tmp_path: Path, config: TuneConfig, least: int
) -> None:
    dims = {"batch": (1, 1), "sequence": (least, 6)}
    result = tune(
        program, out=tmp_path, trials=2, hardware=hardware, dim=dims, bundle="none", config=config
    )
    (found,) = result.ranges
    if least < 5:  # There are more shapes than points.
        assert any(one.sizes != one.served_by for one in found.compared)
    for one in found.compared:
        assert one.original == "the rounded network in float32"
        assert one.fault is None
        assert one.rounding_error is not None and 0 < one.rounding_error < 0.1
    engines = [engine for network in result.networks for engine in network.engines]
    assert [engine.name for engine in engines] == [*config.against] * len(result.networks)
    assert not [engine.problem for engine in engines if engine.problem]
    x = inputs(1, 5)
    ours, original = CompiledNetwork.load(found.library)(x), program.module()(x)
    assert 0 < (ours["all"] - original["all"]).abs().max() < 0.1


class Step(nn.Module):
    """A step of a decoder: attention to what came before and to itself, and the cache, grown."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(16, WIDTH)
        self.places = nn.Embedding(16, WIDTH)

    def forward(self, token, past):
        new = self.table(token) + self.places(past.shape[1] + torch.arange(1))
        grown = torch.cat([past, new], 1)
        return torch.softmax(new @ grown.transpose(1, 2), -1) @ grown, grown


def test_a_cache_grows_in_one_file_token_after_token(hardware, tmp_path: Path) -> None:
    torch.manual_seed(0)
    step = Step().eval()
    past = {1: torch.export.Dim("past", min=0, max=9)}
    example = (torch.ones(2, 1, dtype=torch.int64), torch.randn(2, 4, WIDTH))
    program = torch.export.export(step, example, dynamic_shapes=(None, past))
    network = ranged(program, {"past": (0, 9)})
    assert network is not None and network.table.padded == ("past",)
    modules = named_modules(network, hardware)
    CompiledNetwork.build(with_shapes(modules, network.table), hardware).save(tmp_path / "net.so")
    compiled = CompiledNetwork.load(tmp_path / "net.so")
    cache = expected_cache = torch.zeros(2, 0, WIDTH)
    for number in range(10):
        token = torch.tensor([[number], [15 - number]])
        found, cache = compiled(token, cache)
        expected, expected_cache = step(token, expected_cache)
        torch.testing.assert_close(found, expected)
        torch.testing.assert_close(cache, expected_cache)
    with pytest.raises(InputError, match="'past' is 10"):
        compiled(token, cache)


def test_no_extent_of_0_where_nothing_can_be_padded() -> None:
    empty = {1: torch.export.Dim("s", min=0, max=9)}
    program = torch.export.export(
        nn.Softmax(1), (torch.randn(2, 4, WIDTH),), dynamic_shapes=(empty,)
    )
    with pytest.raises(InputError, match=r"cannot be compiled for 's' of 0 .*may be empty"):
        ranged(program, {"s": (0, 9)})


class Turned(nn.Module):
    """What no larger shape computes, as it begins at the end."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        return torch.relu(self.linear(x.flip(1))), x.sum(0)


@pytest.fixture(scope="module")
def turned():
    torch.manual_seed(0)
    dims = {0: torch.export.Dim("batch", min=1, max=3), 1: torch.export.Dim("s", min=1, max=90)}
    return torch.export.export(Turned().eval(), (torch.randn(2, 4, WIDTH),), dynamic_shapes=(dims,))


def test_a_program_of_any_shape_computes_what_no_point_does(
    turned, hardware, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    network = ranged(turned, {})
    assert network is not None and network.table.padded == ("batch",)
    assert [record.message for record in caplog.records if "untuned program" in record.message]
    prepared = [prepare_network(point, hardware) for point in network.networks]
    CompiledNetwork.build(network.as_one(prepared, hardware), hardware).save(tmp_path / "net.so")
    compiled = CompiledNetwork.load(tmp_path / "net.so")
    points = {point.sizes[1] for point in network.table.points}
    assert {1, 90} < points
    for extent in (1, 2, 31, 89, 90):
        for batch in (1, 2, 3):
            x = torch.randn(batch, extent, WIDTH)
            for found, expected in zip(compiled(x), turned.module()(x), strict=True):
                torch.testing.assert_close(found, expected)


def test_a_program_of_any_shape_has_no_fewer_bits(turned, hardware) -> None:
    with pytest.raises(InputError, match=r"computed in float32, not in int8 .*narrow the range"):
        NetworkSet.load([turned], hardware, weights="int8")


def test_a_run_with_a_program_of_any_shape(turned, hardware, tmp_path: Path) -> None:
    dims = {"batch": (1, 1), "s": (1, 60)}
    result = tune(turned, out=tmp_path, trials=2, bundle="none", hardware=hardware, dim=dims)
    (found,) = result.ranges
    assert "an extent that is no point has an untuned program" in found.between
    assert not any(one.fault for one in found.compared)
    points = [one.sizes for one in found.points]
    assert any(one.sizes not in points for one in found.compared)
