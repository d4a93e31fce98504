"""A larger shape computes a smaller one, whatever lies beyond; what might not is refused."""

from __future__ import annotations

import operator

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from torch import nn
from torch.utils import _pytree as pytree

from costlib.workloads.importers.torch_export import decomposed_graph, export_in_ranges
from costlib.workloads.ranges.labels import UnpaddableError
from costlib.workloads.ranges.padding import Padded, padded

WIDTH = 4
POINT = (4, 9)
LEAST = (1, 5)


class Computing(nn.Module):
    """A function of one tensor, and some layers that it may use."""

    def __init__(self, compute):
        super().__init__()
        self.compute = compute
        self.linear = nn.Linear(WIDTH, WIDTH)
        self.norm = nn.LayerNorm(WIDTH)
        self.conv = nn.Conv1d(WIDTH, WIDTH, 3, padding=1)
        self.strided = nn.Conv1d(WIDTH, WIDTH, 3, 2)
        self.first = nn.Parameter(torch.randn(1, 1, WIDTH))
        self.places = nn.Embedding(32, WIDTH)

    def forward(self, x):
        return self.compute(self, x)


def attention(m, x):
    return torch.softmax(x @ x.transpose(1, 2), -1) @ m.linear(x)


def causal(m, x):
    scores = x @ x.transpose(1, 2)
    ones = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).tril()
    return torch.softmax(scores.masked_fill(~ones, -1e9), -1) @ x


def in_heads(m, x):
    heads = m.linear(x).view(x.shape[0], x.shape[1], 2, 2).permute(0, 2, 1, 3)
    found = torch.softmax(heads @ heads.transpose(2, 3), -1) @ heads
    return found.permute(0, 2, 1, 3).reshape(x.shape)


def with_first(m, x):
    joined = torch.cat([m.first.expand(x.shape[0], -1, -1), x], 1)
    return torch.softmax(joined, 1).sum(1), joined.mean(1), joined[:, 1:]


def behind_what_grows(m, x):
    """A cache that grows by what is new, which knows its place."""
    new = m.first + m.places(torch.arange(2) + x.shape[1])
    grown = torch.cat([torch.zeros(0), x, new.expand(x.shape[0], -1, -1)], 1)
    one = torch.cat(
        [m.first.expand(x.shape[0], -1, -1), x, new[:, :1].expand(x.shape[0], -1, -1)], 1
    )
    return grown, one, torch.softmax(new @ grown.transpose(1, 2), -1) @ grown


def by_place(m, x):
    return x + m.places(torch.arange(x.shape[1])), m.places.weight[: x.shape[1]]


RIGHT = {
    "elementwise": lambda m, x: torch.relu(m.norm(m.linear(x))) * 2,
    "attention": attention,
    "causal attention": causal,
    "heads": in_heads,
    "rows of one matrix": lambda m, x: m.linear(x.reshape(-1, WIDTH)).view(x.shape),
    "mean": lambda m, x: (x.mean(1), x.mean((1, 2), keepdim=True)),
    "sums": lambda m, x: (x.sum(1), x.amax(1), x.amin((1, 2)), (x > 0).any(1), x.argmax(1)),
    "softmax of the batch": lambda m, x: torch.log_softmax(x, 0),
    "first and last": lambda m, x: (x[:, 0], x[:, -1], x[:, -2]),
    "without the last": lambda m, x: (x[:, 1:], x[:, :-1]),
    "cumulative": lambda m, x: x.cumsum(1),
    "convolution": lambda m, x: m.conv(x.transpose(1, 2)),
    "joined with what is always there": with_first,
    "by place": by_place,
    "behind what grows": behind_what_grows,
    "the size as a number": lambda m, x: (x * x.shape[1], x.long() - x.shape[1], x > x.shape[0]),
    "pairs": lambda m, x: (x.unsqueeze(1) - x.unsqueeze(2)).abs().amax((1, 3)),
    "split": lambda m, x: operator.mul(*x.split(2, -1)),
}

