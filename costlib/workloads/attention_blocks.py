"""What attention computes, on what machine, and how many queries at a time."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

TILE_ROWS = 6
"""Of a tile: each vector that is loaded is multiplied with so many numbers."""

_FEWEST_ROWS = 3
"""Of a tile at the end of a block."""

_MOST_ROWS = 66
"""Of a block."""

_MOST_ROWS_AHEAD = 24
"""Of a block where a mask hides what follows: all rows of it are given what its last one sees."""

_CACHE_SHARE = 4
"""Scores of a block take at most this part of what cache a core has for itself."""

Load = Callable[[Sequence[Any]], Any]
"""Returns the number that indices stand for."""


class Step(NamedTuple):
    """What is done to a score: ``compute`` takes it, and what its operands are in its place."""

    compute: Callable[..., Any]
    operands: tuple[Load, ...]


@dataclass(frozen=True)
class Attention:
    """What to compute.

    Attributes
    ----------
    batch
        Leading extents, heads among them.
    queries, keys
        How many there are of each.
    depth, width
        Numbers of a query or key, and of a value.
    query, key, value
        Load a number: of indices of the batch and then of a query and its depth, of a depth and a
        key, or of a key and its width. Neighbours along the last index are neighbours in memory;
        there are as many keys as make whole vectors.
    keys_are_rows
        Whether neighbours along the depth of a key are neighbours in memory instead, and there are
        no more keys than there are.
    steps
        What is done to the scores before the softmax; operands are given indices of the batch, a
        query and a key.
    is_safe
        Whether the softmax of scores that all are minus infinity is 0.
    ahead
        How many keys beyond its own number a query sees at most: a causal mask hides the others.
        ``None`` if it may see all.
    place
        Turns indices of the batch, a query and a width into those of the result.
    """

    batch: tuple[int, ...]
    queries: int
    keys: int
    depth: int
    width: int
    query: Load
    key: Load
    value: Load
    keys_are_rows: bool
    steps: tuple[Step, ...]
    is_safe: bool
    ahead: int | None
    place: Callable[[Sequence[Any]], Sequence[Any]]


@dataclass(frozen=True)
class Machine:
    """What to compute it on.

    Attributes
    ----------
    lanes
        Numbers of a vector.
    vectors
        Of a tile, with all rows of which they leave room in the registers.
    num_cores
        How many share the work.
    cache_bytes
        What each has for itself.
    """

    lanes: int
    vectors: int
    num_cores: int
    cache_bytes: int


def rows_of_block(what: Attention, machine: Machine) -> int:
    """Return of how many queries the scores are computed before they are used.

    As many as leave no core idle while others still compute, and rather more than fewer.
    """
    row_bytes = 4 * -(-what.keys // machine.lanes) * machine.lanes
    most = _MOST_ROWS if what.ahead is None else _MOST_ROWS_AHEAD
    most = min(machine.cache_bytes // _CACHE_SHARE // row_bytes, most)
    most = min(max(most, TILE_ROWS), what.queries)

    def rows_of_a_core(rows: int) -> int:
        blocks = math.prod(what.batch) * -(-what.queries // rows)
        return -(-blocks // machine.num_cores) * rows

    fitting = [n for n in range(1, most + 1) if n % TILE_ROWS == 0 or n % TILE_ROWS >= _FEWEST_ROWS]
    return min(fitting or [most], key=lambda rows: (rows_of_a_core(rows), -rows))
