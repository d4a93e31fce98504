from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import nn

from costlib.canary_times import CanaryTimes
from costlib.errors import InputError, TargetError
from costlib.hardware import Hardware
from costlib.measure.measurer import Measurer
from costlib.tuning.check import check
from costlib.tuning.library import NetworkLibrary
from costlib.tuning.originals import call_library
from costlib.workloads import extract_tasks, load_network, prepare_network
from costlib.workloads.half_precision import SHORT, HalfFormat, _rounded_array
from costlib.workloads.variants import varied, with_dtype, with_weights

TYPES: tuple[HalfFormat, ...] = ("bfloat16", "float16")
FEW = settings(
    deadline=None,
    max_examples=2,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


class Twice(nn.Module):
    """Two layers with a norm before them, an activation between them and a residual."""

    def __init__(self, inputs: int, inner: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(inputs)
        self.first, self.second = nn.Linear(inputs, inner), nn.Linear(inner, inputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.second(torch.relu(self.first(self.norm(x))))


@FEW
@given(st.sampled_from(TYPES), st.integers(2, 40), st.integers(1, 40), st.integers(1, 3))
def test_computes_what_the_rounded_network_does(
    hardware: Hardware, dtype: HalfFormat, inputs: int, inner: int, rows: int
) -> None:
    network = load_network(Twice(inputs, inner), example_inputs=(torch.randn(rows, inputs),))
    found = check(with_dtype(network, dtype), hardware=hardware)
    assert found.status == "right", found.reason
    assert found.rounding_error is not None and found.outputs[0].dtype == "float32"


@pytest.mark.parametrize(
    "source", ["conv2d 1 6 7 7 20 3 pad=1 bias=1 relu=1", "conv2d_transpose 1 4 5 5 6 3 stride=2"]
)
def test_a_convolution_is_the_same_product(hardware: Hardware, source: str) -> None:
    found = check(f"{source}+bf16", hardware=hardware)
    assert found.status == "right", found.reason
    assert found.rounding_error is not None and found.max_abs_error is not None
    assert found.max_abs_error < 1e-2 * found.rounding_error


@pytest.mark.parametrize("dtype", TYPES)
def test_a_network_that_is_stored_so(hardware: Hardware, dtype: HalfFormat) -> None:
    kind = getattr(torch, dtype)
    module = nn.Sequential(nn.Linear(24, 40), nn.ReLU(), nn.Linear(40, 10)).to(kind)
    network = load_network(module, example_inputs=(torch.randn(3, 24, dtype=kind),))
    assert network.precision == dtype
    found = check(network, hardware=hardware)
    assert found.status == "right", found.reason
    types = {d for task in extract_tasks(network, hardware) for d, _ in task.arguments[:2]}
    assert types == {dtype}, "weights are kept in their type"


def test_weights_take_half_the_memory_and_norms_stay_wide(hardware: Hardware) -> None:
    network = load_network(Twice(32, 48), example_inputs=(torch.randn(2, 32),))
    tasks = extract_tasks(varied(network, "bf16"), hardware)
    products = [task for task in tasks if task.name.startswith("matmul")]
    assert all(task.arguments[1][0] == "bfloat16" for task in products) and len(products) == 2
    norm = next(task for task in tasks if "norm" in task.name)
    assert norm.arguments[0][0] == "float32"


def test_older_processors_expand_what_they_load() -> None:
    level = Hardware.local(mcpu="x86-64-v2")
    assert check("dense 3 20 30 bias=1+bf16", hardware=level).status == "right"
    with pytest.raises(TargetError, match="needs the instructions of F16C") as error:
        prepare_network(load_network("dense 3 20 30+f16"), level)
    assert "\n" not in str(error.value)


def test_few_bits_or_half_of_them() -> None:
    network = load_network("dense 3 20 30")
    for once, twice in ((with_weights, with_dtype), (with_dtype, with_weights)):
        first = "int8" if once is with_weights else "bfloat16"
        second = "bfloat16" if first == "int8" else "int8"
        with pytest.raises(InputError, match="choose one of int8 and bfloat16"):
            twice(once(network, first), second)  # type: ignore[arg-type]


def test_a_name_says_so() -> None:
    for dtype, short in SHORT.items():
        network = load_network(f"dense 3 20 30+{short}")
        assert (network.name, network.dtype) == (f"dense 3 20 30+{short}", dtype)
        assert with_dtype(network, dtype) is network
        assert with_dtype(network, None) is network
        assert np.dtype("float32") == network.random_inputs(0)[0].dtype


@pytest.mark.parametrize(
    ("value", "rounded"),
    [(1.0, 1.0), (1 + 2**-11, 1 + 2**-10), (1 + 2**-12, 1.0), (-1 - 2**-11, -1 - 2**-10)],
)
def test_tf32_keeps_ten_bits(value: float, rounded: float) -> None:
    array = np.array([value, np.inf, -np.inf, np.nan, 0.0], "float32")
    found = _rounded_array(array, "tf32")
    assert found[0] == np.float32(rounded)
    np.testing.assert_array_equal(found[1:], array[1:])


def test_a_network_in_tf32_computes_on_a_cpu_what_the_rounded_one_does(tmp_path: Path) -> None:
    network = with_dtype(load_network("dense 8 32 16 bias=1"), "tf32")
    prepared = prepare_network(network, Hardware.cuda("sm_80"))
    here = Hardware.local()
    expected = prepare_network(network, here, in_float=True)
    found = []
    (inputs,) = network.random_inputs(0)
    for number, module in enumerate((prepared, expected)):
        path = NetworkLibrary.build(module, here).save(tmp_path / f"{number}.so")
        with Measurer(here, reference=CanaryTimes(compute_s=1e-3, memory_s=1e-3)) as measurer:
            found.append(call_library(path, [inputs], measurer)[0][0])
    np.testing.assert_allclose(found[0], found[1], rtol=1e-6)
    exact = network.reference([inputs])[0]
    assert 1e-6 < np.abs(found[0] - exact).max() / np.abs(exact).max() < 5e-3
