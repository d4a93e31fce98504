"""A program at one point of its range that computes every smaller shape, too.

Inputs of a smaller shape are padded to the point. It is then proven, operator by operator, that
each tensor begins with what the smaller shape would hold: whatever lies beyond stays beyond.
Operators that mix elements along a dimension get masks; for these the program takes the dimension's
true extent as one more input. What cannot be proven is refused.
"""

from __future__ import annotations

import copy
import math
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx

from costlib.workloads.importers.aten.graph import operator_name
from costlib.workloads.ranges.labels import (
    Axes,
    UnpaddableError,
    axis_of,
    extent_of,
    is_static,
    parts_of,
)
from costlib.workloads.ranges.masks import Masks, aten, symbol_of
from costlib.workloads.ranges.moving import elementwise
from costlib.workloads.ranges.rules import RULES
from costlib.workloads.ranges.walk import COMPUTES_WITH_SIZES, TAKES_SIZES, argument

_LAYING_OUT = {"aten.permute", "aten.view", "aten._unsafe_view", "aten.reshape", "aten.clone"}
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


class _Padding:
    """The walk through a program that proves it, and writes the masks."""

    def __init__(
        self,
        module: Any,
        point: Mapping[str, int],
        fixed: Mapping[str, int],
        lows: Mapping[str, int],
    ) -> None:
        self._module = fx.GraphModule(module, copy.deepcopy(module.graph))
        self._graph = self._module.graph
        self._graph.set_codegen(fx.graph.CodeGen())
        self._point, self._fixed, self._lows = point, fixed, lows
        self._axes: dict[Any, Any] = {}
        self._touched: set[Any] = set()
        self._zeros: dict[Any, set[int]] = {}
        self._stand_ins: dict[Any, Any] = {}
        self._filled: dict[Any, Any] = {}
        nodes = list(self._graph.nodes)
        inputs = [node for node in nodes if node.op == "placeholder"]
        first = next(n for n in nodes if n.op not in ("placeholder", "get_attr"))
        self._masks = Masks(self._graph, point, inputs, first)
        self._counts: set[Any] = set()

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
            name = _name(node)
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
        takes_sizes = any(self._is_size(one) for one in node.all_input_nodes)
        if takes_sizes and short in COMPUTES_WITH_SIZES:
            self._with_true_sizes(node)
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

    def _is_size(self, node: Any) -> bool:
        """Whether it is a number that is another one in a smaller shape."""
        expression = getattr(getattr(node.meta.get("val"), "node", None), "expr", None)
        return any(str(symbol) in self._point for symbol in _symbols(expression))

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
            sizes = {str(symbol): symbol for n in extents for symbol in _symbols(n)}
            if len(axes) != len(extents) or any(
                extent_of(axis, sizes) != extent
                for axis, extent in zip(axes, extents, strict=True)
                if axis or extent != 1
            ):
                raise UnpaddableError("its result has an unexpected shape")
            if unknown := set(sizes) - set(self._point):
                raise UnpaddableError(f"its shape depends on data ({', '.join(sorted(unknown))})")

    # What rules ask for; see :class:`costlib.workloads.ranges.rules.Walk`.

    def axes(self, node: Any) -> Axes:
        if isinstance(node, fx.Node) and isinstance(node.meta.get("val"), torch.Tensor):
            found: Axes = self._axes[node]
            return found
        return ()  # A number, perhaps the size of what has but one.

    def extents(self, node: Any, output: int | None = None) -> list[Any]:
        value = node.meta["val"]
        shape = (value if output is None else value[output]).shape
        return [self._extent(extent) for extent in shape]

    def _extent(self, extent: Any) -> Any:
        if isinstance(extent, int):
            return extent
        expression = extent.node.expr
        known = [symbol for symbol in _symbols(expression) if str(symbol) in self._fixed]
        return expression.subs({symbol: self._fixed[str(symbol)] for symbol in known})

    def check_untouched(self, node: Any) -> None:
        if node in self._touched:
            raise UnpaddableError("what it looks up depends on what was masked")

    def is_count(self, node: Any) -> bool:
        return node in self._counts

    def note_zeros(self, node: Any, axis: int) -> None:
        self._zeros[node] = {axis}

    def fill(self, node: Any, argument: int, axis: int, value: float) -> None:
        tensor = node.args[argument]
        self._touched.add(node)
        if value == 0.0 and axis in self._zeros.get(tensor, ()):
            return
        while value == 0.0 and (before := self._axis_before(tensor, axis)) is not None:
            # Before a tensor is laid out anew, a mask can be fused.
            node, argument, tensor, axis = tensor, 0, tensor.args[0], before
        key = tensor, axis, value
        if key not in self._filled:
            self._filled[key] = self._where(tensor, axis, value)
        node.update_arg(argument, self._filled[key])
        self._touched.add(node)

    def _axis_before(self, tensor: Any, axis: int) -> int | None:
        """Return which axis it was before a tensor was laid out anew; ``None`` if it was not."""
        if tensor.op != "call_function" or _name(tensor) not in _LAYING_OUT:
            return None
        if _name(tensor) == "aten.permute":
            return int(tensor.args[1][axis])
        wanted = self.axes(tensor)[axis]
        same = [n for n, found in enumerate(self.axes(tensor.args[0])) if found == wanted]
        return same[0] if len(same) == 1 else None

    def _where(self, tensor: Any, axis: int, value: float) -> Any:
        """Write a tensor that is another one up to the smaller extent, and then a number."""
        label = self.axes(tensor)[axis]
        symbol, more = symbol_of(label)
        if math.isinf(value) and self._lows[symbol] + more < 1:
            raise UnpaddableError("it takes the largest of what may be empty")
        is_float = tensor.meta["val"].dtype.is_floating_point
        if not is_float and math.isinf(value):
            info = torch.iinfo(tensor.meta["val"].dtype)
            value = info.min if value < 0 else info.max
        shape = [1] * len(self.axes(tensor))
        shape[axis] = self._point[symbol] + more
        call = self._graph.call_function
        mask = self._masks.mask(label)
        with self._graph.inserting_after(tensor if tensor.op == "call_function" else mask):
            beside = call(aten.view.default, (mask, shape))
        with self._graph.inserting_after(beside):
            number = value if is_float else int(value)
            filled = call(aten.where.ScalarOther, (beside, tensor, number))
        filled.meta["val"] = tensor.meta["val"]
        self._axes[filled] = self.axes(tensor)
        self._touched.add(filled)
        return filled

    def average(self, node: Any, axes: Sequence[int]) -> None:
        given = self.axes(node.args[0])
        numbers = [n % len(given) for n in argument(node, 1, "dim") or range(len(given))]
        keepdim = argument(node, 2, "keepdim", False)
        if node.meta["val"].dtype != node.args[0].meta["val"].dtype:
            raise UnpaddableError("it changes the type")
        for axis in axes:
            self.fill(node, 0, axis, 0.0)
        count: Any = math.prod(extent_of(given[n], {}) for n in numbers if n not in axes)
        call = self._graph.call_function
        with self._graph.inserting_before(node):
            for axis in axes:
                count = call(aten.mul.Tensor, (self._masks.true_extent(given[axis]), count))
            total = call(aten.sum.dim_IntList, (node.args[0], numbers, keepdim))
            self._replace(node, call(aten.div.Tensor, (total, count)))

    def count_from_end(self, node: Any, axis: int) -> None:
        tensor, _, index = node.args
        call = self._graph.call_function
        with self._graph.inserting_before(node):
            length = self._masks.true_extent(self.axes(tensor)[axis])
            place = call(aten.view.default, (call(aten.add.Tensor, (length, index)), [1]))
            one = call(aten.index_select.default, (tensor, axis, place))
            self._replace(node, call(aten.squeeze.dim, (one, axis)))

    def join(self, node: Any, parts: Sequence[Any], number: int) -> None:
        place = next(n for n, part in enumerate(parts) if not is_static(self.axes(part)[number]))
        extents = [self.extents(part)[number] for part in parts]
        if not all(isinstance(extent, int) for extent in extents[place + 1 :]):
            raise UnpaddableError("it joins several dimensions")
        axis = axis_of(sum(extents[: place + 1]))
        call = self._graph.call_function
        with self._graph.inserting_before(node):
            first, last = (
                some[0] if len(some) == 1 else call(aten.cat.default, (list(some), number))
                for some in (parts[: place + 1], parts[place + 1 :])
            )
            extent, rank = sum(extents[place + 1 :]), len(self.axes(parts[0]))
            found = self._masks.joined(first, last, number, axis, extent, rank)
            self._replace(node, found)

    def _with_true_sizes(self, node: Any) -> None:
        """Replace sizes that a tensor is computed with by those of the smaller shape."""
        tensors = [one for one in node.all_input_nodes if not self._is_size(one)]
        if node.target._overloadname not in ("Tensor", "Scalar"):
            raise UnpaddableError("it computes with the size")
        dtypes = [one.meta["val"].dtype for one in tensors]
        if not all(dtype.is_floating_point or dtype == torch.int64 for dtype in dtypes):
            raise UnpaddableError("it computes with the size")
        with self._graph.inserting_before(node):
            arguments = tuple(
                self._masks.true_extent(axis_of(one.meta["val"].node.expr))
                if isinstance(one, fx.Node) and self._is_size(one)
                else one
                for one in node.args
            )
            operator = node.target.overloadpacket.Tensor
            self._replace(node, self._graph.call_function(operator, arguments, node.kwargs))

    def _replace(self, node: Any, other: Any) -> None:
        """Let another node stand for the one that is being visited."""
        node.replace_all_uses_with(other)
        other.meta["val"] = node.meta["val"]
        self._stand_ins[node] = other


