"""What rules have written into a program: masks, true extents, and operators in others' place."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
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
)
from costlib.workloads.ranges.masks import Masks, aten, symbol_of
from costlib.workloads.ranges.walk import argument

LAYING_OUT = {"aten.permute", "aten.view", "aten._unsafe_view", "aten.reshape", "aten.clone"}
"""Operators that lay elements out anew, and change none."""


class Rewriting:
    """A copy of a program, and what rules may ask of it.

    Parameters
    ----------
    module
        A ``torch.fx.GraphModule`` over ATen's operators with symbolic extents.
    point, fixed, lows
        See :func:`costlib.workloads.ranges.padding.padded`.
    """

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

    def is_size(self, node: Any) -> bool:
        """Whether it is a number that is another one in a smaller shape."""
        expression = getattr(getattr(node.meta.get("val"), "node", None), "expr", None)
        return any(str(symbol) in self._point for symbol in symbols_of(expression))

    def axes(self, node: Any) -> Axes:
        """Return the axes of an operator's argument."""
        if isinstance(node, fx.Node) and isinstance(node.meta.get("val"), torch.Tensor):
            found: Axes = self._axes[node]
            return found
        return ()  # A number, perhaps the size of what has but one.

    def extents(self, node: Any, output: int | None = None) -> list[Any]:
        """Return the extents of a result: numbers, or expressions of SymPy."""
        value = node.meta["val"]
        shape = (value if output is None else value[output]).shape
        return [self._extent(extent) for extent in shape]

    def _extent(self, extent: Any) -> Any:
        if isinstance(extent, int):
            return extent
        expression = extent.node.expr
        known = [symbol for symbol in symbols_of(expression) if str(symbol) in self._fixed]
        return expression.subs({symbol: self._fixed[str(symbol)] for symbol in known})

    def check_untouched(self, node: Any) -> None:
        """Raise unless a tensor holds only what some input of the larger shape gives."""
        if node in self._touched:
            raise UnpaddableError("what it looks up depends on what was masked")

    def is_count(self, node: Any) -> bool:
        """Whether a tensor's integers are counted from 0 upwards, so that none is negative."""
        return node in self._counts

    def note_zeros(self, node: Any, axis: int) -> None:
        """Note that a result is zero beyond the smaller extent."""
        self._zeros[node] = {axis}

    def fill(self, node: Any, argument: int, axis: int, value: float) -> None:
        """Replace what lies beyond the smaller extent of an argument, unless it is that already."""
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
        if tensor.op != "call_function" or name_of(tensor) not in LAYING_OUT:
            return None
        if name_of(tensor) == "aten.permute":
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
        """Replace a mean by a sum, divided by how many elements the smaller shape has."""
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
        """Replace an index from the end of an axis by one from the end of the smaller shape."""
        tensor, _, index = node.args
        call = self._graph.call_function
        with self._graph.inserting_before(node):
            length = self._masks.true_extent(self.axes(tensor)[axis])
            place = call(aten.view.default, (call(aten.add.Tensor, (length, index)), [1]))
            one = call(aten.index_select.default, (tensor, axis, place))
            self._replace(node, call(aten.squeeze.dim, (one, axis)))

    def join(self, node: Any, parts: Sequence[Any], number: int) -> None:
        """Replace a concatenation by one where the next part begins where the smaller one ends."""
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

    def with_true_sizes(self, node: Any) -> None:
        """Replace sizes that a tensor is computed with by those of the smaller shape."""
        tensors = [one for one in node.all_input_nodes if not self.is_size(one)]
        if node.target._overloadname not in ("Tensor", "Scalar"):
            raise UnpaddableError("it computes with the size")
        dtypes = [one.meta["val"].dtype for one in tensors]
        if not all(dtype.is_floating_point or dtype == torch.int64 for dtype in dtypes):
            raise UnpaddableError("it computes with the size")
        with self._graph.inserting_before(node):
            arguments = tuple(
                self._masks.true_extent(axis_of(one.meta["val"].node.expr))
                if isinstance(one, fx.Node) and self.is_size(one)
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


def name_of(node: Any) -> str:
    """Return what an operator is called, whatever its overload."""
    return operator_name(node.target)


def symbols_of(extent: Any) -> Any:
    """Return the symbols of an extent; a number has none."""
    return getattr(extent, "free_symbols", ())
