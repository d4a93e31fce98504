"""A named dimension with a range."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Self

from costlib.errors import InputError
from costlib.frozen import Frozen

Dims = Mapping[str, tuple[int, int]]
"""Ranges of dimensions by their names, both ends included."""

_DIMENSION = re.compile(r"([^=\s]+)=(-?\d+):(-?\d+)")


class Dimension(Frozen):
    """A dimension by its name, with the smallest and largest extent, both included."""

    name: str
    low: int
    high: int

    @classmethod
    def of(cls, name: str, low: int, high: int) -> Self:
        """Take a range; raise :class:`InputError` if it is none."""
        if low < 0:
            raise InputError(f"the range {name}={low}:{high} begins below 0, the least extent")
        if low > high:
            raise InputError(f"the range {name}={low}:{high} is empty; write {name}={high}:{low}")
        if high == 0:
            raise InputError(f"the range {name}=0:0 holds nothing but 0")
        return cls(name=name, low=low, high=high)

    def __str__(self) -> str:
        return f"{self.name}={self.low}:{self.high}"

    def __len__(self) -> int:
        return self.high - self.low + 1


def parse_dims(texts: Sequence[str]) -> dict[str, tuple[int, int]]:
    """Read ranges as they are written on a command line, such as ``batch=1:32``.

    Raises
    ------
    InputError
        One is not written so, is empty, begins below 1, or comes twice.
    """
    found: dict[str, tuple[int, int]] = {}
    for text in texts:
        match = _DIMENSION.fullmatch(text)
        if match is None:
            raise InputError(f"'{text}' is no range of a dimension; write e.g. sequence=16:128")
        one = Dimension.of(match[1], int(match[2]), int(match[3]))
        if one.name in found:
            raise InputError(f"the dimension '{one.name}' has two ranges; give it one")
        found[one.name] = one.low, one.high
    return found


def check_names(name: str, wanted: Dims, known: Mapping[str, Any]) -> None:
    """Raise :class:`InputError` for a dimension that a network does not have."""
    for dim in wanted:
        if dim not in known:
            has = f"it has {', '.join(known)}" if known else "its shapes are fixed"
            raise InputError(f"{name} has no dimension '{dim}'; {has}")


def name_at(name: str, dims: Sequence[Dimension], sizes: Sequence[int]) -> str:
    """Name a network at extents of its dimensions."""
    pairs = zip(dims, sizes, strict=True)
    return f"{name}@{','.join(f'{dim.name}={extent}' for dim, extent in pairs)}"
