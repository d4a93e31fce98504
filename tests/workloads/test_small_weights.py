from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import nn

from costlib.hardware import Hardware
from costlib.tuning.check import check
from costlib.workloads import extract_tasks, load_network
from costlib.workloads.small_weights import WeightFormat, packed, quantised, rounded
from costlib.workloads.variants import varied, with_weights

FORMATS: tuple[WeightFormat, ...] = ("int8", "int4")
FEW = settings(
    deadline=None,
    max_examples=4,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


class Twice(nn.Module):
    """Two layers with an activation between them and a residual."""

    def __init__(self, inputs: int, inner: int) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(inputs, inner), nn.Linear(inner, inputs, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.second(torch.relu(self.first(x)))


@FEW
@given(
    st.sampled_from(FORMATS),
    st.integers(1, 40),
    st.integers(1, 40),
    st.lists(st.integers(1, 3), min_size=1, max_size=2),
)
def test_computes_what_the_rounded_network_does(
    hardware: Hardware, weights: WeightFormat, inputs: int, inner: int, leading: list[int]
) -> None:
    example = (torch.randn(*leading, inputs),)
    network = varied(load_network(Twice(inputs, inner).eval(), example_inputs=example), weights)
    found = check(network, hardware=hardware)
    assert found.status == "right", found.reason
    assert found.rounding_error is not None


@given(st.sampled_from(FORMATS), st.sampled_from([8, 32, 96]), st.integers(0, 5))
def test_rounds_to_the_nearest(weights: WeightFormat, rows: int, seed: int) -> None:
    weight = np.random.default_rng(seed).standard_normal((rows, 3)).astype("float32")
    weight[:, 1] = 0
    codes, scales = quantised(weight, weights) or pytest.fail("it makes groups")
    steps = np.repeat(scales, rows // len(scales), 0)
    assert (np.abs(rounded(weight, weights) - weight) <= 0.5001 * steps).all()
    assert np.abs(codes).max() == {"int8": 127, "int4": 7}[weights]
    assert (rounded(weight, weights)[:, 1] == 0).all()


def test_four_bits_are_packed_in_pairs_of_rows() -> None:
    codes = np.array([[-7], [7], [0], [-1]], "int8")
    both = packed(codes)
    assert both.shape == (2, 1)
    low, high = (both.astype("int32") << 28) >> 28, both.astype("int32") >> 4
    np.testing.assert_array_equal(np.stack([low, high], 1).reshape(-1, 1), codes)


@pytest.mark.parametrize("weights", FORMATS)
def test_what_follows_is_fused_and_weights_are_small(
    weights: WeightFormat, hardware: Hardware
) -> None:
    network = load_network(Twice(64, 96).eval(), example_inputs=(torch.randn(1, 64),))
    tasks = extract_tasks(with_weights(network, weights), hardware)
    assert len(tasks) == 2
    first = next(task for task in tasks if "relu" in task.name)
    rows = 64 if weights == "int8" else 32
    assert ("int8", (rows, 96)) in first.arguments
    assert f"+ {weights} weights" in first.title


def test_rows_that_make_no_groups_stay_as_they_are(hardware: Hardware) -> None:
    network = load_network(Twice(9, 8).eval(), example_inputs=(torch.randn(1, 9),))
    types = [
        dtype
        for task in extract_tasks(with_weights(network, "int4"), hardware)
        for dtype, _ in task.arguments
    ]
    assert types.count("int8") == 1
    assert check(with_weights(network, "int4"), hardware=hardware).status == "right"


def test_a_name_says_so() -> None:
    network = load_network("bert_tiny@s4+int8")
    assert (network.name, network.weights) == ("bert_tiny@s4+int8", "int8")
    assert with_weights(network, "int8") is network
    assert with_weights(network, None) is network
