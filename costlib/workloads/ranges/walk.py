"""What the rules of operators are made with: what they may ask for, and where they are entered.

The rule of an operator says of what its result's axes consist, and asks for each axis along which
it mixes elements that those beyond the smaller extent be filled with what changes nothing: zeros
where it sums, minus infinity where it takes the largest. What no rule knows is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from costlib.workloads.ranges.labels import (
    Axes,
    Axis,
    UnpaddableError,
    is_static,
)

TAKES_SIZES = {
    *("view", "reshape", "_unsafe_view", "flatten", "unflatten", "_reshape_copy", "expand"),
    *("full", "zeros", "ones", "empty", "new_zeros", "new_ones", "new_full", "new_empty"),
    *("arange", "slice", "native_group_norm", "iota", "full_like"),
}
"""Operators whose arguments may depend on the size: they say what shape comes out."""

COMPUTES_WITH_SIZES = {*("add", "sub", "mul", "div"), *("eq", "ne", "lt", "le", "gt", "ge")}
"""Operators that compute the same with a tensor that is the size."""


class Walk(Protocol):
    """What a rule is told of a program, and may ask for."""

    def axes(self, node: Any) -> Axes:
        """Return the axes of an operator's argument."""

    def extents(self, node: Any, output: int | None = None) -> list[Any]:
        """Return the extents of a result: numbers, or expressions of SymPy."""

    def check_untouched(self, node: Any) -> None:
        """Raise unless a tensor holds only what some input of the larger shape gives."""

    def is_count(self, node: Any) -> bool:
        """Whether a tensor's integers are counted from 0 upwards, so that none is negative."""

    def fill(self, node: Any, argument: int, axis: int, value: float) -> None:
        """Replace what lies beyond the smaller extent of an argument, unless it is that already."""

    def average(self, node: Any, axes: Sequence[int]) -> None:
        """Replace a mean by a sum, divided by how many elements the smaller shape has."""

    def count_from_end(self, node: Any, axis: int) -> None:
        """Replace an index from the end of an axis by one from the end of the smaller shape."""

    def join(self, node: Any, parts: Sequence[Any], number: int) -> None:
        """Replace a concatenation by one where the next part begins where the smaller one ends."""

    def note_zeros(self, node: Any, axis: int) -> None:
        """Note that a result is zero beyond the smaller extent."""


Rule = Callable[[Any, Walk], Any]
RULES: dict[str, Rule] = {}
"""By the names of ATen's operators."""


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Enter a rule for operators, ATen's if they do not say whose."""

    def enter(rule: Rule) -> Rule:
        RULES.update({name if "." in name else f"aten.{name}": rule for name in names})
        return rule

    return enter


def argument(node: Any, number: int, name: str, default: Any = None) -> Any:
    """Return an operator's argument, given by position or by name."""
    if number < len(node.args):
        return node.args[number]
    return node.kwargs.get(name, default)


def fixed_number(value: Any, what: str) -> int:
    """Return a number that an operator is called with, which must not depend on the size."""
    if not isinstance(value, int):
        raise UnpaddableError(f"{what} depends on the size")
    return value


def axis_number(number: int, rank: int) -> int:
    """Return which axis it is, counted from the first one."""
    return number % max(rank, 1)


def axis_numbers(value: Any, rank: int) -> list[int]:
    """Return axes as they are given: none, one or several."""
    if value is None or value == []:
        return list(range(rank))
    return [axis_number(n, rank) for n in ([value] if isinstance(value, int) else value)]


def check_static(axes: Axes, numbers: Sequence[int]) -> None:
    """Raise where an operator mixes elements along a dimension."""
    for number in numbers:
        if not is_static(axes[number]):
            raise UnpaddableError("it mixes elements along a dimension")


def check_single(axis: Axis) -> None:
    """Raise where an index would count through several dimensions, which are laid out anew."""
    if not is_static(axis) and len(axis) > 1:
        raise UnpaddableError("an index counts through several dimensions")


def without(axes: Axes, numbers: Sequence[int], keepdim: Any) -> Axes:
    """Return what is left without some axes, or with an extent of 1 along them."""
    if keepdim:
        return tuple(() if n in numbers else axis for n, axis in enumerate(axes))
    return tuple(axis for n, axis in enumerate(axes) if n not in numbers)
