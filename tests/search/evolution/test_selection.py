"""Which candidates are measured together."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from costlib.search.evolution.selection import select_batch


@given(st.integers(0, 30), st.integers(1, 12), st.floats(0, 1), st.integers(0, 99))
def test_a_batch_is_as_large_as_can_be_and_has_no_repeats(
    n: int, count: int, epsilon: float, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    chosen = select_batch(rng.normal(size=n), count, rng, epsilon)
    assert len(chosen) == len(set(chosen)) == min(n, count)


def test_the_best_are_chosen() -> None:
    scores = np.array([3.0, 1.0, 2.0, 5.0])
    assert select_batch(scores, 3, np.random.default_rng(0)) == [3, 0, 2]


def test_chance_draws_what_scores_do_not() -> None:
    chosen = select_batch(np.arange(100.0), 10, np.random.default_rng(0), epsilon=0.5)
    assert 0 < sum(index < 90 for index in chosen) < 10
