from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from costlib.space.factors import tilings


@settings(deadline=None, max_examples=60)
@given(st.integers(1, 400), st.integers(1, 4), st.sampled_from([1, 4, 64, 1000]))
def test_every_way_is_there_once(extent: int, levels: int, innermost: int) -> None:
    ways = tilings(extent, levels, innermost)
    assert (ways.factors.prod(1) == extent).all()
    assert (ways.factors[:, -1] <= innermost).all()
    assert len(np.unique(ways.factors, axis=0)) == len(ways)
    grid = np.stack(np.meshgrid(*[np.arange(1, extent + 1)] * min(levels, 2)), -1)
    if levels <= 2:
        rows = grid.reshape(-1, levels)
        wanted = (rows.prod(1) == extent) & (rows[:, -1] <= innermost)
        assert wanted.sum() == len(ways)


def test_the_number_of_ways_is_the_textbook_one() -> None:
    assert len(tilings(512, 4, 1000)) == 220  # 9 twos among 4 levels: C(12, 3)
    assert len(tilings(12, 2, 1000)) == 6


@settings(deadline=None, max_examples=30)
@given(st.integers(2, 300), st.integers(2, 4), st.integers(0, 10))
def test_neighbours_differ_by_one_prime_in_two_levels(extent: int, levels: int, seed: int) -> None:
    ways = tilings(extent, levels, 10_000)
    rng = np.random.default_rng(seed)
    start = rng.integers(len(ways), size=50)
    moved = ways.factors[ways.step(start, rng)]
    differences = (moved != ways.factors[start]).sum(1)
    assert (differences == 2).all()


def test_a_loop_of_one_has_no_neighbours() -> None:
    ways = tilings(1, 3, 64)
    assert len(ways) == 1
    assert ways.step(np.zeros(4, "int64"), np.random.default_rng(0)).tolist() == [0] * 4
