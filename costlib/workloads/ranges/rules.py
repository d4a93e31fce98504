"""Which axes an operator mixes: the rules by which a larger shape may compute a smaller one.

The rule of an operator says of what its result's axes consist, and asks for each axis along which
it mixes elements that those beyond the smaller extent be filled with what changes nothing: zeros
where it sums, minus infinity where it takes the largest. What no rule knows is refused.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from costlib.workloads.ranges.labels import (
    Axes,
    Axis,
    UnpaddableError,
    axis_of,
    broadcast,
    is_static,
    reshaped,
)

TAKES_SIZES = {
    *("view", "reshape", "_unsafe_view", "flatten", "unflatten", "_reshape_copy", "expand"),
    *("full", "zeros", "ones", "empty", "new_zeros", "new_ones", "new_full", "new_empty"),
    *("arange", "slice", "native_group_norm", "iota", "full_like"),
}
"""Operators whose arguments may depend on the size: they say what shape comes out."""


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

    def note_zeros(self, node: Any, axis: int) -> None:
        """Note that a result is zero beyond the smaller extent."""


Rule = Callable[[Any, Walk], Any]
RULES: dict[str, Rule] = {}
"""By the names of ATen's operators."""


def _rule(*names: str) -> Callable[[Rule], Rule]:
    def enter(rule: Rule) -> Rule:
        RULES.update({name if "." in name else f"aten.{name}": rule for name in names})
        return rule

    return enter


def argument(node: Any, number: int, name: str, default: Any = None) -> Any:
    """Return an operator's argument, given by position or by name."""
    if number < len(node.args):
        return node.args[number]
    return node.kwargs.get(name, default)


def _number(value: Any, what: str) -> int:
    if not isinstance(value, int):
        raise UnpaddableError(f"{what} depends on the size")
    return value


def _axis(number: int, rank: int) -> int:
    return number % max(rank, 1)


def _numbers(value: Any, rank: int) -> list[int]:
    """Return axes as they are given: none, one or several."""
    if value is None or value == []:
        return list(range(rank))
    return [_axis(n, rank) for n in ([value] if isinstance(value, int) else value)]


def _check_static(axes: Axes, numbers: Sequence[int]) -> None:
    for number in numbers:
        if not is_static(axes[number]):
            raise UnpaddableError("it mixes elements along a dimension")


def _check_single(axis: Axis) -> None:
    """Raise where an index would count through several dimensions, which are laid out anew."""
    if not is_static(axis) and len(axis) > 1:
        raise UnpaddableError("an index counts through several dimensions")


def _without(axes: Axes, numbers: Sequence[int], keepdim: Any) -> Axes:
    if keepdim:
        return tuple(() if n in numbers else axis for n, axis in enumerate(axes))
    return tuple(axis for n, axis in enumerate(axes) if n not in numbers)


@_rule("clone", "_to_copy", "to", "alias", "detach", "lift_fresh_copy", "contiguous")
@_rule("zeros_like", "ones_like", "empty_like")
def _same(node: Any, walk: Walk) -> Axes:
    return walk.axes(node.args[0])


def elementwise(node: Any, walk: Walk) -> Axes:
    """The rule of operators that PyTorch tags as pointwise."""
    return broadcast(walk.axes(tensor) for tensor in node.all_input_nodes)


@_rule("view", "reshape", "_unsafe_view", "flatten", "unflatten", "_reshape_copy")
@_rule("squeeze", "unsqueeze")
def _reshape(node: Any, walk: Walk) -> Axes:
    return reshaped(walk.axes(node.args[0]), walk.extents(node))


@_rule("expand")
def _expand(node: Any, walk: Walk) -> Axes:
    extents = walk.extents(node)
    given = walk.axes(node.args[0])
    given = ((),) * (len(extents) - len(given)) + given
    return tuple(axis or axis_of(n) for axis, n in zip(given, extents, strict=True))


@_rule("permute")
def _permute(node: Any, walk: Walk) -> Axes:
    axes = walk.axes(node.args[0])
    return tuple(axes[n] for n in node.args[1])


@_rule("transpose")
def _transpose(node: Any, walk: Walk) -> Axes:
    axes = list(walk.axes(node.args[0]))
    a, b = node.args[1:3]
    axes[a], axes[b] = axes[b], axes[a]
    return tuple(axes)


