from __future__ import annotations

from collections.abc import Callable

import pytest

from costlib.hardware import Hardware
from costlib.workloads import Network, extract_tasks, load_network

SMALL = ("conv2d 1 16 14 14 32 3 pad=1", "mobilenet_v2@r32", "resnet_18@r32")


@pytest.mark.parametrize("source", SMALL)
def test_computes_the_same(source: str, check: Callable[[Network], None]) -> None:
    network = load_network(f"{source}+nhwc")
    assert network.name == f"{source}+nhwc"
    assert network.inputs == load_network(source).inputs
    check(network)


@pytest.mark.parametrize("source", SMALL[1:])
def test_transposes_only_at_the_ends(source: str, hardware: Hardware) -> None:
    tasks = extract_tasks(f"{source}+nhwc", hardware)
    convolutions = [task for task in tasks if task.name.startswith("conv2d")]
    transposes = [task for task in tasks if "transpose" in task.name]
    assert len(convolutions) > 5
    assert sum(task.weight for task in transposes) <= 2
    assert all(task.source == f"{source}+nhwc" for task in tasks)