REFUSED = {
    "flipped": (lambda m, x: x.flip(1), "aten.flip: it mixes elements along a dimension"),
    "sorted": (lambda m, x: x.sort(1).values, "aten.sort: it mixes"),
    "variance": (lambda m, x: x.var(1), "aten.var: it mixes"),
    "the size and small integers": (lambda m, x: x.int() * x.shape[1], "computes with the size"),
    "what may be below 0": (
        lambda m, x: m.places(x.shape[1] - 1 - torch.arange(x.shape[1])),
        "looks up",
    ),
    "from the end on": (lambda m, x: x[:, torch.arange(2) + (x.shape[1] - 7)], "aten.index"),
    "rounded by the size": (
        lambda m, x: torch.div(x, x.shape[1], rounding_mode="floor"),
        "computes with the size",
    ),
    "strided": (lambda m, x: m.strided(x.transpose(1, 2)), "convolution: an extent is"),
    "the end first": (lambda m, x: x[:, -2:], "aten.slice"),
    "joined twice": (lambda m, x: torch.cat([x, x], 1), "aten.cat"),
    "norm of all": (lambda m, x: nn.functional.layer_norm(x, x.shape[1:]), "."),
    "mixed rows": (lambda m, x: x.reshape(x.shape[1], -1), "a reshape mixes dimensions"),
    "the size as a value": (lambda m, x: x + torch.full((1,), x.shape[1]), "with the size"),
    "from the size on": (lambda m, x: m.places.weight[x.shape[1] - 1 :][:2], "slice begins"),
    "rolled": (lambda m, x: x.roll(1), "."),
    "several dimensions as one": (lambda m, x: x.reshape(-1, WIDTH), "lays out several"),
    "padded itself": (lambda m, x: nn.functional.pad(x, (0, 0, 1, 0)), "aten.constant_pad_nd"),
    "sum of rows of one matrix": (lambda m, x: x.reshape(-1, WIDTH).sum(0), "several dimensions"),
}


def padded_module(compute) -> tuple[nn.Module, Padded, list[str]]:
    """Return a module, the same at the point, and PyTorch's names of its two dimensions."""
    module = Computing(compute).eval()
    least = zip("bs", LEAST, strict=True)
    dims = {n: torch.export.Dim(name, min=low, max=16) for n, (name, low) in enumerate(least)}
    program = export_in_ranges(module, (torch.randn(*POINT, WIDTH),), (dims,), "it")
    graph = decomposed_graph(program)
    (placeholder,) = (node for node in graph.graph.nodes if node.op == "placeholder")
    symbols = [str(extent) for extent in placeholder.meta["val"].shape[:2]]
    return module, padded(graph, dict(zip(symbols, POINT, strict=True)), {}), symbols


@pytest.fixture(scope="module")
def all_right() -> tuple[nn.Module, Padded, list[str]]:
    """Everything that is right in one module: to export it takes a while."""

    def compute(m, x):
        return [pytree.tree_leaves(one(m, x)) for one in RIGHT.values()]

    return padded_module(compute)


@settings(max_examples=20, deadline=None)
@given(st.tuples(*(st.integers(low, high) for low, high in zip(LEAST, POINT, strict=True))))
@example(LEAST)
@example(POINT)
def test_whatever_lies_beyond_changes_nothing(all_right, shape: tuple[int, int]) -> None:
    module, program, symbols = all_right
    x = torch.randn(*shape, WIDTH)
    larger = torch.full((*POINT, WIDTH), torch.nan)
    larger[: shape[0], : shape[1]] = x
    sizes = dict(zip(symbols, shape, strict=True))
    lengths = [torch.tensor(sizes[symbol]) for symbol in program.lengths]
    with torch.no_grad():
        expected = module(x)
        found = iter(program.module(larger, *lengths))
    for name, outputs in zip(RIGHT, expected, strict=True):
        for theirs in outputs:
            first = next(found)[tuple(map(slice, theirs.shape))]
            assert torch.allclose(first.double(), theirs.double(), atol=1e-5), name


@pytest.mark.parametrize("name", REFUSED)
def test_what_would_mix_is_refused(name: str) -> None:
    compute, reason = REFUSED[name]
    with pytest.raises(UnpaddableError, match=reason):
        padded_module(compute)


def test_no_mask_where_nothing_mixes() -> None:
    assert padded_module(RIGHT["elementwise"])[1].lengths == ()
    assert len(padded_module(RIGHT["attention"])[1].lengths) == 1


def test_what_may_be_empty_has_no_largest_element() -> None:
    module = Computing(attention).eval()
    dims = {1: torch.export.Dim("s", min=0, max=16)}
    program = export_in_ranges(module, (torch.randn(*POINT, WIDTH),), (dims,), "it")
    graph = decomposed_graph(program)
    (placeholder,) = (node for node in graph.graph.nodes if node.op == "placeholder")
    symbol = str(placeholder.meta["val"].shape[1])
    assert padded(graph, {symbol: 9}, {}, {symbol: 1}).lengths == (symbol,)
    with pytest.raises(UnpaddableError, match="may be empty"):
        padded(graph, {symbol: 9}, {}, {symbol: 0})
