"""Tensors that are joined: which are written in place, and that networks compute the same."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import nn

from costlib.hardware import Hardware
from costlib.tuning.library import NetworkLibrary
from costlib.tvm_compat import relax, te, topi, tvm
from costlib.tvm_compat.concatenations import Joining, concatenations
from costlib.tvm_compat.direct_calls import prepared_name
from costlib.workloads import Network, load_network, prepare_network
from costlib.workloads.interface import calls_of
from costlib.workloads.variants import varied

Step = Callable[[torch.Tensor], torch.Tensor]

X = torch.arange(60.0).reshape(1, 3, 4, 5) / 60


class Steps(nn.Module):
    """Whatever a function does with three layers."""

    def __init__(self, function: Callable[..., object]) -> None:
        super().__init__()
        self.function = function
        torch.manual_seed(0)
        layers = [nn.Conv2d(3, 4, 1), nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(12, 8, 1)]
        self.layers = nn.ModuleList(layers)

    def forward(self, x: torch.Tensor) -> object:
        return self.function(x, *self.layers)


def fire(x: torch.Tensor, a: Step, b: Step, c: Step) -> torch.Tensor:
    return c(torch.cat([a(x).relu(), b(x).relu()], 1))


def nested(x: torch.Tensor, a: Step, b: Step, c: Step) -> torch.Tensor:
    joined = torch.cat([a(x), b(x)], 1)
    return torch.cat([c(joined), joined, a(x) + 1], 1)


def batch(x: torch.Tensor, a: Step, b: Step, _: Step) -> torch.Tensor:
    return torch.cat([b(x).relu(), b(x + 1).relu()], 0)


def stacked(x: torch.Tensor, a: Step, b: Step, _: Step) -> torch.Tensor:
    return torch.stack([b(x).relu(), b(x + 1).relu()], 1)


def grown(x: torch.Tensor, a: Step, b: Step, _: Step) -> object:
    """As decoders return their caches, of which they have read each layer's."""
    one, other = b(x).relu(), b(x + 1).relu()
    return one.sum(1), torch.stack([one, other])


def stacked_and_joined(x: torch.Tensor, a: Step, b: Step, _: Step) -> torch.Tensor:
    """The stack lies in another shape than what it is made of."""
    return torch.cat([torch.stack([a(x), a(x + 1)], 2), b(x)[:, :4, None]], 2)


def read_twice(x: torch.Tensor, a: Step, b: Step, c: Step) -> torch.Tensor:
    one = a(x)
    return c(torch.cat([one, b(one[:, :3])], 1))


def with_the_input(x: torch.Tensor, a: Step, b: Step, _: Step) -> torch.Tensor:
    return torch.cat([x, b(x)], 1)


def of_one_twice(x: torch.Tensor, a: Step, b: Step, _: Step) -> torch.Tensor:
    one = b(x)
    return torch.cat([one, one], 1)


def of_what_is_returned(x: torch.Tensor, a: Step, b: Step, _: Step) -> object:
    one = b(x)
    return one, torch.cat([a(x), one], 1)


def twice_joined(x: torch.Tensor, a: Step, b: Step, _: Step) -> object:
    one, other = a(x), b(x)
    return torch.cat([one, other], 1), torch.cat([other, one], 1)


def network_of(function: Callable[..., object]) -> Network:
    return load_network(torch.export.export(Steps(function).eval(), (X,)))


def outputs(library: NetworkLibrary) -> list[np.ndarray]:
    machine = relax.VirtualMachine(library.module, tvm.cpu())
    found = machine["main"](tvm.runtime.tensor(X.numpy()))
    found = [found] if isinstance(found, tvm.runtime.Tensor) else found
    return [one.numpy() for one in found]


def kernels(library: NetworkLibrary) -> list[str]:
    assert library.direct is not None
    return [prepared_name(call.name) for call in library.direct.line.calls]


def check(network: Network, library: NetworkLibrary) -> None:
    assert network.reference is not None
    for ours, theirs in zip(outputs(library), network.reference([X.numpy()]), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("function", [fire, nested, batch, read_twice, stacked, grown])
def test_written_in_place(function: Callable[..., object], hardware: Hardware) -> None:
    network = network_of(function)
    prepared = prepare_network(network, hardware)
    library = NetworkLibrary.build(prepared, hardware)
    joined = concatenations(prepared)
    assert {joining.axis for joining in joined.values()} == {int(function not in (batch, grown))}
    assert not joined.keys() & kernels(library)
    check(network, library)
    told = calls_of(relax.VirtualMachine(library.module, tvm.cpu()))
    assert told is not None and all(kernel.workload_id for kernel in told)


@pytest.mark.parametrize(
    "function", [with_the_input, of_one_twice, of_what_is_returned, twice_joined]
)
def test_copied(function: Callable[..., object], hardware: Hardware) -> None:
    network = network_of(function)
    prepared = prepare_network(network, hardware)
    library = NetworkLibrary.build(prepared, hardware)
    assert len(concatenations(prepared).keys() & kernels(library)) == 1
    check(network, library)


def test_what_lies_in_another_shape(hardware: Hardware) -> None:
    network = network_of(stacked_and_joined)
    check(network, NetworkLibrary.build(prepare_network(network, hardware), hardware))


@pytest.mark.parametrize("layout", ["nhwc", "nchw4c"])
@pytest.mark.parametrize("function", [fire, nested, read_twice, twice_joined])
def test_in_other_layouts(function: Callable[..., object], layout: str, hardware: Hardware) -> None:
    network = varied(network_of(function), layout)
    check(network, NetworkLibrary.build(prepare_network(network, hardware), hardware))


def test_what_was_joined_before_lies_in_what_is_joined_now(hardware: Hardware) -> None:
    network = network_of(nested)
    library = NetworkLibrary.build(prepare_network(network, hardware), hardware)
    assert library.direct is not None
    line = library.direct.line
    bases = {call.tensors[-1].base for call in line.calls}
    assert bases == {line.outputs[0].base}


@pytest.mark.parametrize(
    ("computed", "joining"),
    [
        (lambda a, b: topi.concatenate([a, b], 1), (1, (2, 6))),
        (lambda a, b: topi.reshape(topi.concatenate([a, b], 0), (2, 2, 3)), (0, (4, 3))),
        (lambda a, b: topi.reshape(topi.concatenate([b, a], 0), (2, 2, 3)), None),
        (lambda a, b: topi.transpose(topi.concatenate([a, b], 0)), None),
        (lambda a, b: topi.concatenate([b, a], 1), None),
        (lambda a, b: topi.concatenate([a, topi.nn.relu(b)], 1), None),
        (topi.add, None),
    ],
)
def test_only_concatenations_are_known_as_such(
    computed: Callable[..., object], joining: Joining | None
) -> None:
    a, b = (te.placeholder((2, 3), "float32", name) for name in "ab")
    kernel = te.create_prim_func([a, b, computed(a, b)], index_dtype_override="int64")
    assert concatenations(tvm.IRModule({"f": kernel})).get("f") == joining


@pytest.mark.parametrize("name", ["conv2d", "fused_conv2d_add", "in_place"])
def test_names(name: str) -> None:
    for suffix in ("", "_prepacked", "_in_place", "_prepacked_in_place12"):
        assert prepared_name(name + suffix) == name
