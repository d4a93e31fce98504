"""Which extents of ranges are compiled, so that little is computed in vain.

A shape between two points is computed by the larger one, which takes as long as that does. So the
points are those that keep the padding small, which is how many times as large the point that serves
an extent is, on average over all extents of the range. Both ends are points; the others are chosen
among extents of three significant bits, which can be tiled and are at most a quarter apart. There
are as few as serve each extent with a point that is at most 1.3 times as large, or as many as can
be afforded if that is less.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np

from costlib.workloads.ranges.dimension import Dimension

_MOST_PADDED = 1.3
"""How many times as large as an extent the point is that serves it, if there may be so many."""

_SIGNIFICANT = 3
"""Bits of a point that are not zero."""

_SUMMED = 64
"""From here on a harmonic number is known to ten digits without adding up."""


def columns_of(dims: Sequence[Dimension], most: int) -> list[tuple[int, ...]]:
    """Choose extents of each dimension, so that there are at most so many combinations.

    Both ends of each are always among them. A point goes to the dimension where it saves most, for
    the combinations that it adds.
    """
    choices = [_choices(dim, most) for dim in dims]
    chosen = [0] * len(dims)
    while True:
        columns = [found[n] for found, n in zip(choices, chosen, strict=True)]
        count = math.prod(map(len, columns))
        gains = {
            place: _gain(dims[place], columns[place], choices[place][n + 1])
            for place, n in enumerate(chosen)
            if n + 1 < len(choices[place])
            and count // len(columns[place]) * (len(columns[place]) + 1) <= most
        }
        if not gains:
            return columns
        chosen[max(gains, key=lambda place: gains[place])] += 1


def expected_padding(dim: Dimension, points: Sequence[int]) -> float:
    """Return how many times as large as an extent the point is that serves it, on average."""
    ends = [_begin(dim) - 1, *points]
    total = sum(_padded(a, b) for a, b in itertools.pairwise(ends))
    return total / (dim.high - ends[0])


def most_padding(dim: Dimension, points: Sequence[int]) -> float:
    """Return how many times as large the point that serves an extent is at most."""
    ends = [_begin(dim) - 1, *points]
    return max(b / (a + 1) for a, b in itertools.pairwise(ends))


def _choices(dim: Dimension, most: int) -> list[tuple[int, ...]]:
    """Return the best points, the fewest first, until they are near enough to each other."""
    first = _begin(dim)
    ways: dict[int, tuple[float, tuple[int, ...]]] = {first: (1.0, (first,))}
    candidates = [*_round_extents(first + 1, dim.high - 1), dim.high]
    if first == dim.high:
        return [(first,)]
    found = []
    for _ in range(2, max(most, 2) + 1):
        ways = {
            b: min((cost + _padded(a, b), (*way, b)) for a, (cost, way) in ways.items() if a < b)
            for b in candidates
            if any(a < b for a in ways)
        }
        if dim.high not in ways:
            break
        found.append(ways[dim.high][1])
        if most_padding(dim, found[-1]) <= _MOST_PADDED:
            break
    return found


def _gain(dim: Dimension, points: Sequence[int], more: Sequence[int]) -> float:
    """Return what one point more saves, for what it multiplies the number of combinations by."""
    saved = math.log(expected_padding(dim, points) / expected_padding(dim, more))
    return saved / math.log(len(more) / len(points))


def _padded(before: int, point: int) -> float:
    """Add up how many times as large as each extent behind ``before`` a point is."""
    return point * (_harmonic(point) - _harmonic(before))


def _harmonic(count: int) -> float:
    """Return the sum of 1, 1/2 and so on, of so many."""
    if count < _SUMMED:
        return math.fsum(1 / n for n in range(1, count + 1))
    middle = count + 0.5
    return math.log(middle) + float(np.euler_gamma) + 1 / (24 * middle**2)


def _begin(dim: Dimension) -> int:
    """Return the least point: 1 serves 0, for which nothing can be compiled."""
    return max(dim.low, 1)


def _round_extents(low: int, high: int) -> list[int]:
    """Return the extents of few significant bits."""
    return [
        leading << shift
        for shift in range(max(high, 1).bit_length())
        for leading in range(1 if shift == 0 else 1 << (_SIGNIFICANT - 1), 1 << _SIGNIFICANT)
        if low <= leading << shift <= high
    ]
