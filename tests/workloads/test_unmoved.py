from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from costlib.hardware import Hardware
from costlib.workloads import Network, extract_tasks, load_network
from costlib.workloads.layout import CHANNELS_LAST, in_layout
from costlib.workloads.network import InputSpec


class ListOfPixels(nn.Module):
    """A convolution whose pixels are listed, changed, and made an image of again."""

    def __init__(self) -> None:
        super().__init__()
        self.before = nn.Conv2d(3, 8, 3, padding=1)
        self.dense = nn.Linear(8, 16)
        self.after = nn.Conv2d(16, 8, 3, padding=1, groups=8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        image = self.before(x)
        listed = self.dense(image.flatten(2).transpose(1, 2))
        again = listed.transpose(1, 2).reshape(x.shape[0], 16, *x.shape[2:])
        return torch.as_tensor(self.after(again)).flatten(2).transpose(1, 2)


class Turned(nn.Module):
    """A convolution whose rows and columns change places."""

    def __init__(self) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(3, 8, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.as_tensor(self.convolution(x)).transpose(2, 3).flatten(2).transpose(1, 2)


def moving(network: Network, hardware: Hardware) -> list[str]:
    """Return the kernels that permute what others have computed."""
    names = [task.name for task in extract_tasks(network, hardware)]
    return [name for name in names if name.startswith(("transpose", "reshape_transpose"))]


def loaded(module: nn.Module) -> Network:
    torch.manual_seed(0)
    network = load_network(module.eval(), (InputSpec("x", "float32", (2, 3, 6, 5)),))
    return in_layout(network, CHANNELS_LAST)


@pytest.mark.parametrize(("make", "moves"), [(ListOfPixels, 1), (Turned, 2)])
def test_moves_what_is_moved(
    make: Callable[[], Any], moves: int, check: Callable[[Network], None], hardware: Hardware
) -> None:
    network = loaded(make())
    assert len(moving(network, hardware)) == moves, "the input is an image with channels first"
    check(network)
