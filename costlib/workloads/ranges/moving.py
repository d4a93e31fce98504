"""Rules of operators that make, move, choose and join elements."""

from __future__ import annotations

from typing import Any

from costlib.workloads.ranges.labels import (
    Axes,
    Axis,
    UnpaddableError,
    axis_of,
    broadcast,
    is_static,
    reshaped,
)
from costlib.workloads.ranges.walk import (
    Walk,
    argument,
    axis_number,
    axis_numbers,
    check_single,
    check_static,
    fixed_number,
    rule,
    without,
)


@rule("clone", "_to_copy", "to", "alias", "detach", "lift_fresh_copy", "contiguous")
@rule("zeros_like", "ones_like", "empty_like")
def _same(node: Any, walk: Walk) -> Axes:
    return walk.axes(node.args[0])


def elementwise(node: Any, walk: Walk) -> Axes:
    """The rule of operators that PyTorch tags as pointwise."""
    return broadcast(walk.axes(tensor) for tensor in node.all_input_nodes)


@rule("view", "reshape", "_unsafe_view", "flatten", "unflatten", "_reshape_copy")
@rule("squeeze", "unsqueeze")
def _reshape(node: Any, walk: Walk) -> Axes:
    return reshaped(walk.axes(node.args[0]), walk.extents(node))


@rule("expand")
def _expand(node: Any, walk: Walk) -> Axes:
    extents = walk.extents(node)
    given = walk.axes(node.args[0])
    given = ((),) * (len(extents) - len(given)) + given
    return tuple(axis or axis_of(n) for axis, n in zip(given, extents, strict=True))


@rule("permute")
def _permute(node: Any, walk: Walk) -> Axes:
    axes = walk.axes(node.args[0])
    return tuple(axes[n] for n in node.args[1])


@rule("transpose")
def _transpose(node: Any, walk: Walk) -> Axes:
    axes = list(walk.axes(node.args[0]))
    a, b = node.args[1:3]
    axes[a], axes[b] = axes[b], axes[a]
    return tuple(axes)


@rule("full", "full_like", "new_full")
def _full(node: Any, walk: Walk) -> Axes:
    place = 2 if "new_full" in str(node.target) else 1
    if not isinstance(argument(node, place, "fill_value"), (int, float)):
        raise UnpaddableError("it computes with the size")
    return tuple(map(axis_of, walk.extents(node)))


@rule("zeros", "ones", "empty", "new_zeros", "new_ones")
def _filled(node: Any, walk: Walk) -> Axes:
    return tuple(map(axis_of, walk.extents(node)))


@rule("arange")
def _arange(node: Any, walk: Walk) -> Axes:
    for part in node.args[:1] if len(node.args) > 1 else ():
        fixed_number(part, "where a range of numbers begins")
    for part in node.args[2:3]:
        fixed_number(part, "the step of a range of numbers")
    return tuple(map(axis_of, walk.extents(node)))


@rule("prims.iota")
def _iota(node: Any, walk: Walk) -> Axes:
    for name in ("start", "step"):
        fixed_number(node.kwargs.get(name), f"the {name} of a range of numbers")
    return tuple(map(axis_of, walk.extents(node)))


@rule("slice")
def _slice(node: Any, walk: Walk) -> Axes:
    axes, extents = list(walk.axes(node.args[0])), walk.extents(node)
    number = axis_number(argument(node, 1, "dim", 0), len(axes))
    before, after = axes[number], extents[number]
    if walk.extents(node.args[0])[number] == after:
        return tuple(axes)
    start = fixed_number(argument(node, 2, "start") or 0, "where a slice begins")
    axes[number] = axis_of(after)
    if not (is_static(before) and is_static(axes[number])):
        if argument(node, 4, "step", 1) != 1 or start < 0:
            raise UnpaddableError("a slice counts from the end")
        if len(before) > 1:
            raise UnpaddableError("a slice cuts through several dimensions")
    return tuple(axes)


@rule("select")
def _select(node: Any, walk: Walk) -> Axes:
    axes = walk.axes(node.args[0])
    number = axis_number(node.args[1], len(axes))
    index = fixed_number(node.args[2], "an index")
    if not is_static(axes[number]):
        check_single(axes[number])
        if index < 0:
            walk.count_from_end(node, number)
    return without(axes, [number], keepdim=False)


