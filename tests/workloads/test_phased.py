from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from costlib.hardware import Hardware
from costlib.workloads import Network, extract_tasks, load_network
from costlib.workloads.layout import CHANNELS_LAST, in_layout
from costlib.workloads.network import InputSpec

Case = tuple[Callable[[], nn.Module], tuple[int, ...]]

BY_PHASE: dict[str, Case] = {
    "usual": (lambda: nn.ConvTranspose2d(3, 8, 4, stride=2, padding=1), (2, 3, 7, 6)),
    "output padding": (
        lambda: nn.ConvTranspose2d(4, 16, 3, stride=2, padding=1, output_padding=1),
        (1, 4, 5, 8),
    ),
    "nothing overlaps": (lambda: nn.ConvTranspose2d(4, 8, 2, stride=2), (1, 4, 5, 5)),
    "gaps": (lambda: nn.ConvTranspose2d(4, 8, 2, stride=3, output_padding=1), (1, 4, 5, 5)),
    "unlike axes": (
        lambda: nn.ConvTranspose2d(4, 8, (5, 6), stride=(1, 3), padding=(2, 0)),
        (1, 4, 6, 5),
    ),
    "all of the last phases": (
        lambda: nn.ConvTranspose2d(4, 8, 5, stride=2, padding=2, output_padding=1),
        (1, 4, 3, 9),
    ),
    "one input": (lambda: nn.ConvTranspose2d(20, 8, 4), (2, 20, 1, 1)),
    "one input, padded": (lambda: nn.ConvTranspose2d(20, 8, 5, stride=3, padding=1), (1, 20, 1, 1)),
    "uneven moves": (lambda: nn.ConvTranspose2d(4, 8, 5, stride=3, padding=1), (1, 4, 5, 5)),
    "1-D": (lambda: nn.ConvTranspose1d(4, 8, 16, stride=8, padding=4), (2, 4, 9)),
}
NOT_BY_PHASE: dict[str, Case] = {
    "phases of unlike sizes": (lambda: nn.ConvTranspose2d(4, 8, 3, stride=2), (1, 4, 5, 5)),
    "inputs that nothing reads": (
        lambda: nn.ConvTranspose2d(4, 8, 4, stride=2, padding=5),
        (1, 4, 9, 9),
    ),
    "few outputs": (lambda: nn.ConvTranspose2d(4, 3, 4, stride=2, padding=1), (1, 4, 5, 5)),
    "groups": (lambda: nn.ConvTranspose2d(4, 8, 4, stride=2, padding=1, groups=2), (1, 4, 5, 5)),
    "dilation": (
        lambda: nn.ConvTranspose2d(4, 8, 2, stride=2, dilation=3, output_padding=1),
        (1, 4, 6, 6),
    ),
}


BY_PHASE_NAME = re.compile(r"conv[12]d_transpose_add_leaky_relu\d*")


def loaded(case: Case) -> Network:
    """Return a network of the module and an activation, its channels last."""
    make, shape = case
    torch.manual_seed(0)
    module: Any = nn.Sequential(make(), nn.LeakyReLU(0.2)).eval()
    return in_layout(load_network(module, (InputSpec("x", "float32", shape),)), CHANNELS_LAST)


def kernels(network: Network, hardware: Hardware) -> list[str]:
    return [task.name for task in extract_tasks(network, hardware)]


@pytest.mark.parametrize("case", BY_PHASE.values(), ids=BY_PHASE)
def test_computes_the_same(
    case: Case, check: Callable[[Network], None], hardware: Hardware
) -> None:
    network = loaded(case)
    assert any(BY_PHASE_NAME.fullmatch(name) for name in kernels(network, hardware))
    check(network)


@pytest.mark.parametrize("case", NOT_BY_PHASE.values(), ids=NOT_BY_PHASE)
def test_others_are_computed_as_with_channels_first(
    case: Case, check: Callable[[Network], None], hardware: Hardware
) -> None:
    network = loaded(case)
    check(network)
    shapes = [shape for task in extract_tasks(network, hardware) for _, shape in task.arguments]
    assert max(map(len, shapes)) == 4


def test_a_network_of_them_alone_gets_channels_last(hardware: Hardware) -> None:
    network = load_network("dcgan")
    names = [task.name for task in extract_tasks(network, hardware, layouts="channels-last")]
    assert sum(name.startswith("conv2d_transpose_add_relu") for name in names) >= 3


def test_multiplies_with_no_zeros(hardware: Hardware) -> None:
    def flops(source: str) -> float:
        return sum(task.flops for task in extract_tasks(source, hardware) if "conv" in task.name)

    by_phase = flops("conv2d_transpose 1 16 16 16 8 4 stride=2 pad=1+nhwc")
    assert by_phase == pytest.approx(2 * 32 * 32 * 8 * 16 * 2 * 2, rel=0.01)
    assert by_phase < flops("conv2d_transpose 1 16 16 16 8 4 stride=2 pad=1")
