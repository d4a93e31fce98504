"""All programs that are one change away from a program, by the direction of the change.

Directions are finer here than :data:`costlib.space.directions.DIRECTIONS`: of a tile size they say
between which levels iterations move. Levels are told apart by what they are for: the innermost is
what the compiler vectorises, the one around it what stays in registers or in the nearest cache, and
all others are outer ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from costlib.arrays import Integers
from costlib.space.program import Program
from costlib.space.vectors import DecisionVectors

INNER, MIDDLE, OUTER = "inner", "middle", "outer"

_TILES = {"tile_spatial": "spatial", "tile_reduction": "reduction"}

_STOCK = {"tiles": 0.9, "compute_location": 0.05, "unroll": 0.03, "parallel": 0.02}
"""MetaSchedule's probabilities on CPUs; of what there is only on GPUs, those of unrolling."""


class Change(NamedTuple):
    """A program that is one change away from another.

    Attributes
    ----------
    direction
        What is changed.
    words
        What exactly: which decision, and from what to what.
    chance
        That MetaSchedule's mutators draw it, of all changes.
    program
        The changed program; it need not be valid.
    """

    direction: str
    words: str
    chance: float
    program: Program


def changes(vectors: DecisionVectors, program: Program) -> list[Change]:
    """Return all programs that are one change away.

    A tile size moves a factor of any size to another level, as MetaSchedule's mutator does it; any
    other decision takes another of its values.

    Parameters
    ----------
    vectors
        The decisions of the program's sketch, whose lists hold all of the program's.
    program
        What is changed.
    """
    (row,) = vectors.encode([program])
    places = [place for place, size in enumerate(vectors.sizes) if size > 1]
    kinds = Counter(_kind(vectors.directions[place]) for place in places)
    found = []
    for place in places:
        kind = _kind(vectors.directions[place])
        share = _STOCK.get(kind, _STOCK["unroll"]) / kinds[kind]
        for choice, direction, words, chance in _choices(vectors, place, int(row[place])):
            vector = row.copy()
            vector[place] = choice
            (changed,) = vectors.decode(vector[None])
            found.append(Change(direction, words, share * chance, changed))
    return found


def _kind(direction: str) -> str:
    return "tiles" if direction in _TILES else direction


def _choices(
    vectors: DecisionVectors, place: int, choice: int
) -> Iterator[tuple[int, str, str, float]]:
    """Yield the other values of a decision, with direction, words and chance of each."""
    name, values = vectors.directions[place], vectors.values[place]
    if name in _TILES:
        moves = list(_moves(np.array(values, "int64"), choice))
        sources = {move.source for move in moves}
        pairs = Counter((move.source, move.target) for move in moves)
        levels = len(values[choice])
        for move in moves:
            direction = f"{_TILES[name]} {_pair(move.source, move.target, levels)}"
            words = f"{place}: {move.source} to {move.target} by {move.factor}"
            count = pairs[move.source, move.target]
            yield move.way, direction, words, 1 / (len(sources) * (levels - 1) * count)
        return
    for other, value in enumerate(values):
        if other != choice:
            words = f"{place}: {values[choice]} to {value}"
            yield other, name, words, 1 / (len(values) - 1)


class _Move(NamedTuple):
    way: int
    source: int
    target: int
    factor: int


def _moves(factors: Integers, choice: int) -> Iterator[_Move]:
    """Find the ways to tile that differ from one by a factor moved from a level to another."""
    own = factors[choice]
    differ = factors != own
    for way in np.flatnonzero(differ.sum(1) == 2).tolist():
        one, other = np.flatnonzero(differ[way]).tolist()
        source, target = (one, other) if factors[way, one] < own[one] else (other, one)
        factor, rest = divmod(int(own[source]), int(factors[way, source]))
        if rest == 0:
            yield _Move(way, source, target, factor)


def _pair(source: int, target: int, levels: int) -> str:
    return f"{_level(source, levels)} to {_level(target, levels)}"


def _level(level: int, levels: int) -> str:
    if level == levels - 1:
        return INNER
    return MIDDLE if level == levels - 2 and levels > 2 else OUTER
