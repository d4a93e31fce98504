"""Programs as a language: what a tensor language model reads and writes (after TLM, OSDI'24).

A sequence says what hardware, task and sketch it is about and what all its decisions are to be made
on, then makes them one by one. Numbers are written by their prime factors, so that an extent that
was never seen is still spelled in known tokens: a tile size is the exponents of the loop's primes
at each level, innermost first, and what the outermost level gets is what is left. A compute
location is written as itself, every other decision as an index into the values that it can take.
Which tokens may come next is therefore always known (:meth:`Grammar.allowed`), and whatever is
written under that constraint is a vector of :class:`costlib.space.vectors.DecisionVectors`, and
back, without loss.
"""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from costlib.arrays import Bools, Integers
from costlib.errors import InputError
from costlib.hardware import Hardware
from costlib.identity import content_id
from costlib.space.factors import prime_factors
from costlib.space.program import Sketch
from costlib.space.vectors import DecisionVectors

_SIZES = {
    "special": 2,
    "quality": 8,
    "kind": 8,
    "word": 48,
    "number": 96,
    "instruction": 24,
    "slot": 16,
    "prime": 8,
    "exponent": 32,
    "index": 128,
}
"""How many tokens there are of each sort; they are numbered in this order."""

_STARTS: dict[str, int] = dict(
    zip(_SIZES, itertools.accumulate([0, *_SIZES.values()]), strict=False)
)

VOCABULARY = sum(_SIZES.values())
BEGIN = 1
"""What a sequence starts with; 0 fills up those of a batch that are shorter than others."""
QUALITIES = _SIZES["quality"]
"""Levels of quality that a program can be said to have."""

_PRIMES = (2, 3, 5, 7, 11, 13, 17)
_WORDS = 6
_OTHER_SLOTS = {"SampleCategorical": 8, "SampleComputeLocation": 9}
_ANY_OTHER_SLOT = 10
_FIRST_LOCATION = -2
"""Compute locations count from here: inlined, at the root, then a loop."""
_MOST_OF_A_KIND = 3


def token(sort: str, number: int) -> int:
    """Return the token of a sort; numbers beyond its last are its last."""
    return _STARTS[sort] + min(max(number, 0), _SIZES[sort] - 1)


def quality_of(label: float) -> int:
    """Return the token that says how good a program is, by a label in (0, 1]."""
    return token("quality", int(label * QUALITIES))


def prompt(name: str, flops: float, hardware: Hardware, sketch: Sketch, label: float) -> list[int]:
    """Write down what comes before the decisions.

    Parameters
    ----------
    name, flops
        Of the task.
    hardware, sketch
        What the program is for, and which sketch it fills in.
    label
        How good it is, see :func:`quality_of`.
    """
    words = re.findall(r"[a-z0-9]+", name.lower())[:_WORDS]
    counts = Counter(instruction[0] for instruction in sketch.instructions)
    return [
        BEGIN,
        quality_of(label),
        token("kind", _hash(hardware.kind, "kind")),
        *(_number(n) for n in (hardware.num_cores, hardware.vector_bits)),
        *(_number(size) for size in hardware.cache_bytes[:3]),
        _number(flops),
        *(token("word", _hash(word, "word")) for word in words),
        *(
            token("instruction", _hash(kind, "instruction"))
            for kind, count in sorted(counts.items())
            for _ in range(min(count, _MOST_OF_A_KIND))
        ),
    ]


@dataclass(frozen=True)
class _Choice:
    """A token to be chosen: the exponent of a prime at a level, or an index."""

    place: int
    level: int = 0
    prime: int = 0


@dataclass(frozen=True)
class _Tile:
    """A loop to be tiled."""

    extent: int
    primes: list[int]
    exponents: list[int]
    levels: int
    max_innermost: int
    index: dict[tuple[int, ...], int]


