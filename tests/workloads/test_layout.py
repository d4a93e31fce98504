from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator

import numpy as np
import pytest
import torch
from torch import nn

from costlib.errors import UnsupportedModelError
from costlib.hardware import Hardware
from costlib.tuning.networks import NetworkSet
from costlib.tvm_compat import relax
from costlib.workloads import Network, extract_tasks, load_network, zoo
from costlib.workloads.variants import varied

pytestmark = pytest.mark.usefixtures("small_networks")

SMALL = ("conv2d 1 16 14 14 32 3 pad=1", "grouped_conv2d 1 16 14 14 16 3 16", "small_resnet@r32")
UNEVEN = (
    "conv2d 2 16 15 14 32 3 stride=2 pad=1",
    "dilated_conv2d 1 16 12 12 24 3 2 pad=2",
    "grouped_conv2d 1 32 8 8 48 3 2 pad=1",
    "grouped_conv2d 1 32 8 8 16 3 4",
)


@pytest.fixture(scope="module", autouse=True)
def networks_are_loaded_once() -> Iterator[None]:
    """In whichever layout they are wanted."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(zoo, "build_network", functools.cache(zoo.build_network))
        yield


@pytest.mark.parametrize(
    ("source", "layout"),
    [(SMALL[0], "nhwc"), (SMALL[1], "nhwc"), (SMALL[2], "nchw8c")],
)
def test_computes_the_same(source: str, layout: str, check: Callable[[Network], None]) -> None:
    network = load_network(f"{source}+{layout}")
    assert network.name == f"{source}+{layout}"
    assert network.inputs == load_network(source).inputs
    check(network)


@pytest.mark.parametrize("source", UNEVEN)
def test_blocked_convolutions(
    source: str, check: Callable[[Network], None], hardware: Hardware
) -> None:
    network = load_network(f"{source}+nchw8c")
    (convolution,) = (t for t in extract_tasks(network, hardware) if "transform" not in t.name)
    assert all(shape[-1] == 8 for _, shape in convolution.arguments)
    check(network)


def test_channels_that_do_not_fill_the_blocks_stay(hardware: Hardware) -> None:
    source = "conv2d 1 3 14 14 20 3"
    blocked, plain = (extract_tasks(one, hardware) for one in (f"{source}+nchw8c", source))
    assert [task.workload_id for task in blocked] == [task.workload_id for task in plain]


@pytest.mark.parametrize("layout", ["nhwc", "nchw8c"])
def test_converted_only_at_the_ends_and_norms_folded(layout: str, hardware: Hardware) -> None:
    source = f"small_resnet@r32+{layout}"
    tasks = extract_tasks(source, hardware)
    convolutions = [task for task in tasks if task.name.startswith("conv2d")]
    between = [task for task in tasks if "trans" in task.name]
    assert len(convolutions) > 5
    assert {task.name for task in convolutions} <= {
        "conv2d_add",
        "conv2d_add_relu",
        "conv2d_add_add_relu",
    }
    assert sum(task.weight for task in between) <= 3
    assert all(task.source == source for task in tasks)


def test_a_run_tries_them(hardware: Hardware) -> None:
    source = "conv2d 1 16 14 14 32 3 pad=1"
    networks = NetworkSet.load([source], hardware, layouts="all").networks
    names = [network.name for network in networks]
    assert names == [source, f"{source}+nhwc", f"{source}+nchw{hardware.vector_bits // 32}c"]
    matmul = NetworkSet.load(["matmul 16 16 16"], hardware, layouts="all").networks
    assert len(matmul) == 1


@pytest.mark.parametrize(
    ("source", "shapes"),
    [
        ("conv1d 2 6 30 20 3 stride=2 pad=1", [(2, 30, 6), (20, 3, 6), (2, 15, 20)]),
        (
            "conv3d 2 6 4 7 8 16 3 stride=2 pad=1",
            [(2, 4, 7, 8, 6), (16, 3, 3, 3, 6), (2, 2, 4, 4, 16)],
        ),
    ],
)
def test_convolutions_in_1_d_and_3_d_are_tried_with_channels_last(
    source: str,
    shapes: list[tuple[int, ...]],
    hardware: Hardware,
    check: Callable[[Network], None],
) -> None:
    networks = NetworkSet.load([source], hardware, layouts="all").networks
    assert [network.name for network in networks] == [source, f"{source}+nhwc"]
    tasks = extract_tasks(networks[1], hardware)
    (convolution,) = (task for task in tasks if task.name.startswith("conv"))
    assert [shape for _, shape in convolution.arguments] == shapes
    check(networks[1])


def test_a_tensor_is_converted_once_for_all_that_read_it(
    hardware: Hardware, check: Callable[[Network], None]
) -> None:
    class Two(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.one, self.other = nn.Conv2d(6, 4, 1), nn.Conv2d(6, 4, 3, padding=1)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.one(x).relu() + self.other(x)

    network = load_network(torch.export.export(Two(), (torch.randn(1, 6, 5, 7),)))
    other = varied(network, "nhwc")
    tasks = extract_tasks(other, hardware)
    readers = [task.weight for task in tasks if task.arguments[0][1] == (1, 6, 5, 7)]
    assert readers == [1]
    check(other)


def test_a_layout_that_tvm_cannot_convert_to_is_left_out(
    hardware: Hardware, caplog: pytest.LogCaptureFixture
) -> None:
    source = "small_convnext@r32"
    with pytest.raises(UnsupportedModelError, match=r"small_convnext@r32\+nchw8c: TVM cannot"):
        load_network(f"{source}+nchw8c")
    networks = NetworkSet.load([source], hardware, layouts="all").networks
    assert [network.name for network in networks] == [source, f"{source}+nhwc"]
    assert re.search(rf"{source} is not tried in nchw\d+c", caplog.text)


def test_a_layout_that_cannot_hold_a_mask_is_left_out(
    hardware: Hardware, caplog: pytest.LogCaptureFixture
) -> None:
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((1, 16, 3, 3), "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            weight = relax.const(np.ones((16, 16, 1, 1), "float32"))
            y = builder.emit(relax.op.nn.conv2d(x, weight))
            mask = builder.emit(relax.op.greater(y, relax.const(0.0)))
            masked = relax.op.where(mask, y, relax.op.multiply(y, relax.const(2.0)))
            result = builder.emit_output(masked)
        builder.emit_func_output(result)
    loaded = NetworkSet.load([builder.get()], hardware, layouts="all")
    assert loaded.networks[0].name == "IRModule"
    assert len(loaded.networks) == len(loaded.prepared) == 3 - caplog.text.count("is not tried")
    assert "is not tried" in caplog.text
