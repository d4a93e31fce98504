"""What is done to the products of attention: joined, read through views, reshapes behind them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional

from costlib.hardware import Hardware
from costlib.tvm_compat import relax
from costlib.workloads import Network, extract_tasks, load_network, prepare_network
from costlib.workloads.behind_products import moved_behind_products
from costlib.workloads.inference import decomposed
from costlib.workloads.joined import joined_products
from costlib.workloads.views import products_through_views

Check = Callable[[Network], None]
FEW = settings(
    deadline=None,
    max_examples=6,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


class Attention(nn.Module):
    """Self-attention with ``heads`` and fewer heads of keys and values."""

    def __init__(self, heads: int, groups: int, width: int, *, bias: bool, fused: bool) -> None:
        super().__init__()
        self.heads, self.groups, self.width, self.fused = heads, groups, width, fused
        depth = heads * width
        self.query = nn.Linear(depth, depth, bias=bias)
        self.key = nn.Linear(depth, groups * width, bias=bias)
        self.value = nn.Linear(depth, groups * width, bias=bias)
        self.out = nn.Linear(depth, depth)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        count, length, depth = x.shape

        def split(projected: torch.Tensor, heads: int) -> torch.Tensor:
            apart = projected.view(count, length, heads, self.width).transpose(1, 2)
            repeats = self.heads // heads
            spread = apart[:, :, None].expand(-1, -1, repeats, -1, -1)
            return spread.reshape(count, self.heads, length, self.width)

        q = split(self.query(x), self.heads)
        k, v = (split(layer(x), self.groups) for layer in (self.key, self.value))
        if self.fused:
            y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            y = torch.softmax(q @ k.transpose(-1, -2) / self.width**0.5, -1) @ v
        return self.out(y.transpose(1, 2).reshape(count, length, depth))


def loaded(module: nn.Module, *shape: int) -> Network:
    torch.manual_seed(0)
    return load_network(module.eval(), example_inputs=(torch.randn(shape),))


def kernels(network: Network, hardware: Hardware) -> list[str]:
    found: list[str] = []

    def visit(node: Any) -> None:
        if isinstance(node, relax.Call) and getattr(node.op, "name", "") == "relax.call_tir":
            found.append(str(node.args[0].name_hint))

    relax.analysis.post_order_visit(prepare_network(network, hardware)["main"], visit)
    return found


@FEW
@given(
    heads=st.sampled_from([1, 2, 4]),
    shared=st.sampled_from([1, 2]),
    width=st.sampled_from([1, 3, 8]),
    length=st.integers(1, 6),
    count=st.integers(1, 2),
    bias=st.booleans(),
    fused=st.booleans(),
)
def test_attention_computes_the_same(
    check: Check,
    heads: int,
    shared: int,
    width: int,
    length: int,
    count: int,
    bias: bool,
    fused: bool,
) -> None:
    groups = max(heads // shared, 1)
    module = Attention(heads, groups, width, bias=bias, fused=fused)
    check(loaded(module, count, length, heads * width))


@pytest.mark.parametrize("fused", [False, True])
def test_attention_takes_six_kernels(fused: bool, hardware: Hardware) -> None:
    """Projections, keys transposed, scores, softmax, what they weigh, projection; one is a view."""
    module = Attention(2, 2, 8, bias=True, fused=fused)
    names = kernels(loaded(module, 1, 5, 16), hardware)
    assert len([name for name in names if not name.startswith("reshape")]) == 6
    assert sum("matmul" in name for name in names) == 4
    (moving,) = (name for name in names if "transpose" in name)
    assert "strided_slice" in moving


@pytest.mark.parametrize("fused", [False, True])
def test_values_that_heads_share_are_not_spread(
    check: Check, fused: bool, hardware: Hardware
) -> None:
    network = loaded(Attention(6, 2, 8, bias=True, fused=fused), 2, 5, 48)
    titles = [task.title for task in extract_tasks(network, hardware)]
    (keys,) = (title for title in titles if "broadcast" in title)
    assert "+ transpose ·" in keys, "keys are moved in any case"
    check(network)


class Flattened(nn.Module):
    """A layer as GPT-2 writes it: on a matrix, its shape restored before the activation."""

    def __init__(self) -> None:
        super().__init__()
        self.up = nn.Parameter(torch.randn(8, 12))
        self.down = nn.Parameter(torch.randn(12, 8))
        self.bias = nn.Parameter(torch.randn(12))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.addmm(self.bias, x.view(-1, 8), self.up).view(2, 3, 12)
        y = 0.5 * y * (1 + torch.tanh(y + 0.04 * torch.pow(y, 3)))
        return (y.view(-1, 12) @ self.down).view(2, 3, 8) + x


def test_reshapes_do_not_part_a_product_from_its_activation(
    check: Check, hardware: Hardware
) -> None:
    network = loaded(Flattened(), 2, 3, 8)
    assert len(kernels(network, hardware)) == 2
    check(network)


class Shaped(nn.Module):
    """Elementwise operators around reshapes, some of which must stay where they are."""

    def __init__(self, function: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.function(x)


VECTOR, TABLE = torch.arange(4.0), torch.arange(24.0).reshape(6, 4)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.reshape(6, 4) * VECTOR,
        lambda x: x.reshape(12, 2) * VECTOR[:2],
        lambda x: x.reshape(6, 4) + TABLE,
        lambda x: (x.reshape(6, 4) - x.reshape(6, 4).relu()).reshape(2, 3, 4),
        lambda x: x.reshape(6, 4) * x.reshape(4, 6).T,
        lambda x: x.reshape(6, 4).clamp(-0.5, 0.5) ** 3,
        lambda x: x.reshape(1, 24) + x.reshape(24, 1),
        lambda x: x.permute(2, 0, 1).permute(1, 2, 0) * 2,
        lambda x: x.permute(2, 0, 1).permute(2, 1, 0).reshape(-1),
        lambda x: (x * 2) @ (x.transpose(1, 2) * 3),
        lambda x: (x * 2) @ (x.transpose(1, 2) * VECTOR[3:]),
        lambda x: (x * 1e25 * 1e-20) @ (x.transpose(1, 2) * 1e25 * 1e-20) * 1e-10,
        lambda x: (x @ x.transpose(1, 2)).permute(1, 0, 2) + 1,
        lambda x: (x @ x.transpose(1, 2)).permute(0, 2, 1) + 1,
        lambda x: x[:, 1:] @ x[:, :2, ::2].reshape(2, 4, 1),
        lambda x: x[:, -2:] @ x.reshape(2, 4, 3)[:, :, 1:],
        lambda x: x @ x[:1].transpose(1, 2).expand(2, 4, 3),
        lambda x: x[None, None] @ x.transpose(1, 2)[None, None],
    ],
)
def test_views_compute_the_same(
    function: Callable[[torch.Tensor], torch.Tensor], check: Check
) -> None:
    check(loaded(Shaped(function), 2, 3, 4))


class Projections(nn.Module):
    def __init__(self, widths: Sequence[int], *, activation: bool = False) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(4, width, bias=width > 2) for width in widths)
        self.activation = activation

    def forward(self, x: torch.Tensor) -> list[torch.Tensor]:
        results = [layer(x) for layer in self.layers]
        if self.activation:
            return [result.relu() for result in results]
        return [result.reshape(-1) for result in results]


@pytest.mark.parametrize(
    ("module", "products"),
    [
        (Projections([3, 5, 4]), 1),
        (Projections([1, 2, 3, 4]), 2),  # Those without a bias, and those with one.
        (Projections([3]), 1),
        (Projections([3, 3], activation=True), 2),  # Each is fused with its activation.
    ],
)
def test_projections_of_one_tensor_are_joined(
    module: nn.Module, products: int, check: Check, hardware: Hardware
) -> None:
    network = loaded(module, 2, 3, 4)
    assert sum("matmul" in name for name in kernels(network, hardware)) == products
    check(network)


def test_products_of_different_tensors_are_not_joined() -> None:
    class Two(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.one, self.other = nn.Linear(4, 3), nn.Linear(4, 3)

        def forward(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            return self.one(x).reshape(-1), self.other(y).reshape(-1)

    examples = (torch.randn(2, 4), torch.randn(2, 4))
    mod = decomposed(load_network(Two(), example_inputs=examples).mod)
    assert joined_products(mod)["main"].script().count("R.matmul") == 2


def test_a_module_without_products_stays_as_it_is(hardware: Hardware) -> None:
    mod = decomposed(load_network("softmax 4 8").mod)
    for rewrite in (moved_behind_products, joined_products, products_through_views):
        assert rewrite(mod)["main"].script() == mod["main"].script()


def test_rows_that_are_masked_entirely_are_zero(check: Check, hardware: Hardware) -> None:
    """What PyTorch's attention returns for them, and no NaN."""

    class Masked(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            mask = torch.zeros(4, 4)
            mask[1] = -torch.inf
            mask[2, :3] = -torch.inf
            self.register_buffer("mask", mask)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return functional.scaled_dot_product_attention(x, x, x, attn_mask=self.mask)

    network = loaded(Masked(), 1, 2, 4, 8)
    assert network.reference is not None
    (expected,) = network.reference(network.random_inputs(0))
    assert np.all(expected[:, :, 1] == 0)
    check(network)
    titles = [task.title for task in extract_tasks(network, hardware)]
    assert any(title.startswith("softmax") for title in titles)


def test_what_lies_in_another_block_stays_there(run: Any) -> None:
    """What a dataflow block does not give out is not known in the next one."""
    x = relax.Var("x", relax.TensorType((2, 3, 4), "float32"))
    weights = [relax.const(np.full((4, width), 0.5, "float32")) for width in (4, 4)]
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        with builder.dataflow():
            one = builder.emit(relax.op.matmul(x, weights[0]))
            first = builder.emit_output(relax.op.reshape(one, [6, 4]))
        between = builder.emit(relax.op.nn.relu(first))
        with builder.dataflow():
            other = builder.emit(relax.op.matmul(x, weights[1]))
            second = builder.emit(relax.op.reshape(other, [6, 4]))
            result = builder.emit_output(relax.op.add(between, second))
        builder.emit_func_output(result)
    network = load_network(builder.get())
    (data,) = network.random_inputs(0)
    product = data.sum(-1, keepdims=True).repeat(4, -1).reshape(6, 4) / 2
    (found,) = run(network, [data])
    np.testing.assert_allclose(found, np.maximum(product, 0) + product, rtol=1e-4, atol=1e-5)