def _name(node: Any) -> str:
    return operator_name(node.target)


def _is_count(node: Any, counts: set[Any]) -> bool:
    """Whether a result holds integers that are none of them negative, as far as is seen."""
    if node.target is torch.ops.prims.iota.default:
        parts = node.kwargs.get("start"), node.kwargs.get("step")
        return all(isinstance(part, int) and part >= 0 for part in parts)
    if not node.args or node.args[0] not in counts:
        return False
    name = _name(node)
    if name == "aten.add":
        return _is_not_negative(node.args[1]) and not node.kwargs
    return name in _LAYING_OUT or name in _COPYING or name in _KEEPING


def _is_not_negative(number: Any) -> bool:
    """Whether a number, or a size, is not below 0, as far as is seen."""
    if isinstance(number, fx.Node) and isinstance(number.meta.get("val"), torch.SymInt):
        (factor,) = axis_of(number.meta["val"].node.expr)
        return isinstance(factor, str) and parts_of(factor)[1] >= 0
    return isinstance(number, int) and number >= 0


def _symbols(extent: Any) -> Any:
    return getattr(extent, "free_symbols", ())


def _each(found: Any) -> Sequence[Axes]:
    """Return the axes of each of an operator's results, whether one or several."""
    is_several = bool(found) and all(isinstance(a, tuple) for one in found for a in one)
    return found if is_several else [found]
