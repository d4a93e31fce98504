"""A program at one point of its range that computes every smaller shape, too.

Inputs of a smaller shape are padded to the point. It is then proven, operator by operator, that
each tensor begins with what the smaller shape would hold: whatever lies beyond stays beyond.
Operators that mix elements along a dimension get masks; for these the program takes the dimension's
true extent as one more input. What cannot be proven is refused.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx

from costlib.workloads.ranges.labels import (
    Axes,
    UnpaddableError,
    axis_of,
    extent_of,
    is_static,
    parts_of,
)
from costlib.workloads.ranges.moving import elementwise
from costlib.workloads.ranges.rewriting import LAYING_OUT, Rewriting, name_of, symbols_of
from costlib.workloads.ranges.rules import RULES
from costlib.workloads.ranges.walk import COMPUTES_WITH_SIZES, TAKES_SIZES

_KEEPING = {"aten.unsqueeze", "aten.squeeze", "aten.expand", "aten.slice", "aten.select"}
_COPYING = {"aten.clone", "aten._to_copy", "aten.alias"}


@dataclass(frozen=True)
class Padded:
    """A program that computes all shapes up to a point.

    Attributes
    ----------
    module
        Takes the program's inputs at the point, flat, then ``lengths``; returns a tuple.
    lengths
        Dimensions whose true extents it takes, each an int64 scalar.
    """

    module: Any
    lengths: tuple[str, ...]


def padded(
    module: Any,
    point: Mapping[str, int],
    fixed: Mapping[str, int],
    lows: Mapping[str, int] | None = None,
) -> Padded:
    """Make a program that computes every shape up to a point.

    Parameters
    ----------
    module
        A ``torch.fx.GraphModule`` over ATen's operators with symbolic extents.
    point
        Extent of each symbol that may be smaller.
    fixed
        Extent of each symbol that may not.
    lows
        Smallest extent of each symbol; 1 if it is not given.

    Raises
    ------
    UnpaddableError
        It cannot be proven to compute the same.
    """
    return _Padding(module, point, fixed, dict.fromkeys(point, 1) | dict(lows or {})).run()


class _Padding(Rewriting):
    """The walk through a program that proves it, and writes the masks."""

    def run(self) -> Padded:
        for node in list(self._graph.nodes):
            if node.op == "call_module":  # It checks the inputs.
                self._graph.erase_node(node)
            elif node.op == "output":
                node.args = (tuple(one for one in node.args[0] if isinstance(one, fx.Node)),)
                self._check_returned(node.args[0])
            elif self._point:
                self._visit(node)
        self._graph.eliminate_dead_code()
        self._graph.lint()
        self._module.recompile()
        return Padded(self._module, tuple(self._masks.lengths))

    def _check_returned(self, outputs: Sequence[Any]) -> None:
        axes = [axis for one in outputs for axis in self._axes.get(one, ())]
        if not all(is_static(axis) or len(axis) == 1 for axis in axes):
            raise UnpaddableError("an output lays out several dimensions as one axis")

    def _visit(self, node: Any) -> None:
        value = node.meta.get("val")
        if node.op in ("placeholder", "get_attr"):
            self._note(node, tuple(map(axis_of, self.extents(node))))
            return
        if value is None or not isinstance(value, (torch.Tensor, list, tuple)):
            return  # A size, or a check.
        if node.target is operator.getitem:
            self._axes[node] = self._axes[node.args[0]][node.args[1]]
        else:
            name = name_of(node)
            try:
                self._note(node, self._ruled(node, name))
            except UnpaddableError as error:
                raise UnpaddableError(f"{name}: {error}") from None
            except (IndexError, KeyError, TypeError, ValueError, AttributeError):
                raise UnpaddableError(f"{name} is called in an unknown way") from None
        if any(one in self._touched for one in node.all_input_nodes):
            self._touched.add(node)
        if _is_count(node, self._counts):
            self._counts.add(node)
        if (other := self._stand_ins.get(node)) is not None:
            self._axes[other] = self._axes[node]
            if node in self._counts:
                self._counts.add(other)
            else:
                self._touched.add(other)

    def _ruled(self, node: Any, name: str) -> Any:
        tensors = [one for one in node.all_input_nodes if one in self._axes]
        short = name.partition(".")[2]
        takes_sizes = any(self.is_size(one) for one in node.all_input_nodes)
        if takes_sizes and short in COMPUTES_WITH_SIZES:
            self.with_true_sizes(node)
        elif takes_sizes and short not in TAKES_SIZES:
            raise UnpaddableError("it computes with the size")
        parts = [part for one in tensors for part in _each(self._axes[one])]
        if not takes_sizes and all(is_static(axis) for axes in parts for axis in axes):
            return self._recorded(node)
        if name in RULES:
            found = RULES[name](node, self)
            if name in _COPYING and node.args[0] in self._zeros:
                self._zeros[node] = self._zeros[node.args[0]]
            return found
        if torch.Tag.pointwise in getattr(node.target, "tags", ()):
            return elementwise(node, self)
        raise UnpaddableError("no rule says along which axes it mixes elements")

    def _recorded(self, node: Any) -> Any:
        if isinstance(node.meta["val"], (list, tuple)):
            count = len(node.meta["val"])
            return tuple(tuple(map(axis_of, self.extents(node, i))) for i in range(count))
        return tuple(map(axis_of, self.extents(node)))

    def _note(self, node: Any, found: Any) -> None:
        """Keep the axes of a result, which must have the extents that PyTorch recorded."""
        self._axes[node] = found
        is_several = isinstance(node.meta["val"], (list, tuple))
        for output, axes in enumerate(found if is_several else [found]):
            extents = self.extents(node, output if is_several else None)
            sizes = {str(symbol): symbol for n in extents for symbol in symbols_of(n)}
            if len(axes) != len(extents) or any(
                extent_of(axis, sizes) != extent
                for axis, extent in zip(axes, extents, strict=True)
                if axis or extent != 1
            ):
                raise UnpaddableError("its result has an unexpected shape")
            if unknown := set(sizes) - set(self._point):
                raise UnpaddableError(f"its shape depends on data ({', '.join(sorted(unknown))})")


def _is_count(node: Any, counts: set[Any]) -> bool:
    """Whether a result holds integers that are none of them negative, as far as is seen."""
    if node.target is torch.ops.prims.iota.default:
        parts = node.kwargs.get("start"), node.kwargs.get("step")
        return all(isinstance(part, int) and part >= 0 for part in parts)
    if not node.args or node.args[0] not in counts:
        return False
    name = name_of(node)
    if name == "aten.add":
        return _is_not_negative(node.args[1]) and not node.kwargs
    return name in LAYING_OUT or name in _COPYING or name in _KEEPING


def _is_not_negative(number: Any) -> bool:
    """Whether a number, or a size, is not below 0, as far as is seen."""
    if isinstance(number, fx.Node) and isinstance(number.meta.get("val"), torch.SymInt):
        (factor,) = axis_of(number.meta["val"].node.expr)
        return isinstance(factor, str) and parts_of(factor)[1] >= 0
    return isinstance(number, int) and number >= 0


def _each(found: Any) -> Sequence[Axes]:
    """Return the axes of each of an operator's results, whether one or several."""
    is_several = bool(found) and all(isinstance(a, tuple) for one in found for a in one)
    return found if is_several else [found]
