"""A network whose dimensions have ranges, as networks of fixed shapes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
from torch import fx

from costlib.errors import InputError
from costlib.tvm_compat.direct_calls import MAIN
from costlib.workloads.importers.torch_export import export_with
from costlib.workloads.network import Network
from costlib.workloads.ranges.dimension import Dimension, Dims
from costlib.workloads.ranges.labels import UnpaddableError, axis_of, parts_of
from costlib.workloads.ranges.padding import Padded, padded
from costlib.workloads.ranges.symbolic import Symbolic, symbolic
from costlib.workloads.ranges.table import Point, Shape, ShapeTable, grid
from costlib.workloads.torch_arrays import to_torch

_POINTS = {1: 6, 2: 4}
"""Points of each of so many dimensions; of more, both ends."""

_MOST_POINTS = 32
"""Of a network."""


@dataclass(frozen=True)
class RangedNetwork:
    """A network at the points of its ranges.

    Attributes
    ----------
    symbolic
        The network as a program with ranges.
    table
        Its points, and which shapes they serve.
    networks
        The network at each combination of the table's columns.
    unpadded
        Why a larger point does not serve smaller shapes along some dimensions; ``None`` if it does
        along all.
    """

    symbolic: Symbolic
    table: ShapeTable
    networks: tuple[Network, ...]
    unpadded: str | None = None

    @property
    def name(self) -> str:
        """The network's."""
        return self.symbolic.name

    @property
    def functions(self) -> list[str]:
        """What each network is called in the compiled file, if it is there."""
        points = grid(self.table.columns)
        return [_function(self.table.dims, point, points[-1]) for point in points]

    def served_by(self, latency_s: Sequence[float]) -> RangedNetwork:
        """Let a larger point serve where it is faster, see :class:`ShapeTable`."""
        return replace(self, table=self.table.with_fastest(latency_s))


def ranged(source: Any, dims: Dims) -> RangedNetwork | None:
    """Take a network with ranges, if it has any.

    See :func:`costlib.workloads.ranges.symbolic.symbolic` and :func:`at_points`.
    """
    found = symbolic(source, dims)
    return None if found is None else at_points(found)


def at_points(found: Symbolic) -> RangedNetwork:
    """Choose the points of a network's ranges and import it at each.

    Raises
    ------
    InputError
        The shapes of a range have to be compiled each by itself, and are too many.
    """
    along, reason = _paddable(found)
    for dim in found.dims:
        if not dim.low and dim.name not in along:
            raise InputError(
                f"{found.name} cannot be compiled for '{dim.name}' of 0 ({reason}); begin at 1"
            )
    most = _POINTS.get(len(found.dims), 2)
    columns = [
        dim.points(most) if dim.name in along else tuple(range(dim.low, dim.high + 1))
        for dim in found.dims
    ]
    if math.prod(map(len, columns)) > _MOST_POINTS:
        each = [dim for dim in found.dims if dim.name not in along]
        raise InputError(
            f"{found.name}: a larger shape cannot serve a smaller one along "
            f"{', '.join(dim.name for dim in each)} ({reason}), so each is compiled by itself; "
            f"{math.prod(map(len, each))} are too many, narrow the range"
        )
    points = grid(columns)
    programs = [_padded(found, point, along) for point in points]
    networks = tuple(
        _network(found, point, program) for point, program in zip(points, programs, strict=True)
    )
    names = {symbol: name for name, symbol in found.symbols.items()}
    table = ShapeTable(
        signature=found.signature(points[-1]),
        dims=found.dims,
        padded=along,
        inputs=_shapes(found, "inputs"),
        outputs=_shapes(found, "outputs"),
        lengths=tuple(names[symbol] for symbol in programs[-1].lengths),
        columns=tuple(columns),
        points=tuple(
            Point(function=_function(found.dims, point, points[-1]), sizes=point)
            for point in points
        ),
    )
    return RangedNetwork(found, table, networks, reason)


def _function(dims: Sequence[Dimension], point: Sequence[int], largest: Sequence[int]) -> str:
    """Name the function of a point; that of the largest is what the network is by default."""
    if point == largest:
        return MAIN
    return "_".join([MAIN, *(f"{dim.name}{n}" for dim, n in zip(dims, point, strict=True))])


def _paddable(network: Symbolic) -> tuple[tuple[str, ...], str | None]:
    """Return the most dimensions along which a larger shape serves a smaller one.

    And why not all of them.
    """
    names = [dim.name for dim in network.dims if dim.low < dim.high]
    largest = [dim.high for dim in network.dims]
    reason = None
    for count in range(len(names), 0, -1):
        for along in combinations(names, count):
            try:
                _padded(network, largest, along)
                return along, reason
            except UnpaddableError as error:
                reason = reason or str(error)
    return (), reason


def _padded(network: Symbolic, point: Sequence[int], along: Sequence[str]) -> Padded:
    sizes = {dim.name: n for dim, n in zip(network.dims, point, strict=True)}
    symbols = network.symbols
    return padded(
        network.graph,
        {symbols[name]: n for name, n in sizes.items() if name in along},
        {symbols[name]: n for name, n in sizes.items() if name not in along},
        {symbols[dim.name]: dim.low for dim in network.dims},
    )


def _network(network: Symbolic, point: Sequence[int], program: Padded) -> Network:
    """Import a program at its point, where the original is what it is compared with."""
    named = ",".join(f"{dim.name}={n}" for dim, n in zip(network.dims, point, strict=True))
    inputs = network.example(point)
    extents = network.of_symbols(point)
    lengths = [np.array(extents[symbol], "int64") for symbol in program.lengths]
    arguments = [to_torch(array) for array in (*inputs, *lengths)]
    found = export_with(program.module, arguments, {}, f"{network.name}@{named}")
    return replace(found, reference=network.reference(point), examples=(*inputs, *lengths))


def _shapes(network: Symbolic, value: str) -> tuple[Shape, ...]:
    """Return the shapes of the inputs or outputs, with the names of dimensions."""
    names = {symbol: name for name, symbol in network.symbols.items()}

    def named(extent: Any) -> int | str | None:
        try:
            (factor,) = axis_of(extent if isinstance(extent, int) else extent.node.expr) or (1,)
        except UnpaddableError:
            return None
        if isinstance(factor, int):
            return factor
        symbol, _ = parts_of(factor)
        return factor.replace(symbol, names[symbol])

    nodes = network.graph.graph.nodes
    if value == "inputs":
        tensors = [node for node in nodes if node.op == "placeholder"]
    else:
        (output,) = (node for node in nodes if node.op == "output")
        tensors = [one for one in output.args[0] if isinstance(one, fx.Node)]
    return tuple(tuple(map(named, one.meta["val"].shape)) for one in tensors)
