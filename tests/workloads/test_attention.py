"""Attention as one kernel: what is recognised as such, and that it computes the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
import torch
from torch import nn

from costlib.errors import TargetError
from costlib.hardware import Hardware, find_hardware
from costlib.tuning.check import check
from costlib.tvm_compat import tvm
from costlib.workloads import Network, Task, extract_tasks, load_network
from costlib.workloads.variants import varied

Scores = Callable[[torch.Tensor], torch.Tensor]


def on(lanes: int) -> Hardware:
    try:
        hardware = Hardware.local(mcpu="x86-64-v3", num_cores=2)
    except TargetError as error:
        pytest.skip(str(error))
    return hardware.model_copy(update={"vector_bits": 32 * lanes})


class Heads(nn.Module):
    """Queries, keys and values from one product, as most networks have them."""

    def __init__(self, heads: int, width: int, scores: Scores) -> None:
        super().__init__()
        self.heads, self.width, self.scores = heads, width, scores
        torch.manual_seed(0)
        self.joined = nn.Linear(24, 3 * heads * width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        count, rows, _ = x.shape
        parts = self.joined(x).reshape(count, rows, 3, self.heads, self.width)
        q, k, v = parts.permute(2, 0, 3, 1, 4)
        weights = self.scores(q @ k.transpose(-1, -2)).softmax(-1)
        return (weights @ v).transpose(1, 2).reshape(count, rows, -1)


class Plain(nn.Module):
    """Whatever a function does."""

    def __init__(self, function: Callable[..., object]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *given: torch.Tensor) -> object:
        return self.function(*given)


def heads(rows: int, count: int = 2, width: int = 32, scores: Scores = lambda s: s / 5) -> Network:
    module = Heads(count, width, scores).eval()
    return load_network(torch.export.export(module, (torch.randn(1, rows, 24),)))


def plain(function: Callable[..., object], *shapes: Sequence[int]) -> Network:
    given = tuple(torch.randn(*shape) for shape in shapes)
    return load_network(torch.export.export(Plain(function), given))


def found(network: Network, hardware: Hardware) -> list[Task]:
    return [task for task in extract_tasks(network, hardware) if task.name == "attention"]


def check_fused(network: Network, lanes: int = 16) -> Task:
    hardware = on(lanes)
    result = check(network, hardware=hardware)
    assert result.status == "right", result.reason
    (task,) = found(network, hardware)
    assert task.title.startswith("attention ")
    assert not any("softmax" in one.name for one in extract_tasks(network, hardware))
    return task


def masked(mask: torch.Tensor) -> Scores:
    return lambda scores: scores * 0.1 + mask


@pytest.mark.parametrize("lanes", [8, 16])
@pytest.mark.parametrize("rows", [16, 17, 31, 64, 71])
def test_heads_of_one_product(rows: int, lanes: int) -> None:
    task = check_fused(heads(rows), lanes)
    (_, given), (_, keys), *_, (_, result) = task.arguments
    assert given == (1, rows, 3 * 2 * 32)
    assert keys == (1, 2, 32, -(-rows // lanes) * lanes)
    assert result == (1, rows, 2, 32), "as it is wanted, not as a product has it"


@pytest.mark.parametrize(
    "scores",
    [
        masked(torch.full((20, 20), -torch.inf).triu(1)),
        masked(torch.full((1, 1, 20, 20), torch.finfo(torch.float32).min).triu(1)),
        masked(torch.randn(1, 2, 20, 20)),
        masked(torch.randn(2, 1, 1)),
        masked(torch.randn(20)),
        lambda scores: scores - 3.0,
        lambda scores: 0.5 + 1000 * scores,
        lambda scores: scores * torch.linspace(0, 1, 20) / 7,
        lambda scores: scores,
        lambda scores: scores.masked_fill(torch.ones(20, 20).triu(1).bool(), -torch.inf) / 3,
        lambda scores: torch.where(torch.arange(20) < 12, scores, torch.linspace(-9, 0, 20)),
        lambda scores: torch.where(torch.arange(20) > 12, torch.tensor(0.5), scores),
    ],
)
def test_what_is_done_to_scores(scores: Scores) -> None:
    check_fused(heads(20, scores=scores))


def test_a_mask_that_hides_nothing_is_not_read() -> None:
    task = check_fused(heads(20, scores=masked(torch.zeros(1, 1, 20, 20))))
    assert len(task.arguments) == 4


def test_a_mask_that_is_given() -> None:
    def attend(x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return (x @ x.transpose(1, 2) / 9 + mask).softmax(-1) @ x

    task = check_fused(plain(attend, (3, 21, 16), (3, 1, 21)))
    assert (task.arguments[3][1], task.arguments[-1][1]) == ((3, 1, 21), (3, 21, 16))


def test_other_counts_of_queries_keys_and_their_numbers() -> None:
    def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return (q @ k.transpose(-1, -2)).softmax(-1) @ v

    check_fused(plain(attend, (2, 3, 40, 10), (2, 3, 19, 10), (2, 3, 19, 48)))


@pytest.mark.parametrize("lanes", [8, 16])
@pytest.mark.parametrize("width", [3, 20, 31, 36])
def test_heads_that_are_no_whole_vectors(width: int, lanes: int) -> None:
    check_fused(heads(40, width=width), lanes)


def few(rows: int, keys: int, depth: int = 64) -> Network:
    """A decoder's step: some tokens, and keys and values of those before them."""

    def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        heads = q.reshape(2, rows, 3, depth).transpose(1, 2)
        weights = (heads @ k[..., :depth].transpose(-1, -2) / 5).softmax(-1)
        return (weights @ v).transpose(1, 2).reshape(2, rows, -1)

    return plain(attention, (2, rows, 3 * depth), (2, 3, keys, 2 * depth), (2, 3, keys, 40))