@_rule("full", "full_like", "new_full")
def _full(node: Any, walk: Walk) -> Axes:
    place = 2 if "new_full" in str(node.target) else 1
    if not isinstance(argument(node, place, "fill_value"), (int, float)):
        raise UnpaddableError("it computes with the size")
    return tuple(map(axis_of, walk.extents(node)))


@_rule("zeros", "ones", "empty", "new_zeros", "new_ones")
def _filled(node: Any, walk: Walk) -> Axes:
    return tuple(map(axis_of, walk.extents(node)))


@_rule("arange")
def _arange(node: Any, walk: Walk) -> Axes:
    for part in node.args[:1] if len(node.args) > 1 else ():
        _number(part, "where a range of numbers begins")
    for part in node.args[2:3]:
        _number(part, "the step of a range of numbers")
    return tuple(map(axis_of, walk.extents(node)))


@_rule("prims.iota")
def _iota(node: Any, walk: Walk) -> Axes:
    for name in ("start", "step"):
        _number(node.kwargs.get(name), f"the {name} of a range of numbers")
    return tuple(map(axis_of, walk.extents(node)))


@_rule("slice")
def _slice(node: Any, walk: Walk) -> Axes:
    axes, extents = list(walk.axes(node.args[0])), walk.extents(node)
    number = _axis(argument(node, 1, "dim", 0), len(axes))
    before, after = axes[number], extents[number]
    if walk.extents(node.args[0])[number] == after:
        return tuple(axes)
    start = _number(argument(node, 2, "start") or 0, "where a slice begins")
    axes[number] = axis_of(after)
    if not (is_static(before) and is_static(axes[number])):
        if argument(node, 4, "step", 1) != 1 or start < 0:
            raise UnpaddableError("a slice counts from the end")
        if len(before) > 1:
            raise UnpaddableError("a slice cuts through several dimensions")
    return tuple(axes)


@_rule("select")
def _select(node: Any, walk: Walk) -> Axes:
    axes = walk.axes(node.args[0])
    number = _axis(node.args[1], len(axes))
    index = _number(node.args[2], "an index")
    if not is_static(axes[number]):
        _check_single(axes[number])
        if index < 0:
            walk.count_from_end(node, number)
    return _without(axes, [number], keepdim=False)


@_rule("linear")
def _linear(node: Any, walk: Walk) -> Axes:
    axes, weight = walk.axes(node.args[0]), walk.axes(node.args[1])
    _check_static(axes, [len(axes) - 1])
    return (*axes[:-1], weight[0])


@_rule("matmul", "mm", "bmm")
def _matmul(node: Any, walk: Walk) -> Axes:
    return _product(node, 0, 1, walk)


@_rule("addmm", "baddbmm")
def _addmm(node: Any, walk: Walk) -> Axes:
    return broadcast([walk.axes(node.args[0]), _product(node, 1, 2, walk)])


def _product(node: Any, left: int, right: int, walk: Walk) -> Axes:
    a, b = walk.axes(node.args[left]), walk.axes(node.args[right])
    inner = (len(a) - 1, max(len(b) - 2, 0))
    if a[inner[0]] != b[inner[1]]:
        raise UnpaddableError("a product sums over axes that are laid out differently")
    if not is_static(a[inner[0]]):
        walk.fill(node, left, inner[0], 0.0)
        walk.fill(node, right, inner[1], 0.0)
    rows = a[-2:-1] if len(a) > 1 else ()
    columns = b[-1:] if len(b) > 1 else ()
    return broadcast([a[:-2], b[:-2]]) + rows + columns


@_rule("embedding")
def _embedding(node: Any, walk: Walk) -> Axes:
    table, index = walk.axes(node.args[0]), walk.axes(node.args[1])
    _check_static(table, [0])
    walk.check_untouched(node.args[1])
    return index + table[1:]


@_rule("index_select")
def _index_select(node: Any, walk: Walk) -> Axes:
    axes, index = walk.axes(node.args[0]), walk.axes(node.args[2])
    number = _axis(node.args[1], len(axes))
    _check_static(axes, [number])
    walk.check_untouched(node.args[2])
    return axes[:number] + index + axes[number + 1 :]


