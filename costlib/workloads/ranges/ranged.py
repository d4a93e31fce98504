"""A network whose dimensions have ranges, as networks of fixed shapes."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from costlib.errors import InputError, UnsupportedModelError
from costlib.hardware import Hardware
from costlib.tvm_compat.any_shape import lowered
from costlib.tvm_compat.direct_calls import MAIN
from costlib.workloads.half_precision import HalfFormat
from costlib.workloads.interface import with_shapes
from costlib.workloads.network import Network
from costlib.workloads.ranges.dimension import Dimension, Dims
from costlib.workloads.ranges.points import columns_of
from costlib.workloads.ranges.symbolic import Symbolic, symbolic
from costlib.workloads.ranges.table import Point, ShapeTable, grid
from costlib.workloads.small_weights import WeightFormat
from costlib.workloads.variants import with_dtype, with_weights

_log = logging.getLogger(__name__)

_MOST_POINTS = 32
"""Of a network."""

_FEW_POINTS = 6
"""Of a network that is not tuned."""

ANYWHERE = f"{MAIN}_anywhere"
"""The function that computes shapes which no point does."""


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
    anywhere
        The network as a Relax module of symbolic extents, which computes what no point does;
        ``None`` if the points compute all shapes.
    """

    symbolic: Symbolic
    table: ShapeTable
    networks: tuple[Network, ...]
    unpadded: str | None = None
    anywhere: Any = None

    @property
    def name(self) -> str:
        """The network's."""
        return self.symbolic.name

    @property
    def functions(self) -> list[str]:
        """What each network is called in the compiled file, if it is there."""
        points = grid(self.table.columns)
        return [_function(self.table.dims, point, points[-1]) for point in points]

    def rounded(self, weights: WeightFormat | None, dtype: HalfFormat | None) -> RangedNetwork:
        """Return it with weights of few bits, or products in 16 bits, at each point.

        Raises
        ------
        InputError
            Some shapes have no point: the program of any shape computes in float32.
        """
        if self.anywhere is not None and (weights or dtype):
            raise InputError(
                f"{self.name}: shapes that no point computes are computed in float32, not in "
                f"{weights or dtype} ({self.unpadded}); narrow the range to {_MOST_POINTS} shapes"
            )
        networks = (with_dtype(with_weights(one, weights), dtype) for one in self.networks)
        return replace(self, networks=tuple(networks))

    def alone(self, sizes: Sequence[int]) -> Network:
        """Import it at a shape, as it would be without ranges; nothing is padded."""
        network, _ = self.symbolic.at(sizes, ())
        point = self.networks[-1]
        return with_dtype(with_weights(network, point.weights), point.dtype)

    def as_one(self, prepared: Sequence[Any], hardware: Hardware) -> Any:
        """Put the networks, prepared for a hardware, into one module that takes all shapes.

        Raises
        ------
        UnsupportedModelError
            TVM cannot lower the program of any shape.
        """
        named = dict(zip(self.functions, prepared, strict=True))
        named[ANYWHERE] = self.at_any_shape(hardware)
        return with_shapes(named, self.table)

    def at_any_shape(self, hardware: Hardware) -> Any:
        """Return the program of any shape, lowered for a hardware; ``None`` if there is none."""
        return None if self.anywhere is None else lowered(self.anywhere, hardware.tvm_target())

    def served_by(self, latency_s: Sequence[float]) -> RangedNetwork:
        """Let a larger point serve where it is faster, see :class:`ShapeTable`."""
        return replace(self, table=self.table.with_fastest(latency_s))


def ranged(source: Any, dims: Dims) -> RangedNetwork | None:
    """Take a network with ranges, if it has any.

    See :func:`costlib.workloads.ranges.symbolic.symbolic` and :func:`at_points`.
    """
    found = symbolic(source, dims)
    return None if found is None else at_points(found)


def _few(largest: Network) -> int:
    return _FEW_POINTS


def at_points(found: Symbolic, affordable: Callable[[Network], int] = _few) -> RangedNetwork:
    """Choose the points of a network's ranges and import it at each.

    Parameters
    ----------
    found
        The network.
    affordable
        Told the network at the largest point; returns how many points there may be in all. Both
        ends of each range are points all the same; see :mod:`costlib.workloads.ranges.points`.

    Raises
    ------
    InputError
        The shapes of a range have to be compiled each by itself, are too many, and there is no
        program of any shape.
    """
    along, reason = found.paddable()
    for dim in found.dims:
        if not dim.low and dim.name not in along:
            raise InputError(
                f"{found.name} cannot be compiled for '{dim.name}' of 0 ({reason}); begin at 1"
            )
    largest = tuple(dim.high for dim in found.dims)
    at = {largest: found.at(largest, along)}
    most = min(affordable(at[largest][0]), _MOST_POINTS)
    columns = _columns(found, along, most)
    anywhere = None
    if math.prod(map(len, columns)) > _MOST_POINTS:
        anywhere = _at_any_shape(found, along, reason)
        _log.warning(
            "%s: shapes that no point computes have an untuned program, which takes longer (%s)",
            found.name,
            reason,
        )
        columns = columns_of(found.dims, most)
    points = grid(columns)
    at |= {point: found.at(point, along) for point in points if point not in at}
    table = ShapeTable(
        signature=found.signature(points[-1]),
        dims=found.dims,
        padded=along,
        inputs=found.input_shapes,
        outputs=found.output_shapes,
        lengths=at[points[-1]][1],
        columns=tuple(columns),
        points=tuple(
            Point(function=_function(found.dims, point, points[-1]), sizes=point)
            for point in points
        ),
        anywhere=None if anywhere is None else ANYWHERE,
    )
    networks = tuple(at[point][0] for point in points)
    return RangedNetwork(found, table, networks, reason, anywhere)


def _columns(found: Symbolic, along: Sequence[str], most: int) -> list[tuple[int, ...]]:
    """Choose extents where a larger one serves a smaller one; take all of them elsewhere."""
    others = {
        dim.name: tuple(range(dim.low, dim.high + 1)) for dim in found.dims if dim.name not in along
    }
    padded = [dim for dim in found.dims if dim.name in along]
    each = math.prod(map(len, others.values()))
    names = [dim.name for dim in padded]
    columns = others | dict(zip(names, columns_of(padded, most // each), strict=True))
    return [columns[dim.name] for dim in found.dims]


def _at_any_shape(found: Symbolic, along: Sequence[str], reason: str | None) -> Any:
    """Return the program of any shape where a larger point serves too few of them."""
    try:
        return found.at_any_shape()
    except UnsupportedModelError as error:
        each = [dim for dim in found.dims if dim.name not in along]
        raise InputError(
            f"{found.name}: a larger shape cannot serve a smaller one along "
            f"{', '.join(dim.name for dim in each)} ({reason}), so each is compiled by itself; "
            f"{math.prod(map(len, each))} are too many, and TVM has no program of any shape "
            f"({error}); narrow the range"
        ) from None


def _function(dims: Sequence[Dimension], point: Sequence[int], largest: Sequence[int]) -> str:
    """Name the function of a point; that of the largest is what the network is by default."""
    if point == largest:
        return MAIN
    return "_".join([MAIN, *(f"{dim.name}{n}" for dim, n in zip(dims, point, strict=True))])
