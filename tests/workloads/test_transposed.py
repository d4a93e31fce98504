from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from costlib.hardware import Hardware
from costlib.tvm_compat import relax
from costlib.workloads import Network, extract_tasks, load_network
from costlib.workloads.network import InputSpec
from costlib.workloads.transposed import without_transposed_convolutions

Case = tuple[Callable[[], nn.Module], tuple[int, ...]]
TRANSPOSED = tuple(f"conv{dimensions}d_transpose" for dimensions in (1, 2))

REPLACED: dict[str, Case] = {
    "usual": (lambda: nn.ConvTranspose2d(3, 5, 4, stride=2, padding=1), (2, 3, 7, 6)),
    "output padding": (
        lambda: nn.ConvTranspose2d(4, 6, 3, stride=2, padding=1, output_padding=1),
        (1, 4, 5, 8),
    ),
    "unlike axes": (
        lambda: nn.ConvTranspose2d(4, 3, (5, 4), stride=(1, 3), padding=(2, 0)),
        (1, 4, 6, 5),
    ),
    "nothing to cut": (lambda: nn.ConvTranspose2d(4, 6, 2, stride=2), (1, 4, 5, 5)),
    "gaps": (lambda: nn.ConvTranspose2d(4, 6, 2, stride=3), (1, 4, 5, 5)),
    "much padding": (lambda: nn.ConvTranspose2d(4, 6, 5, stride=2, padding=4), (1, 4, 9, 9)),
    "1-D": (lambda: nn.ConvTranspose1d(4, 6, 7, stride=2, padding=3), (2, 4, 9)),
    "norm": (
        lambda: nn.Sequential(
            nn.ConvTranspose2d(3, 5, 4, stride=2, padding=1, bias=False), nn.BatchNorm2d(5)
        ),
        (1, 3, 6, 6),
    ),
}
LEFT: dict[str, Case] = {
    "stride 1": (lambda: nn.ConvTranspose2d(3, 5, 3, padding=1), (1, 3, 6, 6)),
    "groups": (lambda: nn.ConvTranspose2d(4, 6, 4, stride=2, groups=2), (1, 4, 5, 5)),
    "dilation": (lambda: nn.ConvTranspose2d(4, 6, 3, stride=2, dilation=2), (1, 4, 5, 5)),
}


def loaded(case: Case) -> Network:
    make, shape = case
    torch.manual_seed(0)
    module: Any = make().eval()
    for part in module.modules():
        if isinstance(part, nn.BatchNorm2d):
            nn.init.uniform_(part.running_mean)  # type: ignore[arg-type]
            nn.init.uniform_(part.running_var, 0.5, 2)  # type: ignore[arg-type]
    return load_network(module, (InputSpec("x", "float32", shape),))


@pytest.mark.parametrize("case", REPLACED.values(), ids=REPLACED)
def test_computes_the_same(
    case: Case, check: Callable[[Network], None], hardware: Hardware
) -> None:
    network = loaded(case)
    names = [task.name for task in extract_tasks(network, hardware)]
    assert len(names) == 2, "one convolves, one moves its outputs"
    assert not any(name.startswith(TRANSPOSED) for name in names)
    check(network)


@pytest.mark.parametrize("case", LEFT.values(), ids=LEFT)
def test_left_as_it_is(case: Case, check: Callable[[Network], None], hardware: Hardware) -> None:
    network = loaded(case)
    assert any(task.name.startswith(TRANSPOSED) for task in extract_tasks(network, hardware))
    check(network)


@pytest.mark.parametrize("options", [{"out_dtype": "float32"}, {"out_layout": "NHWC"}])
def test_left_with_outputs_of_another_kind(options: dict[str, str]) -> None:
    def replaced(**options: str) -> bool:
        x = relax.Var("x", relax.TensorType((1, 3, 6, 6), "float16"))
        weight = relax.const(np.zeros((3, 14, 4, 4), "float16"))
        builder = relax.BlockBuilder()
        with builder.function("main", [x]):
            builder.emit_func_output(
                builder.emit(relax.op.nn.conv2d_transpose(x, weight, strides=2, **options))
            )
        after = without_transposed_convolutions(builder.get(), lambda _call, _weight: False)
        return "conv2d_transpose" not in after.script()

    assert replaced()
    assert not replaced(**options)


def test_takes_a_part_of_the_operations(hardware: Hardware) -> None:
    def flops(source: str) -> float:
        return max(task.flops for task in extract_tasks(source, hardware))

    spread = flops("conv2d 1 16 35 35 8 4")  # The input with zeros between, of an output 32 x 32.
    ours = flops("conv2d_transpose 1 16 16 16 8 4 stride=2 pad=1")
    assert ours < spread / 3