@_rule("gather")
def _gather(node: Any, walk: Walk) -> Axes:
    axes, index = walk.axes(node.args[0]), walk.axes(node.args[2])
    number = _axis(node.args[1], len(axes))
    _check_static(axes, [number])
    walk.check_untouched(node.args[2])
    for n, (before, after) in enumerate(zip(axes, index, strict=True)):
        if n != number and before != after:
            _check_single(before)
    return index


@_rule("index")
def _index(node: Any, walk: Walk) -> Axes:
    axes = walk.axes(node.args[0])
    places = [n for n, index in enumerate(node.args[1]) if index is not None]
    if places != list(range(places[0], places[-1] + 1)):
        raise UnpaddableError("indices have an axis between them")
    for n in places:
        walk.check_untouched(node.args[1][n])
        if not walk.is_count(node.args[1][n]):
            _check_static(axes, [n])
        _check_single(axes[n])
    taken = broadcast(walk.axes(node.args[1][n]) for n in places)
    return axes[: places[0]] + taken + axes[places[-1] + 1 :]


@_rule("_softmax", "softmax", "_log_softmax", "log_softmax", "_safe_softmax")
def _softmax(node: Any, walk: Walk) -> Axes:
    axes = walk.axes(node.args[0])
    number = _axis(node.args[1], len(axes))
    if not is_static(axes[number]):
        walk.fill(node, 0, number, -math.inf)
        if "log" not in str(node.target):
            walk.note_zeros(node, number)
    return axes


_IDENTITIES = {"sum": 0.0, "prod": 1.0, "any": 0.0, "all": 1.0}
_IDENTITIES |= {"amax": -math.inf, "amin": math.inf, "argmax": -math.inf, "argmin": math.inf}


@_rule(*_IDENTITIES, "mean", "var", "var_mean")
def _reduction(node: Any, walk: Walk) -> Any:
    axes = walk.axes(node.args[0])
    name = str(node.target).split(".")[1]
    numbers = _numbers(argument(node, 1, "dim"), len(axes))
    dynamic = [n for n in numbers if not is_static(axes[n])]
    if name in ("argmax", "argmin") and argument(node, 1, "dim") is None and dynamic:
        raise UnpaddableError("it counts through several axes")
    if dynamic and name == "mean":
        walk.average(node, dynamic)
    elif dynamic and name in _IDENTITIES:
        for n in dynamic:
            walk.fill(node, 0, n, _IDENTITIES[name])
    else:
        _check_static(axes, dynamic)
    is_pair = name == "var_mean"
    rank = len(walk.extents(node, 0 if is_pair else None))
    found = _without(axes, numbers, keepdim=rank == len(axes))
    return (found, found) if is_pair else found


@_rule("native_layer_norm")
def _layer_norm(node: Any, walk: Walk) -> tuple[Axes, ...]:
    axes = walk.axes(node.args[0])
    numbers = list(range(len(axes) - len(node.args[1]), len(axes)))
    _check_static(axes, numbers)
    rest = _without(axes, numbers, keepdim=True)
    return axes, rest, rest


@_rule("_native_batch_norm_legit_no_training")
def _batch_norm(node: Any, walk: Walk) -> tuple[Axes, ...]:
    axes = walk.axes(node.args[0])
    _check_static(axes, [1])
    empty = tuple(map(axis_of, walk.extents(node, 1)))
    return axes, empty, empty


@_rule("native_group_norm", "max_pool2d_with_indices")
def _each_by_itself(node: Any, walk: Walk) -> tuple[Axes, ...]:
    """The first axis alone may be a dimension; there are several results."""
    axes = walk.axes(node.args[0])
    _check_static(axes, range(1, len(axes)))
    return tuple(
        (axes[0], *map(axis_of, walk.extents(node, output)[1:]))
        for output in range(len(node.meta["val"]))
    )


