"""The kernels of Winograd's algorithm: what it does before and after its matrix products.

Each is written with its schedule: tiles in parallel, channels in vectors, everything else a
straight line, in which what two sums share is computed once. There is nothing in them to tune.

A batch of volumes is one of images to them, its slices.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.polynomial.polynomial import polyfromroots

from costlib.tvm_compat import tirx
from costlib.workloads.computed import FUSED_WITH_WHAT_FOLLOWS
from costlib.workloads.written_kernels import indices_of, written_kernel

_TAPS = 3
_POINTS = {
    2: (0.0, 1.0, -1.0),
    4: (0.0, 3 / 4, -3 / 4, 4 / 3, -4 / 3),
}
"""Where the polynomials are evaluated, besides at infinity, by tile.

Which points they are decides how exact sums of float32 are (Barabasz et al., arXiv:1803.10986):
with 3/4 and its reciprocal they are more so than with the usual 1 and 2.
"""

_DECIMALS = 12
"""What is left of a zero that was computed is smaller."""

TILES = tuple(_POINTS)
"""Outputs of a tile in each direction."""

OUTPUT = "winograd_output"
"""Name of the block that writes the result."""

_LANES = (16, 8)
"""Channels of a step, the first that divides them all; with blocks, a block."""


@dataclass(frozen=True)
class Image:
    """A tensor of images with channels last, or in blocks; or of volumes with channels last.

    Attributes
    ----------
    batch, height, width, channels
        Its logical extents; each slice of a volume is an image.
    block
        Channels of a block, ``None`` with channels last.
    depth
        Slices of a volume; ``None`` if there are no volumes.
    """

    batch: int
    height: int
    width: int
    channels: int
    block: int | None = None
    depth: int | None = None

    @property
    def volumes(self) -> tuple[int, ...]:
        """Volumes and the slices of each; how many images, if there are no volumes."""
        return (self.batch,) if self.depth is None else (self.batch // self.depth, self.depth)

    @property
    def shape(self) -> tuple[int, ...]:
        """How it is stored."""
        if self.block is None:
            return *self.volumes, self.height, self.width, self.channels
        return self.batch, self.channels // self.block, self.height, self.width, self.block

    @property
    def nbytes(self) -> int:
        """Its size as float32."""
        return 4 * self.batch * self.height * self.width * self.channels

    def place(self, image: Any, y: Any, x: Any, channel: Any) -> list[Any]:
        """Return the indices of a number."""
        if self.block is None:
            at = [image] if self.depth is None else indices_of(image, self.volumes)
            return [*at, y, x, channel]
        chunk, inner = tirx.indexdiv(channel, self.block), tirx.indexmod(channel, self.block)
        return [image, chunk, y, x, inner]


def places(tile: int) -> int:
    """Return of how many numbers of input a tile is made, which is the number of its products."""
    return (tile + _TAPS - 1) ** 2


def tiles(image: Image, output: Image, tile: int) -> tuple[int, ...]:
    """Return how the tiles of what a convolution reads or writes are stored.

    They are so many, for volumes in each slice of each of them.
    """
    of_one = -(-output.height // tile) * -(-output.width // tile)
    return (image.batch * of_one,) if image.depth is None else (*image.volumes, of_one)


def transformed_weights(weight: np.ndarray, tile: int) -> np.ndarray:
    """Transform float32 `O x I x ... x 3 x 3` to `places x ... x I x O`."""
    before, _, _ = _matrices(tile)
    found = np.einsum(
        "ak,oi...kl,bl->ab...io", before, weight.astype("float64"), before, optimize=True
    )
    return np.ascontiguousarray(found.reshape(places(tile), *found.shape[2:]).astype(weight.dtype))


def input_transform(image: Image, output: Image, padding: tuple[int, int], tile: int) -> Any:
    """Return the function that transforms an image to `places x tiles x channels`.

    Parameters
    ----------
    image, output
        What the convolution reads and writes.
    padding
        Zeros above and left of each image.
    tile
        Outputs of a tile in each direction.
    """
    _, matrix, _ = _matrices(tile)
    size = len(matrix)
    x = _buffer("x", image.shape)
    stored = tiles(image, output, tile)
    v = _buffer("v", (places(tile), *stored, image.channels))

    def body(index: Any, channel: Any) -> list[Any]:
        line = _Line()
        number, top, left = _corner(index, output, tile)
        rows = [top - padding[0] + i for i in range(size)]
        columns = [left - padding[1] + j for j in range(size)]

        def read(y: Any, x_: Any) -> Any:
            inside = tirx.all(y >= 0, y < image.height, x_ >= 0, x_ < image.width)
            y, x_ = (
                tirx.max(tirx.min(at, extent - 1), 0)
                for at, extent in ((y, image.height), (x_, image.width))
            )
            # By a name: TVM would simplify the index in the selection to what may lie outside.
            load = line.named(tirx.BufferLoad(x, image.place(number, y, x_, channel)))
            return line.named(tirx.Select(inside, load, tirx.const(0.0, "float32")))

        values = line.transformed(matrix, [[read(y, x_) for x_ in columns] for y in rows])
        stores = [
            tirx.BufferStore(v, values[i][j], [i * size + j, *_stored(index, stored), channel])
            for i in range(size)
            for j in range(size)
        ]
        return [*line.statements, *stores]

    return _function(x, v, math.prod(stored), image, body, "winograd_input")


def output_transform(output: Image, tile: int) -> Any:
    """Return the function that makes an image of products, `places x tiles x channels`."""
    _, _, matrix = _matrices(tile)
    size = len(matrix[0])
    stored = tiles(output, output, tile)
    m = _buffer("m", (places(tile), *stored, output.channels))
    y = _buffer("y", output.shape)

    def body(index: Any, channel: Any) -> list[Any]:
        line, at = _Line(), _stored(index, stored)
        number, top, left = _corner(index, output, tile)
        read = [
            [line.named(tirx.BufferLoad(m, [place, *at, channel])) for place in row]
            for row in np.arange(size * size).reshape(size, size).tolist()
        ]
        values = line.transformed(matrix, read)
        statements = line.statements
        for i in range(tile):
            for j in range(tile):
                place = output.place(number, top + i, left + j, channel)
                store = tirx.BufferStore(y, values[i][j], place)
                inside = []
                if output.height % tile:
                    inside.append(top + i < output.height)
                if output.width % tile:
                    inside.append(left + j < output.width)
                statements.append(
                    tirx.IfThenElse(tirx.all(*inside), store, None) if inside else store
                )
        return statements

    function = _function(m, y, math.prod(stored), output, body, OUTPUT)
    return function.with_attr("op_pattern", FUSED_WITH_WHAT_FOLLOWS)


class _Line:
    """A straight line of statements that name what they compute."""

    def __init__(self) -> None:
        self.statements: list[Any] = []

    def named(self, value: Any) -> Any:
        variable = tirx.Var("t", "float32")
        self.statements.append(tirx.Bind(variable, value))
        return variable

    def transformed(self, matrix: np.ndarray, values: Sequence[Sequence[Any]]) -> list[list[Any]]:
        """Return `matrix @ values @ matrix.T`."""
        columns = [self._product(matrix, column) for column in zip(*values, strict=True)]
        return [self._product(matrix, row) for row in zip(*columns, strict=True)]

    def _product(self, matrix: np.ndarray, values: Sequence[Any]) -> list[Any]:
        """Return `matrix @ values`; rows that differ in some signs share their two halves."""
        found: dict[int, Any] = {}
        for i, row in enumerate(matrix):
            if i in found:
                continue
            found[i] = None
            for j in range(i + 1, len(matrix)):
                same = np.where(matrix[j] == row, row, 0.0)
                if j not in found and same.any() and (matrix[j] == same - (row - same)).all():
                    one, other = (self.named(_sum(part, values)) for part in (same, row - same))
                    found[i], found[j] = self.named(one + other), self.named(one - other)
                    break
            else:
                found[i] = self.named(_sum(row, values))
        return [found[i] for i in range(len(matrix))]


def _sum(factors: np.ndarray, values: Sequence[Any]) -> Any:
    terms = [
        value if factor == 1 else value * tirx.const(float(factor), "float32")
        for factor, value in zip(factors, values, strict=True)
        if factor
    ]
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return total


def _corner(index: Any, output: Image, tile: int) -> tuple[Any, Any, Any]:
    """Return the image, row and column of a tile's first output."""
    down, across = -(-output.height // tile), -(-output.width // tile)
    return (
        tirx.indexdiv(index, down * across),
        tirx.indexmod(tirx.indexdiv(index, across), down) * tile,
        tirx.indexmod(index, across) * tile,
    )


def _stored(index: Any, tiles: tuple[int, ...]) -> list[Any]:
    """Return where a tile is stored."""
    return [index] if len(tiles) == 1 else indices_of(index, tiles)


def _buffer(name: str, shape: Sequence[int]) -> Any:
    extents = [tirx.const(n, "int64") for n in shape]
    return tirx.decl_buffer(extents, "float32", name, layout=None)


def _function(
    source: Any,
    target: Any,
    count: int,
    image: Image,
    body: Callable[[Any, Any], list[Any]],
    name: str,
) -> Any:
    """Return a function that runs a body for each tile and channel of an image."""
    lanes = image.block or next(n for n in _LANES if image.channels % n == 0)
    loops = [
        (count, tirx.ForKind.PARALLEL),
        (image.channels // lanes, tirx.ForKind.SERIAL),
        (lanes, tirx.ForKind.VECTORIZED),
    ]

    def statements(index: Any, chunk: Any, lane: Any) -> Any:
        return tirx.SeqStmt(body(index, chunk * lanes + lane))

    return written_kernel(name, [source, target], loops, statements)


def _matrices(tile: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return Cook and Toom's matrices for weights, input and output, made of the points.

    float64 `n x 3`, `n x n` and `tile x n`: a convolution of a tile with three weights is
    `output @ ((weights @ w) * (input @ x))`.
    """
    points = np.array(_POINTS[tile])
    others = [np.delete(points, place) for place in range(len(points))]
    scales = [np.prod(point - other) for point, other in zip(points, others, strict=True)]
    evaluated = np.vander(points, _TAPS, increasing=True) / np.reshape(scales, (-1, 1))
    weights = np.vstack([evaluated, np.eye(_TAPS)[-1]])
    shorter = [np.append(polyfromroots(other), 0.0) for other in others]
    inputs = np.vstack([*shorter, polyfromroots(points)])
    outputs = np.vstack([np.vander(points, tile, increasing=True), np.eye(tile)[-1]]).T
    return weights.round(_DECIMALS), inputs.round(_DECIMALS), outputs.round(_DECIMALS)
