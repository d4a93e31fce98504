"""What the axes of a tensor are made of, where extents have names.

An axis is a sequence of factors, the last one running fastest: a batch of sequences laid out as
rows has the axis ``("batch", "sequence")``. A factor is a number, the name of a dimension, or that
and so many elements more or less, such as ``"sequence + 1"``. An axis of extent 1 has no factors.
Along each factor, a tensor of a larger shape holds that of the smaller one first.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest
from typing import Any

Axis = tuple["int | str", ...]
Axes = tuple[Axis, ...]


class UnpaddableError(Exception):
    """A larger shape would compute something else; the message says where."""


def axis_of(extent: Any) -> Axis:
    """Return the axis of an extent that is a number or a dimension by itself."""
    if isinstance(extent, int):
        return () if extent == 1 else (extent,)
    if extent.is_Integer:
        return axis_of(int(extent))
    if len(extent.free_symbols) == 1 and (extent - next(iter(extent.free_symbols))).is_Integer:
        return (str(extent),)
    raise UnpaddableError(f"an extent is {extent}")


def parts_of(factor: str) -> tuple[str, int]:
    """Return the dimension of a factor, and how many elements more there are."""
    name, sign, more = factor.partition(" - " if " - " in factor else " + ")
    return name, int(more or 0) * (-1 if "-" in sign else 1)


def is_static(axis: Axis) -> bool:
    """Whether no dimension is part of it."""
    return not any(isinstance(factor, str) for factor in axis)


def extent_of(axis: Axis, sizes: Mapping[str, Any]) -> Any:
    """Return the extent of an axis, given those of dimensions."""
    return math.prod(_extent(factor, sizes) for factor in axis)


def _extent(factor: int | str, sizes: Mapping[str, Any]) -> Any:
    if isinstance(factor, int):
        return factor
    name, more = parts_of(factor)
    return sizes[name] + more


def broadcast(shapes: Iterable[Axes]) -> Axes:
    """Return the axes of what is computed element by element."""
    columns = zip_longest(*(reversed(axes) for axes in shapes), fillvalue=())
    return tuple(_common(column) for column in columns)[::-1]


def _common(column: Sequence[Axis]) -> Axis:
    kinds = {axis for axis in column if axis}
    if len(kinds) > 1:
        raise UnpaddableError("axes that are laid out differently meet")
    return next(iter(kinds), ())


def reshaped(axes: Axes, extents: Sequence[Any]) -> Axes:
    """Return the axes of the same elements in another shape.

    Parameters
    ----------
    axes
        As they are.
    extents
        Of the other shape: numbers, or expressions of SymPy.
    """
    left = _merged(factor for axis in axes for factor in axis)
    return tuple(_taken(left, extent) for extent in extents)


def _taken(left: list[int | str], extent: Any) -> Axis:
    """Take the factors that an extent consists of from the front."""
    import sympy

    wanted = sympy.sympify(extent)
    taken: list[int | str] = []
    while wanted != 1:
        if not left:
            raise UnpaddableError("a reshape mixes dimensions")
        factor = left.pop(0)
        rest = sympy.cancel(wanted / _symbol(factor))
        if rest.as_numer_denom()[1] == 1:
            taken.append(factor)
            wanted = rest
        elif isinstance(factor, int) and wanted.is_Integer and factor % int(wanted) == 0:
            taken.append(int(wanted))
            left.insert(0, factor // int(wanted))
            break
        else:
            raise UnpaddableError("a reshape mixes dimensions")
    return tuple(_merged(taken))


def _symbol(factor: int | str) -> Any:
    import sympy

    if isinstance(factor, int):
        return sympy.Integer(factor)
    name, more = parts_of(factor)
    return sympy.Symbol(name, positive=True, integer=True) + more


def _merged(factors: Iterable[int | str]) -> list[int | str]:
    """Multiply numbers that follow one another."""
    found: list[int | str] = []
    for factor in factors:
        if found and isinstance(factor, int) and isinstance(found[-1], int):
            found[-1] *= factor
        elif factor != 1:
            found.append(factor)
    return found
