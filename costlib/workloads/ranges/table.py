"""Which of the compiled points serves a shape, and how tensors are brought there and back."""

from __future__ import annotations

import itertools
import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from costlib.errors import InputError
from costlib.frozen import Frozen
from costlib.workloads.ranges.dimension import Dimension
from costlib.workloads.ranges.labels import parts_of
from costlib.workloads.signature import Signature, TensorSpec

Shape = tuple["int | str | None", ...]
"""Extents that are numbers, names of dimensions, or these and so many elements more or less.

``None`` is one of an output that is whatever comes out: no dimension along it is padded.
"""


_ALIGNMENT = 64
"""Bytes."""


class Point(Frozen):
    """A shape that is compiled.

    Attributes
    ----------
    function
        Of the compiled network.
    sizes
        Extents of its dimensions, in their order.
    """

    function: str
    sizes: tuple[int, ...]


class Served(NamedTuple):
    """How a shape is computed.

    Attributes
    ----------
    point
        What computes it.
    inputs
        Shapes to which the inputs are padded.
    lengths
        What the point's function takes after them: int64 scalars.
    outputs
        Shapes to which the outputs are cropped, as far as they are known.
    """

    point: Point
    inputs: list[tuple[int, ...]]
    lengths: list[np.ndarray]
    outputs: list[tuple[int | None, ...]]


class ShapeTable(Frozen):
    """The points of a network, and the shapes that they serve.

    Attributes
    ----------
    signature
        What the network takes and returns at the largest point.
    dims
        Its dimensions.
    padded
        Those along which a larger point serves a smaller shape; along others there is a point for
        each extent.
    inputs, outputs
        Shapes of its tensors.
    lengths
        Dimensions whose true extents each function takes after the inputs, as int64 scalars.
    columns
        Extents of each dimension that there are points for.
    points
        What serves each combination of these, the last dimension's running fastest: the point with
        these extents, or a larger one.
    anywhere
        The function that computes a shape which no point does; ``None`` if there is none.
    """

    signature: Signature
    dims: tuple[Dimension, ...]
    padded: tuple[str, ...]
    inputs: tuple[Shape, ...]
    outputs: tuple[Shape, ...]
    lengths: tuple[str, ...]
    columns: tuple[tuple[int, ...], ...]
    points: tuple[Point, ...]
    anywhere: str | None = None

    @cached_property
    def _serving(self) -> tuple[tuple[int | None, ...], ...]:
        """For each extent of each dimension, how far its points lie from the first one.

        ``None`` where there is none.
        """
        strides = [math.prod(map(len, self.columns[n + 1 :])) for n in range(len(self.columns))]
        return tuple(
            tuple(
                stride * bisect_left(column, n) if dim.name in self.padded or n in column else None
                for n in range(dim.low, dim.high + 1)
            )
            for dim, column, stride in zip(self.dims, self.columns, strides, strict=True)
        )

    def with_fastest(self, latency_s: Sequence[float]) -> ShapeTable:
        """Let a larger point serve where it is faster: one that was tuned more, perhaps.

        ``latency_s`` are the seconds of each point.
        """
        can_be = [
            [n for n, other in enumerate(self.points) if self._computes(other, point)]
            for point in self.points
        ]
        best = [min(others, key=lambda n: (latency_s[n], n)) for others in can_be]
        known = self.model_dump() | {"points": tuple(self.points[n] for n in best)}
        return ShapeTable.model_validate(known)

    def _computes(self, other: Point, point: Point) -> bool:
        triples = zip(self.dims, other.sizes, point.sizes, strict=True)
        return all(a == b or (a > b and dim.name in self.padded) for dim, a, b in triples)

    @cached_property
    def _known(self) -> dict[tuple[int, ...], Served]:
        """What serves the shapes that have been asked for: to look it up takes nanoseconds."""
        return {}

    def serving(self, sizes: Sequence[int]) -> Point:
        """Return the nearest point that computes a shape; its extents lie in the ranges.

        Where there is none, the function of any shape is a point of these extents.
        """
        return self.served(sizes).point

    def served(self, sizes: Sequence[int]) -> Served:
        """Return how a shape is computed; its extents lie in the ranges."""
        key = tuple(sizes)
        found = self._known.get(key)
        if found is None:
            point = self._nearest(key)
            found = self._known[key] = Served(
                point,
                self._input_shapes(point.sizes),
                self._true_extents(point, key),
                self._output_shapes(key),
            )
        return found

    def _nearest(self, sizes: tuple[int, ...]) -> Point:
        place = 0
        for steps, dim, size in zip(self._serving, self.dims, sizes, strict=True):
            step = steps[size - dim.low]
            if step is None:
                assert self.anywhere is not None, "each extent has a point, or there is a function"
                return Point(function=self.anywhere, sizes=sizes)
            place += step
        return self.points[place]

    def sizes_of(self, given: Sequence[TensorSpec]) -> tuple[int, ...]:
        """Return the extents of the dimensions that inputs have.

        Raises
        ------
        InputError
            The inputs are not what the network takes.
        """
        found: dict[str, int] = {}
        ranges = {dim.name: dim for dim in self.dims}
        for tensor, spec, shape in zip(given, self.signature.inputs, self.inputs, strict=True):
            wanted = spec.name, spec.dtype, len(shape)
            fits = wanted == (tensor.name, tensor.dtype, len(tensor.shape))
            for extent, name in zip(tensor.shape, shape, strict=False):
                if not isinstance(name, str):
                    fits = fits and extent == name
                elif found.setdefault(name, extent) != extent:
                    raise InputError(
                        f"'{name}' is {found[name]} in one input and {extent} in {tensor.name}"
                    )
            if not fits:
                takes = f"{spec.name}: {spec.dtype}[{', '.join(map(str, shape))}]"
                raise InputError(f"the network takes {takes}; given was {tensor}")
        for name, extent in found.items():
            if not ranges[name].low <= extent <= ranges[name].high:
                raise InputError(f"'{name}' is {extent}; the network takes {ranges[name]}")
        return tuple(found[dim.name] for dim in self.dims)

    def _input_shapes(self, sizes: Sequence[int]) -> list[tuple[int, ...]]:
        """Return the shapes of the inputs with these extents."""
        known = self.named(sizes)
        return [tuple(_extent(n, known) or 0 for n in shape) for shape in self.inputs]

    def _output_shapes(self, sizes: Sequence[int]) -> list[tuple[int | None, ...]]:
        """Return the shapes of the outputs with these extents, as far as they are known."""
        known = self.named(sizes)
        return [tuple(_extent(extent, known) for extent in shape) for shape in self.outputs]

    def _true_extents(self, point: Point, sizes: Sequence[int]) -> list[np.ndarray]:
        """Return what the function of a point takes after the inputs."""
        if point.function == self.anywhere:
            return []
        known = self.named(sizes)
        return [np.array(known[name], "int64") for name in self.lengths]

    def named(self, sizes: Sequence[int]) -> dict[str, int]:
        """Return extents by the names of the dimensions."""
        return {dim.name: size for dim, size in zip(self.dims, sizes, strict=True)}