class Grammar:
    """How the decisions of a sketch are written.

    Attributes
    ----------
    layout
        For each position a token, where it is given, or what is chosen there.

    Raises
    ------
    InputError
        A decision has more values, or a loop more iterations, than there are tokens for.
    """

    def __init__(self, vectors: DecisionVectors) -> None:
        self._vectors = vectors
        self._tiles: dict[int, _Tile] = {}
        self._codes: dict[int, Integers] = {}
        given: list[int] = []
        decisions: list[int | _Choice] = []
        for place, values in enumerate(vectors.values):
            kind, _, attributes, _ = vectors.sketch.instructions[vectors.positions[place]]
            if kind == "SamplePerfectTile":
                tile = self._tiles[place] = _tile(values, attributes)
                slot = token("slot", tile.levels)
                given.append(slot)
                for prime, exponent in zip(tile.primes, tile.exponents, strict=True):
                    number = _PRIMES.index(prime) if prime in _PRIMES else len(_PRIMES)
                    given += [token("prime", number), token("exponent", exponent)]
                choices = [
                    _Choice(place, level, number)
                    for level in range(tile.levels - 1, 0, -1)
                    for number in range(len(tile.primes))
                ]
            else:
                slot = token("slot", _OTHER_SLOTS.get(kind, _ANY_OTHER_SLOT))
                self._codes[place] = _codes(kind, values)
                given += [slot, token("index", len(values) - 1)]
                choices = [_Choice(place)]
            decisions += [slot, *choices]
        self.layout: list[int | _Choice] = [*given, *decisions]

    def encode(self, rows: Integers) -> Integers:
        """Write vectors, int64 `n x d`, as tokens, `n x len(layout)`."""
        tokens = np.empty((len(rows), len(self.layout)), "int64")
        tables = {place: np.asarray(self._vectors.values[place], "int64") for place in self._tiles}
        for position, entry in enumerate(self.layout):
            if isinstance(entry, int):
                tokens[:, position] = entry
            elif entry.place in self._tiles:
                prime = self._tiles[entry.place].primes[entry.prime]
                factors = tables[entry.place][rows[:, entry.place], entry.level]
                tokens[:, position] = _STARTS["exponent"] + _exponent_of(prime, factors)
            else:
                tokens[:, position] = self._codes[entry.place][rows[:, entry.place]]
        return tokens

    def decode(self, tokens: Integers) -> Integers:
        """Read what :meth:`encode` wrote."""
        rows = np.zeros((len(tokens), len(self._vectors.values)), "int64")
        factors = {
            place: np.ones((len(tokens), tile.levels), "int64")
            for place, tile in self._tiles.items()
        }
        for position, entry in enumerate(self.layout):
            if isinstance(entry, int):
                continue
            if entry.place in self._tiles:
                prime = self._tiles[entry.place].primes[entry.prime]
                exponent = tokens[:, position] - _STARTS["exponent"]
                factors[entry.place][:, entry.level] *= prime**exponent
            else:
                codes = self._codes[entry.place]
                order = np.argsort(codes)
                found = np.searchsorted(codes, tokens[:, position], sorter=order)
                rows[:, entry.place] = order[found]
        for place, tile in self._tiles.items():
            inner = factors[place]
            inner[:, 0] = tile.extent // inner[:, 1:].prod(1)
            rows[:, place] = [tile.index[tuple(row)] for row in inner.tolist()]
        return rows

    def allowed(self, position: int, tokens: Integers) -> Bools:
        """Return which tokens may come at a position, bool `n x VOCABULARY`.

        Parameters
        ----------
        position
            Index into :attr:`layout` of something that is chosen.
        tokens
            int64 `n x position`: what was written before.
        """
        entry = self.layout[position]
        assert isinstance(entry, _Choice)
        mask = np.zeros((len(tokens), VOCABULARY), bool)
        if entry.place not in self._tiles:
            mask[:, self._codes[entry.place]] = True
            return mask
        tile = self._tiles[entry.place]
        left = np.full(len(tokens), tile.exponents[entry.prime])
        product = np.ones(len(tokens), "int64")
        for before in range(position - 1, -1, -1):
            past = self.layout[before]
            if isinstance(past, int) or past.place != entry.place:
                break
            exponent = tokens[:, before] - _STARTS["exponent"]
            if past.prime == entry.prime:
                left = left - exponent
            if past.level == tile.levels - 1:
                product = product * tile.primes[past.prime] ** exponent
        if entry.level == tile.levels - 1:
            room = np.log(tile.max_innermost / product) / math.log(tile.primes[entry.prime])
            left = np.minimum(left, np.floor(room + 1e-9).astype("int64"))
        start, size = _STARTS["exponent"], _SIZES["exponent"]
        mask[:, start : start + size] = np.arange(size) <= left[:, None]
        return mask


def _tile(values: list[list[int]], attributes: Sequence[Any]) -> _Tile:
    extent = math.prod(values[0])
    primes = prime_factors(extent)
    exponents = [int(_exponent_of(prime, np.array([extent]))[0]) for prime in primes]
    if max(exponents, default=0) >= _SIZES["exponent"]:
        raise InputError(f"a loop of {extent} iterations cannot be written down")
    return _Tile(
        extent=extent,
        primes=primes,
        exponents=exponents,
        levels=len(values[0]),
        max_innermost=int(attributes[1]) if int(attributes[1]) > 0 else extent,
        index={tuple(value): number for number, value in enumerate(values)},
    )


def _codes(kind: str, values: Sequence[Any]) -> Integers:
    """Return a token for each value of a decision that is no tile size."""
    numbers = list(range(len(values)))
    if kind == "SampleComputeLocation" and all(isinstance(value, int) for value in values):
        numbers = [int(value) - _FIRST_LOCATION for value in values]
    if not all(0 <= number < _SIZES["index"] for number in numbers):
        raise InputError(f"a {kind} of {len(values)} values cannot be written down")
    return _STARTS["index"] + np.array(numbers, "int64")


def _exponent_of(prime: int, factors: Integers) -> Integers:
    exponents = np.zeros(len(factors), "int64")
    power = prime
    while (divides := factors % power == 0).any():
        exponents += divides
        power *= prime
    return exponents


def _number(value: float) -> int:
    """Write a number by its logarithm, in steps of a half."""
    return token("number", round(2 * math.log2(max(value, 1))))


def _hash(word: str, sort: str) -> int:
    return int(content_id(word)[:8], 16) % _SIZES[sort]