@rule("embedding")
def _embedding(node: Any, walk: Walk) -> Axes:
    table, index = walk.axes(node.args[0]), walk.axes(node.args[1])
    check_static(table, [0])
    walk.check_untouched(node.args[1])
    return index + table[1:]


@rule("index_select")
def _index_select(node: Any, walk: Walk) -> Axes:
    axes, index, number = _looked_up(node, walk)
    return axes[:number] + index + axes[number + 1 :]


def _looked_up(node: Any, walk: Walk) -> tuple[Axes, Axes, int]:
    """Return the axes of a table and of its indices, and along which axis it is looked up."""
    axes, index = walk.axes(node.args[0]), walk.axes(node.args[2])
    number = axis_number(node.args[1], len(axes))
    check_static(axes, [number])
    walk.check_untouched(node.args[2])
    return axes, index, number


@rule("gather")
def _gather(node: Any, walk: Walk) -> Axes:
    axes, index, number = _looked_up(node, walk)
    for n, (before, after) in enumerate(zip(axes, index, strict=True)):
        if n != number and before != after:
            check_single(before)
    return index


@rule("index")
def _index(node: Any, walk: Walk) -> Axes:
    axes = walk.axes(node.args[0])
    places = [n for n, index in enumerate(node.args[1]) if index is not None]
    if places != list(range(places[0], places[-1] + 1)):
        raise UnpaddableError("indices have an axis between them")
    for n in places:
        walk.check_untouched(node.args[1][n])
        if not walk.is_count(node.args[1][n]):
            check_static(axes, [n])
        check_single(axes[n])
    taken = broadcast(walk.axes(node.args[1][n]) for n in places)
    return axes[: places[0]] + taken + axes[places[-1] + 1 :]


@rule("cat", "stack")
def _cat(node: Any, walk: Walk) -> Axes:
    given = [part for part in node.args[0] if walk.extents(part) != [0]]  # Empty, of any rank.
    parts = [walk.axes(part) for part in given]
    extents = walk.extents(node)
    number = axis_number(argument(node, 1, "dim", 0), len(extents))
    if "stack" in str(node.target):
        both = broadcast(parts)
        return (*both[:number], axis_of(len(parts)), *both[number:])
    if len(given) < len(node.args[0]):
        node.update_arg(0, given)
    if any(len(axes[number]) > 1 and not is_static(axes[number]) for axes in parts):
        raise UnpaddableError("it joins several dimensions")
    if not all(is_static(axes[number]) for axes in parts[:-1]):
        walk.join(node, given, number)  # Along the last one, what lies beyond stays beyond.
    both = broadcast([without(axes, [number], keepdim=True) for axes in parts])
    return (*both[:number], axis_of(extents[number]), *both[number + 1 :])


@rule("split_with_sizes", "split", "unbind")
def _split(node: Any, walk: Walk) -> tuple[Axes, ...]:
    axes = walk.axes(node.args[0])
    is_unbind = "unbind" in str(node.target)
    number = axis_number(argument(node, 1 if is_unbind else 2, "dim", 0), len(axes))
    check_static(axes, [number])

    def part(output: int) -> Axis:
        return axis_of(walk.extents(node, output)[number])

    count = len(node.meta["val"])
    if is_unbind:
        return (without(axes, [number], keepdim=False),) * count
    return tuple((*axes[:number], part(i), *axes[number + 1 :]) for i in range(count))


@rule("tril", "triu")
def _triangle(node: Any, walk: Walk) -> Axes:
    axes = walk.axes(node.args[0])
    fixed_number(argument(node, 1, "diagonal", 0), "a diagonal")
    if any(len(axis) > 1 for axis in axes[-2:]):
        raise UnpaddableError("a diagonal runs through several dimensions")
    return axes


@rule("flip", "roll", "sort", "topk", "argsort", "constant_pad_nd")
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
        numbers = axis_numbers(given, len(axes))
    check_static(axes, numbers)

    def changed(output: int | None) -> Axes:
        extents = walk.extents(node, output)
        return tuple(axis_of(extents[n]) if n in numbers else axis for n, axis in enumerate(axes))

    if isinstance(node.meta["val"], (list, tuple)):
        return tuple(changed(i) for i in range(len(node.meta["val"])))
    return changed(None)