@_rule("avg_pool2d", "avg_pool1d", "avg_pool3d", "max_pool2d", "max_pool1d", "max_pool3d")
@_rule("_adaptive_avg_pool2d", "adaptive_avg_pool2d", "_adaptive_avg_pool3d")
@_rule("upsample_nearest2d", "upsample_bilinear2d")
def _each(node: Any, walk: Walk) -> Axes:
    axes = walk.axes(node.args[0])
    _check_static(axes, range(1, len(axes)))
    return (axes[0], *map(axis_of, walk.extents(node)[1:]))


@_rule("convolution")
def _convolution(node: Any, walk: Walk) -> Axes:
    """Beyond an image lie zeros, whatever its size; so they do within a larger one."""
    axes, extents = walk.axes(node.args[0]), walk.extents(node)
    _check_static(axes, [1])
    _check_static(walk.axes(node.args[1]), range(len(axes)))
    spatial = [n for n in range(2, len(axes)) if not is_static(axes[n])]
    if spatial and node.args[6]:
        raise UnpaddableError("a transposed convolution mixes elements along a dimension")
    for n in spatial:
        walk.fill(node, 0, n, 0.0)
    return (axes[0], *map(axis_of, extents[1:]))


@_rule("cat", "stack")
def _cat(node: Any, walk: Walk) -> Axes:
    parts = [walk.axes(tensor) for tensor in node.args[0]]
    extents = walk.extents(node)
    number = _axis(argument(node, 1, "dim", 0), len(extents))
    if "stack" in str(node.target):
        both = broadcast(parts)
        return (*both[:number], axis_of(len(parts)), *both[number:])
    for axes in parts[:-1]:  # Along the last one, what lies beyond stays beyond.
        _check_static(axes, [number])
    if len(parts[-1][number]) > 1:
        raise UnpaddableError("it joins several dimensions")
    both = broadcast([_without(axes, [number], keepdim=True) for axes in parts])
    return (*both[:number], axis_of(extents[number]), *both[number + 1 :])


@_rule("split_with_sizes", "split", "unbind")
def _split(node: Any, walk: Walk) -> tuple[Axes, ...]:
    axes = walk.axes(node.args[0])
    is_unbind = "unbind" in str(node.target)
    number = _axis(argument(node, 1 if is_unbind else 2, "dim", 0), len(axes))
    _check_static(axes, [number])

    def part(output: int) -> Axis:
        return axis_of(walk.extents(node, output)[number])

    count = len(node.meta["val"])
    if is_unbind:
        return (_without(axes, [number], keepdim=False),) * count
    return tuple((*axes[:number], part(i), *axes[number + 1 :]) for i in range(count))


@_rule("cumsum", "cumprod")
def _cumulative(node: Any, walk: Walk) -> Axes:
    """No element depends on those after it."""
    axes = walk.axes(node.args[0])
    if len(axes[_axis(node.args[1], len(axes))]) > 1:
        raise UnpaddableError("it mixes elements along a dimension")
    return axes


@_rule("tril", "triu")
def _triangle(node: Any, walk: Walk) -> Axes:
    axes = walk.axes(node.args[0])
    _number(argument(node, 1, "diagonal", 0), "a diagonal")
    if any(len(axis) > 1 for axis in axes[-2:]):
        raise UnpaddableError("a diagonal runs through several dimensions")
    return axes


@_rule("flip", "roll", "sort", "topk", "argsort", "constant_pad_nd")
def _static_along(node: Any, walk: Walk) -> Any:
    axes = walk.axes(node.args[0])
    name = str(node.target).split(".")[1]
    if name == "constant_pad_nd":
        pads = node.args[1]
        numbers = [len(axes) - 1 - n // 2 for n, pad in enumerate(pads) if pad != 0]
    else:
        place = {"flip": 1, "roll": 2, "sort": 1, "topk": 2, "argsort": 1}[name]
        given = argument(node, place, "dims", argument(node, place, "dim", -1))
        if name == "roll" and len(node.args) == place:  # Of all elements in a row.
            given = None
        numbers = _numbers(given, len(axes))
    _check_static(axes, numbers)

    def changed(output: int | None) -> Axes:
        extents = walk.extents(node, output)
        return tuple(axis_of(extents[n]) if n in numbers else axis for n, axis in enumerate(axes))

    if isinstance(node.meta["val"], (list, tuple)):
        return tuple(changed(i) for i in range(len(node.meta["val"])))
    return changed(None)
