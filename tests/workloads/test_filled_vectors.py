"""Weights filled up to whole vectors: which of them are, and that all compute the same."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Sequence

import numpy as np
import pytest
import torch
from torch import nn

from costlib.hardware import Hardware, find_hardware
from costlib.measure.jobs import allocate
from costlib.space.design_space import DesignSpace
from costlib.tuning.check import check
from costlib.tvm_compat import tvm
from costlib.tvm_compat.api import argument_shapes
from costlib.workloads import Network, Task, extract_tasks, load_network
from costlib.workloads.variants import varied

PROGRAMS = 6


class Product(nn.Module):
    """With what is fused into it."""

    def __init__(self, *weight: int) -> None:
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.randn(*weight)), torch.randn(weight[-1])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x @ self.weight + self.bias)


def product(x: Sequence[int], weight: Sequence[int]) -> Network:
    return load_network(torch.export.export(Product(*weight), (torch.randn(*x),)))


def over_volumes(outputs: int) -> Network:
    layer = nn.Conv3d(8, outputs, 3, padding=1)
    exported = torch.export.export(nn.Sequential(layer, nn.ReLU()), (torch.randn(2, 8, 3, 7, 9),))
    return varied(load_network(exported), "nhwc")


def convolution(outputs: int, layout: str = "nhwc", groups: int = 1, stride: int = 1) -> Network:
    layer = nn.Conv2d(8, outputs, 3, groups=groups, stride=stride, padding=1)
    exported = torch.export.export(nn.Sequential(layer, nn.ReLU()), (torch.randn(2, 8, 7, 9),))
    network = load_network(exported)
    return varied(network, layout) if layout != "nchw" else network


def with_lanes(lanes: int) -> Hardware:
    return Hardware.local(num_cores=1).model_copy(update={"vector_bits": 32 * lanes})


def heavy(network: Network, hardware: Hardware) -> Task:
    tasks = extract_tasks(network, hardware)
    return next(task for task in tasks if re.search("matmul|conv[23]d", task.name))


def weight(task: Task) -> tuple[int, ...]:
    return task.arguments[1][1]


@pytest.mark.parametrize(
    ("x", "shape", "filled"),
    [
        ((6, 12), (12, 20), (12, 32)),
        ((1, 12), (12, 33), (12, 48)),
        ((2, 5, 12), (12, 17), (12, 32)),
        ((3, 4, 6), (3, 6, 18), (3, 6, 32)),
        ((3, 4, 6), (1, 6, 18), (1, 6, 32)),
    ],
)
def test_products(x: Sequence[int], shape: Sequence[int], filled: Sequence[int]) -> None:
    network, hardware = product(x, shape), with_lanes(16)
    found = check(network, hardware=hardware)
    assert found.status == "right", found.reason
    task = heavy(network, hardware)
    assert weight(task) == filled
    assert task.arguments[-1][1] == (*x[:-1], shape[-1])
    assert f"×{shape[-1]} + add + relu" in task.title


@pytest.mark.parametrize("stride", [1, 2])
def test_convolutions(stride: int) -> None:
    network, hardware = convolution(20, stride=stride), with_lanes(16)
    found = check(network, hardware=hardware)
    assert found.status == "right", found.reason
    task = heavy(network, hardware)
    assert weight(task) == (32, 3, 3, 8)
    assert task.title.startswith("conv2d 2×7×9×8 → 2×")
    assert "×20, 3×3 NHWC + add + relu" in task.title


def test_convolutions_of_volumes() -> None:
    network, hardware = over_volumes(20), with_lanes(16)
    found = check(network, hardware=hardware)
    assert found.status == "right", found.reason
    task = heavy(network, hardware)
    assert weight(task) == (32, 3, 3, 3, 8)
    assert task.title.startswith("conv3d 2×3×7×9×8 → 2×3×7×9×20, 3×3×3 NDHWC + add + relu")


@pytest.mark.parametrize(
    ("made", "lanes", "kept"),
    [
        pytest.param(lambda: product((6, 12), (12, 32)), 16, (12, 32), id="full vectors"),
        pytest.param(lambda: product((6, 12), (12, 12)), 16, (12, 12), id="less than a vector"),
        pytest.param(lambda: product((6, 12), (12, 20)), 4, (12, 20), id="full with fewer lanes"),
        pytest.param(lambda: product((3, 1, 4, 6), (2, 6, 18)), 16, (2, 6, 18), id="some axes"),
        pytest.param(
            lambda: convolution(20, layout="nchw"), 16, (20, 8, 3, 3), id="channels first"
        ),
        pytest.param(lambda: convolution(20, groups=2), 16, (20, 3, 3, 4), id="groups"),
    ],
)
def test_the_others_stay_as_they_are(
    made: Callable[[], Network], lanes: int, kept: Sequence[int]
) -> None:
    assert weight(heavy(made(), with_lanes(lanes))) == kept


def test_not_for_a_gpu() -> None:
    assert weight(heavy(product((6, 12), (12, 20)), find_hardware("cuda:sm_80"))) == (12, 20)


@pytest.mark.parametrize("made", [lambda: product((9, 12), (12, 50)), lambda: convolution(20)])
def test_programs_compute_the_same(made: Callable[[], Network]) -> None:
    task = heavy(made(), with_lanes(16))
    drawn = (schedule.mod for _, schedule in DesignSpace(task).sample(0) if schedule is not None)
    outputs = []
    for mod in (task.mod, *itertools.islice(drawn, PROGRAMS)):
        given = allocate(argument_shapes(task.mod), tvm.cpu())
        for argument in given[:-1]:
            rng = np.random.default_rng(0)
            argument.copyfrom(rng.standard_normal(argument.shape).astype("float32"))
        tvm.build(mod, target=task.tvm_target())["main"](*given)
        outputs.append(given[-1].numpy())
    assert len(outputs) == PROGRAMS + 1
    for output in outputs[1:]:
        np.testing.assert_allclose(output, outputs[0], rtol=1e-4, atol=1e-4)
