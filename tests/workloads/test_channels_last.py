"""Channels stay last through what TVM carries no layout over to, whatever the dimensions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from costlib.hardware import Hardware
from costlib.tvm_compat import relax, tvm
from costlib.workloads import Network, extract_tasks, load_network
from costlib.workloads.channels_last import channels_stay_last, to_first, to_last
from costlib.workloads.layout import CHANNELS_LAST, in_layout
from costlib.workloads.network import InputSpec


class Between(nn.Module):
    """Two convolutions with something between them."""

    def __init__(self, dimensions: int, between: Callable[[torch.Tensor], Any], inner: int) -> None:
        super().__init__()
        convolution: Any = getattr(nn, f"Conv{dimensions}d")
        self.first, self.second = convolution(3, 8, 3), convolution(inner, 4, 1)
        self.between = between

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.as_tensor(self.second(self.between(self.first(x))))


def pooled(kind: str, dimensions: int, x: torch.Tensor) -> Any:
    return getattr(nn.functional, f"{kind}_pool{dimensions}d")(x, 3, stride=2, padding=1)


BETWEEN: dict[str, tuple[Callable[[int, torch.Tensor], Any], int]] = {
    "activation": (lambda _, x: nn.functional.leaky_relu(x, 0.2), 8),
    "max pool": (lambda n, x: pooled("max", n, x), 8),
    "average pool": (lambda n, x: pooled("avg", n, x), 8),
    "padding": (lambda n, x: nn.functional.pad(x, (1, 2) * n).exp(), 8),
    "concatenation": (lambda _, x: torch.cat([x, x.sin()], 1), 16),
    "mean": (lambda n, x: x * x.mean(tuple(range(2, n + 2)), keepdim=True), 8),
    "resized to the nearest": (lambda _, x: nn.functional.interpolate(x, scale_factor=2), 8),
    "resized": (
        lambda n, x: nn.functional.interpolate(
            x, scale_factor=2, mode=("linear", "bilinear", "trilinear")[n - 1]
        ),
        8,
    ),
    "half of the channels": (lambda _, x: x.chunk(2, 1)[1], 4),
    "part of an image": (lambda _, x: x[..., 1:-1:2], 8),
    "shuffled channels": (
        lambda _, x: x.unflatten(1, (2, 4)).transpose(1, 2).flatten(1, 2),
        8,
    ),
    "a number of each channel": (
        lambda n, x: x.clamp(-1, 1) * torch.arange(8.0).reshape(8, *(1,) * n),
        8,
    ),
}


SHUFFLE = "reshape_transpose_reshape"
"""What a shuffle of channels is called, wherever they are."""

CASES = [
    (name, dimensions)
    for name in BETWEEN
    for dimensions in (1, 2, 3)
    if dimensions > 1 or "pool" not in name  # PyTorch exports those of one dimension as of two.
]


@pytest.mark.parametrize(("name", "dimensions"), CASES)
def test_images_are_permuted_at_the_ends_alone(
    name: str, dimensions: int, check: Callable[[Network], None], hardware: Hardware
) -> None:
    torch.manual_seed(0)
    what, inner = BETWEEN[name]
    module = Between(dimensions, lambda x: what(dimensions, x), inner).eval()
    shape = (2, 3, 9, 8, 7)[: dimensions + 2]
    network = in_layout(load_network(module, (InputSpec("x", "float32", shape),)), CHANNELS_LAST)
    names = [task.name for task in extract_tasks(network, hardware) for _ in range(task.weight)]
    permuting = [name for name in names if "transpose" in name.replace(SHUFFLE, "")]
    assert set(permuting) <= {"transpose"}
    assert len(permuting) <= 2
    check(network)


def test_pools_of_one_dimension(run: Callable[..., Any], hardware: Hardware) -> None:
    """As ONNX has them."""
    rng = np.random.default_rng(0)
    first, second = (rng.standard_normal(n).astype("float32") for n in ((8, 3, 3), (4, 8, 1)))
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((2, 3, 12), "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            y = builder.emit(relax.op.nn.conv1d(x, relax.const(first)))
            y = builder.emit(relax.op.nn.max_pool1d(y, 3, 2, (1, 0)))
            y = builder.emit(relax.op.nn.avg_pool1d(y, 2, 1, (1, 1), count_include_pad=True))
            result = builder.emit_output(relax.op.nn.conv1d(y, relax.const(second)))
        builder.emit_func_output(result)
    given = load_network(builder.get())
    last = in_layout(given, CHANNELS_LAST)
    pools = [task for task in extract_tasks(last, hardware) if "pool" in task.name]
    assert [task.arguments[0][1][-1] for task in pools] == [8, 8]
    inputs = given.random_inputs(0)
    np.testing.assert_allclose(run(last, inputs)[0], run(given, inputs)[0], atol=1e-5)


def test_what_is_looked_up_in_a_list_is_no_image() -> None:
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((1, 6, 5), "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            listed = builder.emit(relax.op.permute_dims(x, to_first(3)))
            places = relax.const(np.array([[0, 4], [2, 1], [3, 3]]))
            result = builder.emit_output(relax.op.take(listed, places, 1, "clip"))
        builder.emit_func_output(result)
    mod = builder.get()
    tvm.ir.assert_structural_equal(channels_stay_last(mod, [4]), mod)


@pytest.mark.parametrize("rank", [3, 4, 5])
def test_permutations_there_and_back(rank: int) -> None:
    axes = list(range(rank))
    there = [axes[axis] for axis in to_last(rank)]
    assert there == [0, *axes[2:], 1]
    assert [there[axis] for axis in to_first(rank)] == axes
