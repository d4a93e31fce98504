"""How many queries a kernel of attention takes at a time, and how many keys they see."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from costlib.workloads.attention_blocks import Attention, Machine, keys_ahead, rows_of_block


def attention_of(batch: int, queries: int, keys: int) -> Attention:
    def nothing(_: Sequence[object]) -> list[object]:
        return []

    return Attention(
        batch=(batch,),
        queries=queries,
        keys=keys,
        depth=64,
        width=64,
        query=nothing,
        key=nothing,
        value=nothing,
        steps=(),
        is_safe=False,
        ahead=None,
        place=nothing,
    )


@pytest.mark.parametrize("queries", [16, 64, 128, 197, 1500])
@pytest.mark.parametrize("num_cores", [1, 2, 64])
def test_blocks_leave_no_core_idle_and_fit_its_cache(queries: int, num_cores: int) -> None:
    what, machine = attention_of(12, queries, queries), Machine(16, 4, num_cores, 1 << 20)
    rows = rows_of_block(what, machine)
    assert 1 <= rows <= queries
    assert rows <= 6 or 4 * rows * queries <= machine.cache_bytes / 3
    blocks = 12 * math.ceil(queries / rows)
    busiest = math.ceil(blocks / num_cores) * rows
    assert busiest <= 1.25 * max(12 * queries / num_cores, rows) + 6


def causal(queries: int, keys: int, hidden: float = -np.inf) -> np.ndarray:
    return np.triu(np.full((queries, keys), hidden, "float32"), 1 + keys - queries)


@given(st.integers(2, 40), st.integers(0, 40), st.sampled_from([-np.inf, -1e38]))
def test_a_causal_mask_hides_what_comes_later(queries: int, before: int, hidden: float) -> None:
    assert keys_ahead(causal(queries, queries + before, hidden)[None, None]) == before


def test_where_a_mask_lets_all_be_seen() -> None:
    entirely = causal(6, 6)
    entirely[3] = -np.inf
    unknown = causal(6, 6)
    unknown[0, 5] = np.nan
    for mask in (np.zeros((6, 6)), causal(6, 6)[:, ::-1], causal(6, 6, -1e4), entirely, unknown):
        assert keys_ahead(mask) is None


def test_of_several_masks_the_one_that_hides_least_counts() -> None:
    masks = np.zeros((3, 8, 8))
    for ahead, mask in zip((0, 2, 5), masks, strict=True):
        mask[np.triu_indices(8, 1 + ahead)] = -np.inf
    assert keys_ahead(masks) == 5
    assert keys_ahead(masks[:2]) == 2
