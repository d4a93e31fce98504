from __future__ import annotations

import pytest
import torch
from torch import nn

from costlib.hardware import Hardware
from costlib.tuning.mixing import slower_by_winograd
from costlib.tuning.networks import NetworkSet
from costlib.workloads.layout import CHANNELS_LAST, best_block
from costlib.workloads.winograd import by_winograd


@pytest.fixture(scope="module")
def networks(hardware: Hardware) -> NetworkSet:
    module = nn.Sequential(
        nn.Conv2d(32, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 64, 3, padding=1)
    ).eval()
    example = (torch.randn(1, 32, 32, 32),)
    return NetworkSet.load([module], hardware, layouts="all", example_inputs=example)


def _latencies(networks: NetworkSet, slow: tuple[int, ...]) -> list[float]:
    """A microsecond a task, but much more for convolutions, and products of one shape."""
    slow_s = {True: 1e-2, False: 1e-6}
    return [
        1e-3 if "conv2d" in task.name else slow_s[task.arguments[0][1] == slow]
        for task in networks.tasks
    ]


def test_a_convolution_stays_where_its_products_are_slower(
    networks: NetworkSet, hardware: Hardware
) -> None:
    plain = next(n for n in networks.networks if n.name.endswith(CHANNELS_LAST))
    _, kinds = by_winograd(plain.mod)
    assert len(kinds) == 2
    slow = next(kind for kind in kinds if kind.output[-1] == 64)
    latency_s = _latencies(networks, slow.transformed)
    assert slower_by_winograd(kinds, networks.tasks, latency_s) == {slow}

    mixed = networks.mixed(latency_s, hardware)
    added = [network.name for network in mixed.networks[len(networks.networks) :]]
    names = [f"{plain.name}+winograd (mixed)"]
    names += [f"Sequential+{best_block(hardware)}+winograd (mixed)"]
    assert added == names
    assert mixed.networks[mixed.fastest(latency_s)[0][0]].name in names
    number = len(networks.networks)
    called = [t.name for t, n in zip(mixed.tasks, mixed.calls[number], strict=True) if n]
    assert sum("conv2d" in name for name in called) == 1
    assert sum("winograd_input" in name for name in called) == 1


def test_nothing_is_mixed_where_one_way_is_always_faster(
    networks: NetworkSet, hardware: Hardware
) -> None:
    assert networks.mixed(_latencies(networks, ()), hardware) is networks
    fast = [1e-6 if "conv2d" in task.name else 1e-3 for task in networks.tasks]
    assert networks.mixed(fast, hardware) is networks
