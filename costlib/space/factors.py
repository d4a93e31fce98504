"""All ways to tile a loop, and the ways that are one step apart."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

from costlib.arrays import Integers


@dataclass(frozen=True)
class Tilings:
    """Every way to split a loop perfectly into levels.

    Attributes
    ----------
    factors
        int64 `w x levels`: the tile sizes of each of `w` ways, outermost first, in
        lexicographic order.
    neighbours, starts
        int64: the ways that differ from way `i` by moving one prime factor from a level to another
        are ``neighbours[starts[i]:starts[i + 1]]``.
    """

    factors: Integers
    neighbours: Integers
    starts: Integers

    def __len__(self) -> int:
        """How many ways there are."""
        return len(self.factors)

    def step(self, ways: Integers, rng: np.random.Generator) -> Integers:
        """Move each of `n` ways to a neighbour; one without stays where it is."""
        counts = np.diff(self.starts)[ways]
        can_move = counts > 0
        chosen = self.starts[ways] + (rng.random(len(ways)) * counts).astype("int64")
        moved = ways.copy()
        moved[can_move] = self.neighbours[chosen[can_move]]
        return moved


@functools.lru_cache(maxsize=4096)
def tilings(extent: int, levels: int, max_innermost: int) -> Tilings:
    """Return every way to tile a loop.

    Parameters
    ----------
    extent
        Iterations of the loop.
    levels
        How many loops it is split into.
    max_innermost
        The innermost of them has at most this many iterations.
    """
    rows = [row for row in _splits(extent, levels) if row[-1] <= max_innermost]
    factors = np.array(sorted(rows), "int64").reshape(-1, levels)
    known = {tuple(row): number for number, row in enumerate(factors.tolist())}
    neighbours: list[int] = []
    starts = [0]
    primes = prime_factors(extent)
    for row in factors.tolist():
        reached = {
            known[moved]
            for prime in primes
            for source in range(levels)
            if row[source] % prime == 0
            for target in range(levels)
            if target != source and (moved := _moved(row, source, target, prime)) in known
        }
        neighbours += sorted(reached)
        starts.append(len(neighbours))
    return Tilings(factors, np.array(neighbours, "int64"), np.array(starts, "int64"))


def _splits(extent: int, levels: int) -> list[tuple[int, ...]]:
    if levels == 1:
        return [(extent,)]
    return [
        (first, *rest)
        for first in _divisors(extent)
        for rest in _splits(extent // first, levels - 1)
    ]


@functools.lru_cache(maxsize=4096)
def _divisors(number: int) -> list[int]:
    small = [d for d in range(1, int(number**0.5) + 1) if number % d == 0]
    return sorted({*small, *(number // d for d in small)})


def prime_factors(number: int) -> list[int]:
    """Return the primes that divide a number, each once, the smallest first."""
    found = []
    divisor = 2
    while divisor * divisor <= number:
        if number % divisor == 0:
            found.append(divisor)
            while number % divisor == 0:
                number //= divisor
        divisor += 1
    return [*found, number] if number > 1 else found


def _moved(row: list[int], source: int, target: int, prime: int) -> tuple[int, ...]:
    moved = list(row)
    moved[source] //= prime
    moved[target] *= prime
    return tuple(moved)
