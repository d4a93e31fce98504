"""The kernel of attention: scores that never leave the cache of a core.

Scores of a few queries with all keys are computed, made a softmax of, and multiplied with the
values, before those of the next queries are: as in FlashAttention (Dao et al., arXiv:2205.14135),
but with whole rows, for which a CPU's caches have room. Products are computed in registers, a tile
at a time. The kernel is written with its schedule; there is nothing in it to tune.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from costlib.tvm_compat import tirx, tvm
from costlib.workloads.safe_softmax import TINY
from costlib.workloads.winograd_kernels import BY_HAND, root, whole

NAME = "attention"

_ROWS = 6
"""Of a tile: each vector that is loaded is multiplied with so many numbers."""

_FEWEST_ROWS = 3
"""Of a tile at the end of a block."""

_MOST_ROWS = 66
"""Of a block."""

_CACHE_SHARE = 4
"""Scores of a block take at most this part of what cache a core has for itself."""

Load = Callable[[Sequence[Any]], Any]
"""Returns the number that indices stand for."""


class Step(NamedTuple):
    """What is done to a score: ``compute`` takes it, and what its operands are in its place."""

    compute: Callable[..., Any]
    operands: tuple[Load, ...]


@dataclass(frozen=True)
class Attention:
    """What to compute.

    Attributes
    ----------
    batch
        Leading extents, heads among them.
    queries, keys
        How many there are of each.
    depth, width
        Numbers of a query or key, and of a value.
    query, key, value
        Load a number: of indices of the batch and then of a query and its depth, of a depth and a
        key, or of a key and its width. Neighbours along the last index are neighbours in memory;
        there are as many keys as make whole vectors.
    steps
        What is done to the scores before the softmax; operands are given indices of the batch, a
        query and a key.
    is_safe
        Whether the softmax of scores that all are minus infinity is 0.
    place
        Turns indices of the batch, a query and a width into those of the result.
    """

    batch: tuple[int, ...]
    queries: int
    keys: int
    depth: int
    width: int
    query: Load
    key: Load
    value: Load
    steps: tuple[Step, ...]
    is_safe: bool
    place: Callable[[Sequence[Any]], Sequence[Any]]


@dataclass(frozen=True)
class Machine:
    """What to compute it on.

    Attributes
    ----------
    lanes
        Numbers of a vector, of which ``width`` is a multiple.
    vectors
        Of a tile, with all rows of which they leave room in the registers.
    num_cores
        How many share the work.
    cache_bytes
        What each has for itself.
    """

    lanes: int
    vectors: int
    num_cores: int
    cache_bytes: int


def attention_kernel(what: Attention, machine: Machine, buffers: Sequence[Any]) -> Any:
    """Return the function that computes attention; ``buffers`` are its arguments, results last."""
    writer = _Writer(what, machine, buffers[-1])
    zero, count = _number(0), _number(math.prod(what.batch) * writer.blocks)
    loop, index = (tirx.Var(name, "int64") for name in ("p", "vp"))
    block = tvm.s_tir.SBlock(
        [tirx.IterVar((zero, count), index, tirx.IterVar.DataPar)],
        [whole(buffer) for buffer in buffers[:-1]],
        [whole(buffers[-1])],
        NAME,
        tirx.SeqStmt(list(writer.statements(index))),
        alloc_buffers=writer.buffers,
        annotations=BY_HAND,
    )
    nest = tvm.s_tir.SBlockRealize([loop], True, block)
    nest = tirx.For(loop, zero, count, tirx.ForKind.PARALLEL, nest)
    return tirx.PrimFunc(list(buffers), root(nest)).with_attr("tirx.noalias", True)


def rows_of_block(what: Attention, machine: Machine) -> int:
    """Return of how many queries the scores are computed before they are used.

    As many as leave no core idle while others still compute, and rather more than fewer.
    """
    row_bytes = 4 * -(-what.keys // machine.lanes) * machine.lanes
    most = min(machine.cache_bytes // _CACHE_SHARE // row_bytes, _MOST_ROWS)
    most = min(max(most, _ROWS), what.queries)

    def rows_of_a_core(rows: int) -> int:
        blocks = math.prod(what.batch) * -(-what.queries // rows)
        return -(-blocks // machine.num_cores) * rows

    fitting = [n for n in range(1, most + 1) if n % _ROWS == 0 or n % _ROWS >= _FEWEST_ROWS]
    return min(fitting or [most], key=lambda rows: (rows_of_a_core(rows), -rows))


class _Part(NamedTuple):
    """A stretch that is cut into pieces: where it begins, how many they are, and their size."""

    start: int
    pieces: int
    size: int


def _cut(start: int, end: int, size: int) -> Iterator[_Part]:
    """Cut a stretch into pieces, the last of which may be smaller."""
    count, rest = divmod(end - start, size)
    if count:
        yield _Part(start, count, size)
    if rest:
        yield _Part(end - rest, 1, rest)


class _Tile(NamedTuple):
    """Rows and vectors that are computed at once: where they begin, and how many they are."""

    row: Any
    column: Any
    rows: int
    vectors: int


class _Writer:
    """Writes what is done with a block of queries."""

    def __init__(self, what: Attention, machine: Machine, output: Any) -> None:
        self._what, self._machine, self._output = what, machine, output
        self._lanes = machine.lanes
        self._vectors = -(-what.keys // machine.lanes)
        self._rows = rows_of_block(what, machine)
        self.blocks = -(-what.queries // self._rows)
        self._scores = _buffer("scores", [self._rows, self._vectors * machine.lanes])
        self._sums = _buffer("sums", [self._rows])
        self._largest = _buffer("largest", [1])
        self._tile = _buffer("tile", [_ROWS, machine.vectors * machine.lanes], scope="local")
        self.buffers = [self._scores, self._sums, self._largest, self._tile]

    def statements(self, block: Any) -> Iterator[Any]:
        """Return what is done for a block, given its number among all."""
        batch: list[Any] = []
        number = tirx.indexdiv(block, self.blocks)
        for extent in reversed(self._what.batch):
            batch.insert(0, tirx.indexmod(number, extent))
            number = tirx.indexdiv(number, extent)
        # The last block does again what the one before it has done, where it must.
        first = tirx.indexmod(block, self.blocks) * self._rows
        first = tirx.min(first, self._what.queries - self._rows)

        full = self._what.keys // self._lanes
        scored = partial(self._scored, batch=batch, first=first)
        yield from self._tiles(0, full, scored)
        yield from self._tiles(full, self._vectors, partial(scored, is_last=True))
        yield _loop(self._rows, self._exponentials)
        width = self._what.width // self._lanes
        yield from self._tiles(0, width, partial(self._result, batch=batch, first=first))

    def _tiles(self, start: int, end: int, body: Callable[[_Tile], Any]) -> Iterator[Any]:
        """Do something for all rows of these vectors, a tile at a time."""
        for columns in _cut(start, end, self._machine.vectors):
            for rows in _cut(0, self._rows, _ROWS):
                yield self._loops(columns, rows, body)

    def _loops(self, columns: _Part, rows: _Part, body: Callable[[_Tile], Any]) -> Any:
        def tile(i: Any, j: Any) -> _Tile:
            column = (j * columns.size + columns.start) * self._lanes
            return _Tile(i * rows.size + rows.start, column, rows.size, columns.size)

        return _loop(columns.pieces, lambda j: _loop(rows.pieces, lambda i: body(tile(i, j))))

    def _scored(
        self, tile: _Tile, batch: Sequence[Any], first: Any, *, is_last: bool = False
    ) -> Any:
        """Multiply queries with keys, and do what is done to the product; the last may be none."""
        what = self._what

        def stored(i: Any, j: Any) -> Any:
            at = [*batch, first + tile.row + i, tile.column + j]
            score = self._tile[i, j]
            for compute, operands in what.steps:
                score = compute(score, *(operand(at) for operand in operands))
            if is_last:
                nothing = tirx.const(-math.inf, "float32")
                score = tirx.if_then_else(at[-1] < what.keys, score, nothing)
            return tirx.BufferStore(self._scores, score, [tile.row + i, tile.column + j])

        kind = tirx.ForKind.SERIAL if is_last else tirx.ForKind.VECTORIZED
        return tirx.SeqStmt(
            [
                *self._product(
                    tile,
                    what.depth,
                    lambda i, k: what.query([*batch, first + tile.row + i, k]),
                    lambda k, j: what.key([*batch, k, tile.column + j]),
                ),
                self._each(tile, stored, kind),
            ]
        )

    def _exponentials(self, row: Any) -> Any:
        """Raise e to the scores of a row, less the largest, and add them up."""
        scores, largest, sums = self._scores, self._largest[0], self._sums[row]
        columns = self._vectors * self._lanes
        least = float(np.finfo("float32").min) if self._what.is_safe else -math.inf

        def maximum(j: Any) -> Any:
            return tirx.BufferStore(self._largest, tirx.max(largest, scores[row, j]), [0])

        def power(j: Any) -> Any:
            return tirx.BufferStore(scores, tirx.exp(scores[row, j] - largest), [row, j])

        def added(j: Any) -> Any:
            return tirx.BufferStore(self._sums, sums + scores[row, j], [row])

        vector = tirx.ForKind.VECTORIZED
        return tirx.SeqStmt(
            [
                tirx.BufferStore(self._largest, tirx.const(least, "float32"), [0]),
                _loop(columns, maximum),
                _loop(
                    self._vectors,
                    lambda j: _loop(self._lanes, lambda x: power(j * self._lanes + x), vector),
                ),
                tirx.BufferStore(self._sums, tirx.const(0.0, "float32"), [row]),
                _loop(columns, added),
            ]
        )

    def _result(self, tile: _Tile, batch: Sequence[Any], first: Any) -> Any:
        """Multiply the softmax with values."""
        what = self._what

        def stored(i: Any, j: Any) -> Any:
            row = tile.row + i
            total = self._sums[row]
            if what.is_safe:
                total = tirx.max(total, tirx.const(TINY, "float32"))
            place = what.place([*batch, first + row, tile.column + j])
            return tirx.BufferStore(self._output, self._tile[i, j] / total, place)

        return tirx.SeqStmt(
            [
                *self._product(
                    tile,
                    what.keys,
                    lambda i, k: self._scores[tile.row + i, k],
                    lambda k, j: what.value([*batch, k, tile.column + j]),
                ),
                self._each(tile, stored),
            ]
        )

    def _product(
        self, tile: _Tile, depth: int, left: Callable[..., Any], right: Callable[..., Any]
    ) -> Iterator[Any]:
        """Sum up ``left(i, k) * right(k, j)`` in registers."""

        def zero(i: Any, j: Any) -> Any:
            return tirx.BufferStore(self._tile, tirx.const(0.0, "float32"), [i, j])

        def added(i: Any, j: Any, k: Any) -> Any:
            value = self._tile[i, j] + left(i, k) * right(k, j)
            return tirx.BufferStore(self._tile, value, [i, j])

        yield self._each(tile, zero)
        yield _loop(depth, lambda k: self._each(tile, lambda i, j: added(i, j, k)))

    def _each(
        self,
        tile: _Tile,
        body: Callable[[Any, Any], Any],
        kind: Any = tirx.ForKind.VECTORIZED,
    ) -> Any:
        """Do something for each number of a tile, in a straight line of vectors."""
        unrolled = tirx.ForKind.UNROLLED

        def vector(i: Any, j: Any) -> Any:
            return _loop(self._lanes, lambda x: body(i, j * self._lanes + x), kind)

        return _loop(
            tile.rows, lambda i: _loop(tile.vectors, lambda j: vector(i, j), unrolled), unrolled
        )


def _loop(extent: int, body: Callable[[Any], Any], kind: Any = tirx.ForKind.SERIAL) -> Any:
    if extent == 1:
        return body(_number(0))
    variable = tirx.Var("i", "int64")
    return tirx.For(variable, _number(0), _number(extent), kind, body(variable))


def _number(value: int) -> Any:
    return tirx.const(value, "int64")


def _buffer(name: str, shape: Sequence[int], scope: str = "global") -> Any:
    extents = [_number(extent) for extent in shape]
    return tirx.decl_buffer(extents, "float32", name, scope=scope, layout=None)
