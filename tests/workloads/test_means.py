"""Means over rows: which of them are products, and that all compute the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
import torch
from torch import nn

from costlib.hardware import Hardware
from costlib.workloads import Network, extract_tasks, load_network


class Mean(nn.Module):
    def __init__(self, axes: Sequence[int] | None, *, kept: bool) -> None:
        super().__init__()
        self.axes, self.kept = axes, kept

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.mean(self.axes, keepdim=self.kept) if self.axes else x.mean()


def network_of(shape: Sequence[int], axes: Sequence[int] | None, kept: bool) -> Network:
    exported = torch.export.export(Mean(axes, kept=kept), (torch.randn(*shape),))
    return load_network(exported)


@pytest.mark.parametrize(
    ("shape", "axes"),
    [
        ((1, 12, 12, 32), (1, 2)),
        ((2, 160, 48), (1,)),
        ((130, 24), (0,)),
        ((3, 2, 9, 15, 5), (3, 2)),
    ],
)
@pytest.mark.parametrize("kept", [False, True])
def test_over_rows_it_is_a_product(
    shape: Sequence[int],
    axes: Sequence[int],
    kept: bool,
    check: Callable[[Network], None],
    hardware: Hardware,
) -> None:
    network = network_of(shape, axes, kept)
    check(network)
    (task,) = extract_tasks(network, hardware)
    assert task.title.startswith("mean")
    assert len(task.weights) == 1


@pytest.mark.parametrize(
    ("shape", "axes"),
    [((2, 32, 12, 12), (2, 3)), ((1, 5, 5, 32), (1, 2)), ((130, 24), (0, 1)), ((130, 24), None)],
)
def test_others_stay_reductions(
    shape: Sequence[int],
    axes: Sequence[int] | None,
    check: Callable[[Network], None],
    hardware: Hardware,
) -> None:
    network = network_of(shape, axes, kept=False)
    check(network)
    assert not [task for task in extract_tasks(network, hardware) if task.weights]


def test_on_a_gpu_they_stay_reductions() -> None:
    network = network_of((1, 12, 12, 32), (1, 2), kept=False)
    (task,) = extract_tasks(network, Hardware.cuda("sm_80"))
    assert not task.weights