@pytest.mark.parametrize("lanes", [8, 16])
@pytest.mark.parametrize(("rows", "keys"), [(1, 16), (1, 129), (5, 33), (15, 64)])
def test_few_queries_read_keys_where_they_are(rows: int, keys: int, lanes: int) -> None:
    task = check_fused(few(rows, keys), lanes)
    assert task.arguments[1] == ("float32", (2, 3, keys, 128)), "they are not transposed"


def test_few_queries_of_few_numbers_stay_products() -> None:
    network = few(1, 64, depth=24)
    assert not found(network, on(16))
    assert check(network, hardware=on(16)).status == "right"


@pytest.mark.parametrize("rows", [1, 20])
def test_keys_that_heads_share_are_not_spread(rows: int) -> None:
    def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        k, v = (x[:, :, None].expand(1, 2, 3, 18, 32).reshape(1, 6, 18, 32) for x in (k, v))
        return (q @ k.transpose(-1, -2) / 4).softmax(-1) @ v

    network = plain(attend, (1, 6, rows, 32), (1, 2, 18, 32), (1, 2, 18, 32))
    _, keys, values, _ = check_fused(network).arguments
    assert values == ("float32", (1, 2, 18, 32))
    assert rows > 1 or keys == values
    assert not any("broadcast" in task.title for task in extract_tasks(network, on(16)))


def attend(x: torch.Tensor) -> torch.Tensor:
    return (x @ x.transpose(-1, -2)).softmax(-1) @ x


