"""The points of ranges: few, and near to what they serve."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from costlib.workloads.ranges.dimension import Dimension
from costlib.workloads.ranges.points import columns_of, expected_padding, most_padding

ends = st.tuples(st.integers(0, 600), st.integers(0, 600)).map(lambda p: (p[0], p[0] + p[1] + 1))
dims = st.lists(ends, min_size=1, max_size=3).map(
    lambda found: [Dimension.of(f"d{n}", *pair) for n, pair in enumerate(found)]
)


def served(dim: Dimension, points: tuple[int, ...]) -> list[float]:
    """How many times as large as each extent the next larger point is."""
    extents = range(max(dim.low, 1), dim.high + 1)
    return [min(p for p in points if p >= n) / n for n in extents]


@given(dims, st.integers(1, 40))
def test_no_more_than_there_may_be_and_both_ends_are_among_them(dims, most: int) -> None:
    columns = columns_of(dims, most)
    assert math.prod(map(len, columns)) <= max(most, 2 ** len(dims))
    for dim, points in zip(dims, columns, strict=True):
        assert {max(dim.low, 1), dim.high} <= set(points) <= set(range(1, dim.high + 1))
        assert list(points) == sorted(set(points))


@given(dims, st.integers(1, 40))
def test_more_points_pad_less_until_no_shape_is_padded_by_a_third(dims, most: int) -> None:
    for dim in dims:
        (few,), (more,), (all_,) = (columns_of([dim], n) for n in (most, most + 1, 1000))
        assert expected_padding(dim, more) <= expected_padding(dim, few)
        assert max(served(dim, all_)) <= 1.3
        assert max(served(dim, few)) <= 1.3 or len(few) == max(most, 2)


@given(ends, st.integers(2, 12))
def test_padding_is_what_it_adds_up_to(pair: tuple[int, int], most: int) -> None:
    dim = Dimension.of("n", *pair)
    (points,) = columns_of([dim], most)
    np.testing.assert_allclose(expected_padding(dim, points), np.mean(served(dim, points)))
    np.testing.assert_allclose(most_padding(dim, points), max(served(dim, points)))


@pytest.mark.parametrize("count", [3, 4, 5])
def test_no_other_round_extents_pad_less(count: int) -> None:
    dim = Dimension.of("sequence", 16, 128)
    (points,) = columns_of([dim], count)
    between = [20, 24, 28, 32, 40, 48, 56, 64, 80, 96, 112]
    others = itertools.combinations(between, count - 2)
    least = min(expected_padding(dim, (16, *some, 128)) for some in others)
    np.testing.assert_allclose(expected_padding(dim, points), least)


def test_a_range_of_sequences_is_padded_by_a_twelfth_on_average() -> None:
    dim = Dimension.of("sequence", 16, 128)
    (points,) = columns_of([dim], 32)
    assert len(points) == 12
    assert expected_padding(dim, points) < 13 / 12 + 0.001
    assert expected_padding(dim, columns_of([dim], 6)[0]) > 7 / 6


def test_a_single_extent_is_a_point() -> None:
    dims = [Dimension.of("batch", 4, 4), Dimension.of("sequence", 7, 9)]
    assert columns_of(dims, 1) == [(4,), (7, 9)]
