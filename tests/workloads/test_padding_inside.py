from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn

from costlib.hardware import Hardware
from costlib.workloads import Network, extract_tasks, load_network
from costlib.workloads.network import InputSpec

INSIDE: dict[str, tuple[nn.Module, nn.Module, tuple[int, ...]]] = {
    "uneven": (nn.ZeroPad2d((1, 2, 0, 3)), nn.Conv2d(4, 8, 3, stride=2), (1, 4, 9, 7)),
    "with padding": (nn.ZeroPad2d(1), nn.Conv2d(4, 4, 3, 2, padding=1, groups=4), (2, 4, 5, 6)),
    "1-D": (nn.ConstantPad1d((2, 0), 0.0), nn.Conv1d(4, 8, 3), (1, 4, 9)),
    "3-D": (nn.ConstantPad3d((1, 0, 2, 3, 0, 1), 0.0), nn.Conv3d(4, 8, 3), (1, 4, 4, 5, 6)),
}
OUTSIDE: dict[str, tuple[nn.Module, nn.Module, tuple[int, ...]]] = {
    "no zeros": (nn.ConstantPad2d(1, 0.5), nn.Conv2d(4, 8, 3), (1, 4, 6, 6)),
    "reflected": (nn.ReflectionPad2d(1), nn.Conv2d(4, 8, 3), (1, 4, 6, 6)),
    "cut": (nn.ZeroPad2d((-1, 1, 0, 0)), nn.Conv2d(4, 8, 3), (1, 4, 6, 6)),
}


def loaded(pad: nn.Module, convolution: nn.Module, shape: tuple[int, ...]) -> Network:
    torch.manual_seed(0)
    module = nn.Sequential(nn.ReLU(), pad, convolution).eval()
    return load_network(module, (InputSpec("x", "float32", shape),))


def reads_padded(case: tuple[nn.Module, nn.Module, tuple[int, ...]], hardware: Hardware) -> bool:
    """Whether any kernel reads or writes the images with what is around them."""
    padded = tuple(case[0](torch.zeros(case[2])).shape)
    tasks = extract_tasks(loaded(*case), hardware)
    return any(shape == padded for task in tasks for _, shape in task.arguments)


@pytest.mark.parametrize("name", [*INSIDE, *OUTSIDE])
def test_zeros_alone_are_padding_of_the_convolution(
    name: str, check: Callable[[Network], None], hardware: Hardware
) -> None:
    case = (INSIDE | OUTSIDE)[name]
    assert reads_padded(case, hardware) == (name in OUTSIDE)
    check(loaded(*case))
