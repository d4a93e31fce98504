"""What is written into a program so that it knows a smaller shape's extents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from costlib.workloads.ranges.labels import Axis, UnpaddableError, parts_of

aten = torch.ops.aten


class Masks:
    """Writes true extents, and masks of what lies within them, into a ``torch.fx.Graph``.

    Parameters
    ----------
    graph
        The graph.
    point
        Extent of each symbol that may be smaller.
    inputs, first
        Its inputs, and the first operator behind them.

    Attributes
    ----------
    lengths
        Inputs that are true extents, by the symbols, in order.
    """

    def __init__(
        self, graph: Any, point: Mapping[str, int], inputs: Sequence[Any], first: Any
    ) -> None:
        self._graph, self._point = graph, point
        self._inputs, self._first = inputs, first
        self._masks: dict[tuple[str, int], Any] = {}
        self.lengths: dict[str, Any] = {}

    def length(self, symbol: str) -> Any:
        """Return the input that is a dimension's true extent."""
        if symbol not in self.lengths:
            last = [*self._inputs, *self.lengths.values()][-1]
            with self._graph.inserting_after(last):
                self.lengths[symbol] = self._graph.placeholder(f"length_{symbol}")
        return self.lengths[symbol]

    def true_extent(self, axis: Axis) -> Any:
        """Write the extent that an axis has in the smaller shape, before the node at hand."""
        symbol, more = symbol_of(axis)
        length = self.length(symbol)
        return self._graph.call_function(aten.add.Tensor, (length, more)) if more else length

    def point_extent(self, axis: Axis) -> int:
        """Return the extent that an axis has at the point."""
        symbol, more = symbol_of(axis)
        return self._point[symbol] + more

    def mask(self, axis: Axis) -> Any:
        """Return which elements along an axis are within its extent in the smaller shape."""
        symbol, more = symbol_of(axis)
        if (symbol, more) not in self._masks:
            length = self.length(symbol)
            call = self._graph.call_function
            with self._graph.inserting_before(self._first):
                numbers = call(aten.arange.start, (-more, self._point[symbol]))
                self._masks[symbol, more] = call(aten.lt.Tensor, (numbers, length))
        return self._masks[symbol, more]

    def joined(self, first: Any, last: Any, number: int, axis: Axis, extent: int, rank: int) -> Any:
        """Write two tensors one behind the other, the second where the smaller first one ends.

        Parameters
        ----------
        first, last
            The tensors; the second one has an extent that is known.
        number, rank
            Of the axis along which they are joined, and how many there are.
        axis, extent
            What it is in the first one, and the second one's extent.
        """
        call = self._graph.call_function
        shape = [1] * rank
        shape[number] = self.point_extent(axis) + extent
        places = call(aten.arange.default, (shape[number],))
        behind = call(aten.sub.Tensor, (places, self.true_extent(axis)))
        if extent > 1:
            chosen = call(aten.clamp.default, (behind, 0, extent - 1))
            last_there = call(aten.index_select.default, (last, number, chosen))
        else:
            last_there = last
        is_first = call(aten.view.default, (call(aten.lt.Scalar, (behind, 0)), shape))
        whole = call(aten.cat.default, ([first, last], number))
        return call(aten.where.self, (is_first, whole, last_there))


def symbol_of(axis: Axis) -> tuple[str, int]:
    """Return the one dimension that an axis is, and how many elements more it has."""
    if len(axis) != 1:
        raise UnpaddableError("it mixes elements along several dimensions")
    return parts_of(str(axis[0]))
