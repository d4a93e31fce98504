"""Sums of many numbers, which keep their digits."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
import torch
from torch import nn

from costlib.hardware import Hardware
from costlib.tuning.check import run
from costlib.tuning.library import NetworkLibrary
from costlib.tvm_compat import relax, tvm
from costlib.workloads import Network, extract_tasks, load_network, prepare_network


class Reduced(nn.Module):
    def __init__(self, name: str, axes: Sequence[int] | None, *, kept: bool) -> None:
        super().__init__()
        self.name, self.axes, self.kept = name, axes, kept

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        reduced = getattr(x, self.name)
        result: torch.Tensor = reduced(self.axes, keepdim=self.kept) if self.axes else reduced()
        return result


def network_of(
    shape: Sequence[int], axes: Sequence[int] | None, name: str = "mean", kept: bool = False
) -> Network:
    module = Reduced(name, axes, kept=kept)
    return load_network(torch.export.export(module, (torch.randn(*shape),)))


def outputs(network: Network, hardware: Hardware, x: np.ndarray) -> np.ndarray:
    module = NetworkLibrary.build(prepare_network(network, hardware), hardware).module
    (result,) = run(relax.VirtualMachine(module, tvm.cpu()), [x])
    return result


@pytest.mark.parametrize(
    ("shape", "axes"),
    [
        ((2, 3, 56, 56), (2, 3)),
        ((1, 112, 112, 8), (1, 2)),
        ((1, 3000, 16), (1,)),
        ((5, 4096), (1,)),
        ((40, 50), None),
    ],
)
@pytest.mark.parametrize("name", ["mean", "sum"])
@pytest.mark.parametrize("kept", [False, True])
def test_alike_numbers_keep_their_digits(
    shape: Sequence[int], axes: Sequence[int] | None, name: str, kept: bool, hardware: Hardware
) -> None:
    x = np.random.default_rng(0).uniform(33.1, 33.2, shape).astype("float32")
    network = network_of(shape, axes, name, kept)
    expected = getattr(x.astype("float64"), name)(axis=axes, keepdims=kept and axes is not None)
    found = outputs(network, hardware, x)
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=2e-6)


@pytest.mark.parametrize(
    ("shape", "axes", "count"),
    [
        ((2, 3, 56, 56), (2, 3), 2),
        ((2, 3, 31, 31), (2, 3), 1),
        ((1, 1, 4096), (1, 2), 2),
        ((4, 1031), (1,), 1),
        ((4, 2 * 1031), (1,), 1),
        ((1, 20, 2048), (1, 2), 3),
    ],
)
def test_what_is_summed_in_groups(
    shape: Sequence[int],
    axes: Sequence[int],
    count: int,
    check: Callable[[Network], None],
    hardware: Hardware,
) -> None:
    network = network_of(shape, axes)
    check(network)
    kernels = [t for t in extract_tasks(network, hardware) if t.title.startswith("mean")]
    assert len(kernels) == count


def test_on_a_gpu_threads_sum_up_parts_as_it_is() -> None:
    tasks = extract_tasks(network_of((2, 3, 56, 56), (2, 3)), Hardware.cuda("sm_80"))
    assert len(tasks) == 1


def test_integers_are_exact_as_they_are(hardware: Hardware) -> None:
    exported = torch.export.export(
        Reduced("sum", (1,), kept=False), (torch.ones(3, 2048, dtype=torch.int64),)
    )
    assert len(extract_tasks(load_network(exported), hardware)) == 1
