"""How many keys masks of attention let a query see."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from costlib.workloads.attention_masks import keys_ahead


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