def _extent(extent: int | str | None, known: Mapping[str, int]) -> int | None:
    if not isinstance(extent, str):
        return extent
    name, more = parts_of(extent)
    return known[name] + more


def grid(columns: Sequence[Sequence[int]]) -> list[tuple[int, ...]]:
    """Return all combinations of extents, the last dimension's running fastest."""
    return list(itertools.product(*columns))


def padded_to(array: np.ndarray, shape: Sequence[int]) -> np.ndarray:
    """Repeat the last elements along each axis until an array has a shape.

    What is repeated is as valid an input as what was given: a token that is in the vocabulary, a
    divisor that is not zero. Where there is nothing to repeat it is zero.
    """
    if array.shape == tuple(shape):
        return array
    if not array.size:
        return np.zeros(shape, array.dtype)
    found = _aligned(shape, array.dtype)
    found[tuple(map(slice, array.shape))] = array
    for axis, extent in enumerate(array.shape):
        if extent < shape[axis]:
            before = (slice(None),) * axis
            found[(*before, slice(extent, None))] = found[(*before, slice(extent - 1, extent))]
    return found


def _aligned(shape: Sequence[int], dtype: np.dtype[Any]) -> np.ndarray:
    """Return memory that TVM takes as it is; what lies elsewhere it copies, which takes longer."""
    nbytes = math.prod(shape) * dtype.itemsize
    memory = np.empty(nbytes + _ALIGNMENT, "uint8")
    first = -memory.ctypes.data % _ALIGNMENT
    return memory[first : first + nbytes].view(dtype).reshape(shape)
