"""PyTorch's operators, a theme of them in one network, beside PyTorch itself."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from aten_cases import THEMES
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional as F
from torch.utils import _pytree as pytree

from costlib.errors import UnsupportedModelError
from costlib.workloads import load_network
from costlib.workloads.torch_arrays import to_numpy

TOLERANCES = {"float16": 4e-3, "bfloat16": 2e-2, "float32": 2e-5, "float64": 1e-9}


class Together(nn.Module):
    """All cases of a theme, one after the other."""

    def __init__(self, cases):
        super().__init__()
        self.cases = cases
        for i, case in enumerate(cases):
            if isinstance(case.function, nn.Module):
                self.add_module(f"case{i}", case.function)

    def forward(self, inputs):
        return [case.function(*mine) for case, mine in zip(self.cases, inputs, strict=True)]


def assert_same(name, ours, theirs):
    assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape), name
    if theirs.dtype.name not in TOLERANCES:
        np.testing.assert_array_equal(ours, theirs, err_msg=name)
        return
    tolerance = TOLERANCES[theirs.dtype.name]
    ours, theirs = ours.astype("float64"), theirs.astype("float64")
    scale = np.abs(theirs[np.isfinite(theirs)]).max(initial=1)
    np.testing.assert_allclose(ours, theirs, tolerance, tolerance * scale, err_msg=name)


@pytest.mark.parametrize("theme", THEMES)
def test_operators_compute_what_pytorch_does(theme, run):
    cases = THEMES[theme]()
    inputs = [case.inputs for case in cases]
    network = load_network(Together(cases), example_inputs=(inputs,))
    outputs = iter(run(network, network.examples))
    for case in cases:
        for theirs in pytree.tree_leaves(case.expected()):
            name = f"{case.operator} of {[tuple(x.shape) for x in case.inputs]}"
            assert_same(name, next(outputs), to_numpy(theirs))
    assert next(outputs, None) is None


SIZES = st.integers(1, 9)


@settings(
    max_examples=4, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    image=st.tuples(st.integers(1, 3), SIZES, SIZES),
    size=st.tuples(SIZES, SIZES),
    kernel=st.integers(1, 3),
    stride=st.integers(1, 3),
    data=st.data(),
)
def test_windows_and_places_of_any_size(image, size, kernel, stride, data, run):
    """Pooling, resizing and indexing, where the last windows and negative places are."""
    x = torch.randn(1, *image)
    _, height, width = image
    kernel = min(kernel, height, width)
    padding = data.draw(st.integers(0, kernel // 2))
    rows = data.draw(st.lists(st.integers(-height, height - 1), min_size=1, max_size=4))
    index = torch.tensor(rows)
    pool = {"kernel_size": kernel, "stride": stride, "padding": padding, "ceil_mode": True}

    class All(nn.Module):
        def forward(self, x, index):
            return (
                F.avg_pool2d(x, **pool),
                F.max_pool2d(x, **pool, return_indices=True),
                F.adaptive_avg_pool2d(x, size),
                F.adaptive_max_pool2d(x, size, return_indices=True),
                F.interpolate(x, size=size),
                F.interpolate(x, size=size, mode="bilinear"),
                x[:, :, index],
                x[:, 0, index, -1],
                x.index_put((torch.tensor(0), torch.tensor(0), index), x[0, 0, :1]),
                x.cumsum(2),
                x.roll(stride, 2),
            )

    network = load_network(All(), example_inputs=(x, index))
    outputs = run(network, network.examples)
    expected = pytree.tree_leaves(All()(x, index))
    for number, (ours, theirs) in enumerate(zip(outputs, expected, strict=True)):
        assert_same(str(number), ours, to_numpy(theirs))


@settings(
    max_examples=2, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    extents=st.tuples(st.integers(1, 3), st.integers(2, 6), st.integers(1, 7), st.integers(1, 7)),
    kernel=st.integers(1, 3),
    stride=st.integers(1, 3),
    number=st.floats(-2, 2, width=32),
    divisor=st.sampled_from([-3, 2, 5]),
    data=st.data(),
)
def test_products_and_numbers_of_any_size(extents, kernel, stride, number, divisor, data, run):
    """Each other operator that TVM's own converter is replaced for."""
    _, channels, height, width = extents
    place = data.draw(st.integers(-channels, channels - 1))
    groups = data.draw(st.sampled_from([g for g in (1, 2, 3) if channels % g == 0]))
    x = torch.randn(extents)
    whole = torch.randint(-9, 9, (channels, width))
    grid = torch.rand(extents[0], 3, 2, 2) * 2.4 - 1.2
    convolution = nn.Conv2d(channels, 2 * groups, kernel, stride, kernel - 1, groups=groups)
    transposed = nn.ConvTranspose2d(channels, 3, kernel, stride)
    halves = nn.Linear(width, 3).half()

    class All(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList([convolution, transposed, halves])

        def forward(self, x, whole, grid):
            return (
                convolution(x),
                transposed(x),
                halves(x.half()),
                whole @ whole.T,
                x @ x.mT,
                whole * number,
                whole / divisor,
                torch.div(whole, divisor, rounding_mode="floor"),
                torch.div(whole, divisor, rounding_mode="trunc"),
                whole >= number,
                whole.clamp(min=divisor),
                F.selu(x),
                (whole > 0).cumsum(1),
                x.select(1, place),
                x[:, place],
                torch.zeros_like(whole).scatter_add(1, whole % width, whole),
                F.grid_sample(x, grid, align_corners=False),
                F.interpolate(x[:, :, 0], size=2 * width, mode="linear"),
                F.instance_norm(x) if height * width > 1 else x,
            )

    module = All().eval()
    network = load_network(module, example_inputs=(x, whole, grid))
    outputs = run(network, network.examples)
    expected = pytree.tree_leaves(module(x, whole, grid))
    for i, (ours, theirs) in enumerate(zip(outputs, expected, strict=True)):
        assert_same(str(i), ours, to_numpy(theirs.detach()))


class Random(nn.Module):
    def forward(self, x):
        return x + torch.rand_like(x)


class Places(nn.Module):
    def forward(self, x):
        return x.nonzero().sum()


@pytest.mark.parametrize("aligned", [False, True])
def test_regions_are_read_as_torchvision_reads_them(aligned, run):
    ops = pytest.importorskip("torchvision.ops")
    regions = torch.tensor([[0, 1.0, 1.0, 9.0, 9.0], [1, 2.0, 3.0, 12.0, 10.0]])
    image, module = torch.randn(2, 3, 16, 16), ops.RoIAlign((3, 4), 0.5, 2, aligned)
    network = load_network(module, example_inputs=(image, regions))
    (ours,) = run(network, network.examples)
    assert_same("roi_align", ours, to_numpy(module(image, regions)))


class HeldTwice(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("total", torch.zeros(4))
        self.__dict__["same"] = self.total

    def forward(self, x):
        self.same.add_(x)
        return self.same * 2


class Rolled(nn.Module):
    def forward(self, x):
        return x.roll((1, -2), (1, 2))


def test_what_is_rolled_is_cut_and_joined_and_not_looked_up():
    script = load_network(Rolled(), example_inputs=(torch.rand(1, 4, 5, 3),)).mod.script()
    assert "R.concat" in script
    assert "R.take" not in script


def test_a_buffer_that_an_attribute_holds_too_is_state():
    x = torch.ones(4)
    network = load_network(HeldTwice(), example_inputs=(x,))
    assert [spec.name for spec in network.interface.state] == ["total"]
    with pytest.raises(UnsupportedModelError, match="holds the buffer 'total' once more"):
        load_network(torch.export.export(HeldTwice(), (x,)))


class Found(nn.Module):
    def forward(self, x):
        return x, x[x > 0]


def test_an_output_of_no_fixed_shape_is_named():
    with pytest.raises(UnsupportedModelError, match="the shape of output1 depends on data"):
        load_network(Found(), example_inputs=(torch.ones(4),))


@pytest.mark.parametrize(
    ("module", "operators", "message"),
    [
        (Random(), ("aten.rand_like",), "is random: call eval()"),
        (Places(), ("aten.nonzero",), "the shape of its result depends on data"),
    ],
)
def test_what_is_not_supported_is_named(module, operators, message):
    with pytest.raises(UnsupportedModelError, match="aten") as caught:
        load_network(module, example_inputs=(torch.ones(4),))
    assert set(operators) <= set(caught.value.operators)
    assert message in str(caught.value)