def scores_too(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    scores = x @ x.transpose(-1, -2)
    return scores, scores.softmax(-1) @ x


def weights_too(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    weights = (x @ x.transpose(-1, -2)).softmax(-1)
    return weights, weights @ x


def over_queries(x: torch.Tensor) -> torch.Tensor:
    return (x @ x.transpose(-1, -2)).softmax(-2) @ x


def of_integers(x: torch.Tensor) -> torch.Tensor:
    return (x > 0).int().cumsum(-1).float() @ x.transpose(1, 2)


def squared(x: torch.Tensor) -> torch.Tensor:
    return (x @ x.transpose(-1, -2)).square().softmax(-1) @ x


@pytest.mark.parametrize(
    ("function", "shape"),
    [
        (of_integers, (2, 20, 16)),
        (scores_too, (2, 20, 16)),
        (weights_too, (2, 20, 16)),
        (over_queries, (2, 20, 16)),
        (squared, (2, 20, 16)),
        (attend, (2, 12, 16)),
    ],
)
def test_what_stays_as_it_is(function: Callable[..., object], shape: Sequence[int]) -> None:
    network, hardware = plain(function, shape), on(16)
    assert not found(network, hardware)
    assert check(network, hardware=hardware).status == "right"


@pytest.mark.parametrize("spec", ["aarch64", "cuda:sm_80"])
def test_where_there_is_no_kernel(spec: str) -> None:
    assert not found(heads(20), find_hardware(spec))


@pytest.mark.parametrize("kind", ["bf16", "f16", "int8"])
def test_in_fewer_bits_it_stays_in_float32(kind: str) -> None:
    task = check_fused(varied(heads(20), kind))
    assert {dtype for dtype, _ in task.arguments} == {"float32"}


@pytest.mark.parametrize("hidden", [-torch.inf, torch.finfo(torch.float32).min])
def test_rows_that_are_hidden_entirely(hidden: float) -> None:
    mask = torch.zeros(20, 20)
    mask[3] = mask[7, 4:] = hidden

    def attend(x: torch.Tensor) -> torch.Tensor:
        return nn.functional.scaled_dot_product_attention(x, x, x, mask)

    check_fused(plain(attend, (1, 2, 20, 16)))


def causal(queries: int, keys: int, hidden: float = -torch.inf) -> torch.Tensor:
    return torch.full((queries, keys), hidden).triu(1 + keys - queries)


Attend = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]


def attention_behind(mask: torch.Tensor) -> Attend:
    return lambda q, k, v: (q @ k.transpose(-1, -2) / 4 + mask).softmax(-1) @ v


def filled_behind(mask: torch.Tensor) -> Attend:
    return lambda q, k, v: (q @ k.mT).masked_fill(mask < 0, -torch.inf).softmax(-1) @ v


def chosen_behind(mask: torch.Tensor) -> Attend:
    least = torch.finfo(torch.float32).min
    return lambda q, k, v: torch.where(mask == 0, q @ k.mT, least).softmax(-1) @ v


@pytest.mark.parametrize(
    ("attention", "as_given"),
    [
        (attention_behind, lambda mask: mask),
        (filled_behind, lambda mask: mask < 0),
        (chosen_behind, lambda mask: mask == 0),
    ],
)
@pytest.mark.parametrize("lanes", [8, 16])
@pytest.mark.parametrize(("queries", "keys"), [(71, 71), (20, 197), (197, 200)])
def test_what_a_mask_hides_from_all_is_not_computed(
    queries: int,
    keys: int,
    lanes: int,
    attention: Callable[[torch.Tensor], Attend],
    as_given: Scores,
) -> None:
    mask = causal(queries, keys)
    network = plain(attention(mask), (2, queries, 16), (2, keys, 16), (2, keys, 16))
    task = check_fused(network, lanes)
    library = tvm.build(task.mod, target=task.tvm_target())
    random = np.random.default_rng(0)
    arrays = [random.standard_normal(shape).astype("float32") for _, shape in task.arguments]
    seen = keys - queries + 24 + lanes  # Of vectors that the first block of queries reads.
    arrays[1][..., seen:] = arrays[2][:, seen:] = np.nan
    arrays[3] = as_given(mask).numpy()
    tensors = [tvm.runtime.tensor(array) for array in arrays]
    library["main"](*tensors)
    result = tensors[-1].numpy()
    assert np.isfinite(result[:, 0]).all()
    assert np.isnan(result[:, -1]).all() == (seen < keys)


@pytest.mark.parametrize(
    "mask",
    [
        causal(60, 60).flip(1),
        causal(60, 60, -1e4),
        causal(60, 60).index_fill(0, torch.tensor([30]), torch.finfo(torch.float32).min),
        torch.stack([causal(60, 60), causal(60, 60).flip(1)]),
    ],
)
def test_masks_that_hide_other_keys(mask: torch.Tensor) -> None:
    check_fused(plain(attention_behind(mask), *[(2, 60, 16)] * 3))


def test_queries_that_two_masks_leave_nothing_see_all() -> None:
    hidden = torch.finfo(torch.float32).min
    first, mask = torch.zeros(60), causal(60, 60, hidden)
    first[:3] = hidden

    def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return (q @ k.mT + first + mask).softmax(-1) @ v

    check_fused(plain(attend, *[(2, 60, 16)] * 3))


def test_extreme_scores_are_no_trouble() -> None:
    def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return (q @ k.transpose(-1, -2) * 1e4).softmax(-1) @ v

    network, hardware = plain(attend, (20, 16), (20, 16), (20, 16)), on(16)
    assert found(network, hardware)
    result = check(network, hardware=hardware)
    assert result.status == "right", result.reason
    assert np.isfinite(result.max_abs_error or 0)
