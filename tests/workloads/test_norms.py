"""Norms that are spelled out: which of them become one kernel, and that they compute the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper
from torch import nn

from costlib.hardware import Hardware
from costlib.tvm_compat import relax
from costlib.workloads import Network, load_network, prepare_network
from costlib.workloads.importers.onnx import import_onnx_model

Check = Callable[[Network], None]
FEW = settings(
    deadline=None, max_examples=4, suppress_health_check=[HealthCheck.function_scoped_fixture]
)

SCALES = {
    "divided by the root": lambda x, square: x / torch.sqrt(square),
    "times the inverse root": lambda x, square: x * torch.rsqrt(square),
    "the inverse root first": lambda x, square: torch.rsqrt(square) * x,
    "times one over the root": lambda x, square: x * (1 / torch.sqrt(square)),
}


class Spelled(nn.Module):
    """A layer norm, or an RMS norm, over some axes as people write it."""

    def __init__(
        self,
        scale: str,
        axes: Sequence[int],
        *,
        centred: bool = True,
        gamma: Sequence[int] | None = None,
        beta: Sequence[int] | None = None,
        also: str = "",
    ) -> None:
        super().__init__()
        self.scale, self.axes, self.centred, self.also = SCALES[scale], axes, centred, also
        self.gamma = None if gamma is None else nn.Parameter(torch.randn(*gamma))
        self.beta = None if beta is None else nn.Parameter(torch.randn(*beta))

    def forward(self, x: torch.Tensor) -> Any:
        mean = x.mean(self.axes, keepdim=True)
        inner = x - mean if self.centred else x
        square = inner.pow(2).mean(self.axes, keepdim=True) + 1e-6
        y = self.scale(inner, square)
        y = y if self.gamma is None else self.gamma * y
        y = y if self.beta is None else y + self.beta
        return (y, {"mean": mean, "inner": inner, "square": square}[self.also]) if self.also else y


def loaded(module: nn.Module, *shape: int) -> Network:
    torch.manual_seed(0)
    return load_network(module.eval(), example_inputs=(torch.randn(shape) + 2,))


def operators(network: Network, hardware: Hardware) -> Counter[str]:
    """Count the norms of a network, and its other kernels."""
    found: Counter[str] = Counter()

    def visit(node: Any) -> None:
        if isinstance(node, relax.Call) and getattr(node.op, "name", "") == "relax.call_tir":
            name = str(node.args[0].name_hint)
            kinds = [kind for kind in ("layer_norm", "rms_norm") if kind in name]
            found.update(kinds or ["others"])

    relax.analysis.post_order_visit(prepare_network(network, hardware)["main"], visit)
    return found


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("centred", [True, False])
def test_however_it_is_written(hardware: Hardware, scale: str, *, centred: bool) -> None:
    network = loaded(Spelled(scale, (-1,), centred=centred, gamma=[6]), 2, 6)
    assert operators(network, hardware) == {"layer_norm" if centred else "rms_norm": 1}


@FEW
@given(
    scale=st.sampled_from(list(SCALES)),
    axes=st.sampled_from([(-1,), (1, 2), (1,), (0, 2)]),
    centred=st.booleans(),
    affine=st.sampled_from(["gamma and beta", "gamma", "beta", ""]),
)
def test_computes_the_same(
    check: Check,
    hardware: Hardware,
    scale: str,
    axes: tuple[int, ...],
    centred: bool,
    affine: str,
) -> None:
    shape = (3, 4, 5)
    extents = [n if axis in axes or axis - 3 in axes else 1 for axis, n in enumerate(shape)]
    parameters = {name: extents for name in ("gamma", "beta") if name in affine}
    network = loaded(Spelled(scale, axes, centred=centred, **parameters), *shape)
    if centred:
        assert operators(network, hardware) == {"layer_norm": 1}
    check(network)


@pytest.mark.parametrize("also", ["mean", "inner", "square"])
def test_parts_that_are_read_elsewhere_stay(check: Check, hardware: Hardware, also: str) -> None:
    network = loaded(Spelled("times the inverse root", (-1,), gamma=[6], also=also), 2, 6)
    assert operators(network, hardware)["layer_norm"] == 0
    check(network)


@pytest.mark.parametrize(
    ("gamma", "expected"),
    [([1], {"layer_norm": 1}), ([4, 1], {"layer_norm": 1}), ([3, 1, 1], {"layer_norm": 1})],
)
def test_a_scale_of_any_shape(
    check: Check, hardware: Hardware, gamma: Sequence[int], expected: dict[str, int]
) -> None:
    """One that differs along other axes is fused behind the norm."""
    network = loaded(Spelled("divided by the root", (-1,), gamma=gamma), 3, 4, 5)
    assert operators(network, hardware) == expected
    check(network)


class NearlyNorms(nn.Module):
    """What looks like a layer norm, and is none."""

    def forward(self, x: torch.Tensor) -> Any:
        apart = x - x.mean(-1, keepdim=True)
        shifted = apart / torch.sqrt(apart.pow(2).mean(1, keepdim=True) + 1e-5)
        deviation = apart / (torch.sqrt(apart.pow(2).mean(-1, keepdim=True)) + 1e-5)
        twice = apart / torch.sqrt(apart.pow(2).sum(-1, keepdim=True) / 3 + 1e-5)
        return shifted, deviation, twice


def test_what_is_none_is_left(check: Check, hardware: Hardware) -> None:
    network = loaded(NearlyNorms(), 3, 4, 5)
    found = operators(network, hardware)
    assert found["layer_norm"] == 0
    check(network)


def test_large_means_do_no_harm(check: Check) -> None:
    module = Spelled("divided by the root", (-1,), gamma=[64]).eval()
    check(load_network(module, example_inputs=(torch.randn(4, 64) + 1e3,)))


def onnx_norm(operator: str, opset: int, outputs: Sequence[str], *shapes: Sequence[int]) -> Any:
    values = np.random.default_rng(0)
    names = [f"p{i}" for i in range(len(shapes))]
    made = helper.make_graph(
        [helper.make_node(operator, ["x", *names], list(outputs))],
        "graph",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (2, 3, 8))],
        [helper.make_empty_tensor_value_info(name) for name in outputs],
        [
            numpy_helper.from_array(values.standard_normal(shape).astype("float32"), name)
            for name, shape in zip(names, shapes, strict=True)
        ],
    )
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


@pytest.mark.parametrize(
    ("operator", "opset", "shapes", "expected"),
    [
        ("LayerNormalization", 17, [(8,), (8,)], {"layer_norm": 1}),
        ("LayerNormalization", 17, [(8,)], {"layer_norm": 1}),
        ("LayerNormalization", 17, [(3, 1), (1,)], {"layer_norm": 1, "others": 1}),
        ("RMSNormalization", 23, [(8,)], {"rms_norm": 1}),
        ("InstanceNormalization", 17, [(3,), (3,)], {"layer_norm": 1, "others": 1}),
    ],
)
def test_operators_of_onnx(
    check: Check,
    hardware: Hardware,
    operator: str,
    opset: int,
    shapes: Sequence[Sequence[int]],
    expected: dict[str, int],
) -> None:
    network = import_onnx_model(onnx_norm(operator, opset, ["y"], *shapes), "norm")
    assert operators(network, hardware) == expected
    check(network)


def test_statistics_of_onnx(check: Check) -> None:
    model = onnx_norm("LayerNormalization", 17, ["y", "mean", "inverse"], (8,), (8,))
    check(import_onnx_model(model, "norm"))


@pytest.mark.parametrize("first", ["epsilon", "mean"])
def test_epsilon_may_be_added_on_either_side(check: Check, hardware: Hardware, first: str) -> None:
    addends = ["epsilon", "variance"] if first == "epsilon" else ["variance", "epsilon"]
    made = helper.make_graph(
        [
            helper.make_node("ReduceMean", ["x"], ["mean"], axes=[-1]),
            helper.make_node("Sub", ["x", "mean"], ["inner"]),
            helper.make_node("Mul", ["inner", "inner"], ["square"]),
            helper.make_node("ReduceMean", ["square"], ["variance"], axes=[-1]),
            helper.make_node("Add", addends, ["shifted"]),
            helper.make_node("Sqrt", ["shifted"], ["deviation"]),
            helper.make_node("Div", ["inner", "deviation"], ["y"]),
        ],
        "graph",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (2, 3, 8))],
        [helper.make_empty_tensor_value_info("y")],
        [numpy_helper.from_array(np.float32(1e-5), "epsilon")],
    )
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", 13)], ir_version=10)
    network = import_onnx_model(model, "norm")
    assert operators(network, hardware) == {"layer_norm": 1}
    check(network)
