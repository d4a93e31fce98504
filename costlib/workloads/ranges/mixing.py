"""Rules of operators that sum, compare and average elements, or slide a window over them."""

from __future__ import annotations

import math
from typing import Any

from costlib.workloads.ranges.labels import Axes, UnpaddableError, axis_of, broadcast, is_static
from costlib.workloads.ranges.walk import (
    Walk,
    argument,
    axis_number,
    axis_numbers,
    check_static,
    rule,
    without,
)


@rule("linear")
def _linear(node: Any, walk: Walk) -> Axes:
    axes, weight = walk.axes(node.args[0]), walk.axes(node.args[1])
    check_static(axes, [len(axes) - 1])
    return (*axes[:-1], weight[0])


@rule("matmul", "mm", "bmm")
def _matmul(node: Any, walk: Walk) -> Axes:
    return _product(node, 0, 1, walk)


@rule("addmm", "baddbmm")
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


@rule("_softmax", "softmax", "_log_softmax", "log_softmax", "_safe_softmax")
def _softmax(node: Any, walk: Walk) -> Axes:
    axes = walk.axes(node.args[0])
    number = axis_number(node.args[1], len(axes))
    if not is_static(axes[number]):
        walk.fill(node, 0, number, -math.inf)
        if "log" not in str(node.target):
            walk.note_zeros(node, number)
    return axes


_IDENTITIES = {"sum": 0.0, "prod": 1.0, "any": 0.0, "all": 1.0}
_IDENTITIES |= {"amax": -math.inf, "amin": math.inf, "argmax": -math.inf, "argmin": math.inf}


@rule(*_IDENTITIES, "mean", "var", "var_mean")
def _reduction(node: Any, walk: Walk) -> Any:
    axes = walk.axes(node.args[0])
    name = str(node.target).split(".")[1]
    numbers = axis_numbers(argument(node, 1, "dim"), len(axes))
    dynamic = [n for n in numbers if not is_static(axes[n])]
    if name in ("argmax", "argmin") and argument(node, 1, "dim") is None and dynamic:
        raise UnpaddableError("it counts through several axes")
    if dynamic and name == "mean":
        walk.average(node, dynamic)
    elif dynamic and name in _IDENTITIES:
        for n in dynamic:
            walk.fill(node, 0, n, _IDENTITIES[name])
    else:
        check_static(axes, dynamic)
    is_pair = name == "var_mean"
    rank = len(walk.extents(node, 0 if is_pair else None))
    found = without(axes, numbers, keepdim=rank == len(axes))
    return (found, found) if is_pair else found


@rule("native_layer_norm")
def _layer_norm(node: Any, walk: Walk) -> tuple[Axes, ...]:
    axes = walk.axes(node.args[0])
    numbers = list(range(len(axes) - len(node.args[1]), len(axes)))
    check_static(axes, numbers)
    rest = without(axes, numbers, keepdim=True)
    return axes, rest, rest


@rule("_native_batch_norm_legit_no_training")
def _batch_norm(node: Any, walk: Walk) -> tuple[Axes, ...]:
    axes = walk.axes(node.args[0])
    check_static(axes, [1])
    empty = tuple(map(axis_of, walk.extents(node, 1)))
    return axes, empty, empty


@rule("native_group_norm", "max_pool2d_with_indices")
def _each_by_itself(node: Any, walk: Walk) -> tuple[Axes, ...]:
    """The first axis alone may be a dimension; there are several results."""
    axes = walk.axes(node.args[0])
    check_static(axes, range(1, len(axes)))
    return tuple(
        (axes[0], *map(axis_of, walk.extents(node, output)[1:]))
        for output in range(len(node.meta["val"]))
    )


@rule("avg_pool2d", "avg_pool1d", "avg_pool3d", "max_pool2d", "max_pool1d", "max_pool3d")
@rule("_adaptive_avg_pool2d", "adaptive_avg_pool2d", "_adaptive_avg_pool3d")
@rule("upsample_nearest2d", "upsample_bilinear2d")
def _each(node: Any, walk: Walk) -> Axes:
    axes = walk.axes(node.args[0])
    check_static(axes, range(1, len(axes)))
    return (axes[0], *map(axis_of, walk.extents(node)[1:]))


@rule("convolution")
def _convolution(node: Any, walk: Walk) -> Axes:
    """Beyond an image lie zeros, whatever its size; so they do within a larger one."""
    axes, extents = walk.axes(node.args[0]), walk.extents(node)
    check_static(axes, [1])
    check_static(walk.axes(node.args[1]), range(len(axes)))
    spatial = [n for n in range(2, len(axes)) if not is_static(axes[n])]
    if spatial and node.args[6]:
        raise UnpaddableError("a transposed convolution mixes elements along a dimension")
    for n in spatial:
        walk.fill(node, 0, n, 0.0)
    return (axes[0], *map(axis_of, extents[1:]))


@rule("cumsum", "cumprod")
def _cumulative(node: Any, walk: Walk) -> Axes:
    """No element depends on those after it."""
    axes = walk.axes(node.args[0])
    if len(axes[axis_number(node.args[1], len(axes))]) > 1:
        raise UnpaddableError("it mixes elements along a dimension")
    return axes
