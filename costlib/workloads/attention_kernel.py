"""The kernel of attention: scores that never leave the cache of a core.

Scores of a few queries with all keys are computed, made a softmax of, and multiplied with the
values, before those of the next queries are: as in FlashAttention (Dao et al., arXiv:2205.14135),
but with whole rows, for which a CPU's caches have room. Products are computed in registers, a tile
at a time; few queries are multiplied with one key after the other, as it lies in memory. The kernel
is written with its schedule; there is nothing in it to tune.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from costlib.tvm_compat import tirx
from costlib.workloads.attention_blocks import TILE_ROWS, Attention, Machine, rows_of_block
from costlib.workloads.safe_softmax import TINY
from costlib.workloads.written_kernels import (
    indices_of,
    loop_of,
    number_of,
    scratch_of,
    written_kernel,
)

NAME = "attention"


def attention_kernel(what: Attention, machine: Machine, buffers: Sequence[Any]) -> Any:
    """Return the function that computes attention; ``buffers`` are its arguments, results last."""
    writer = _Writer(what, machine, buffers[-1])
    loop = math.prod(what.batch) * writer.blocks, tirx.ForKind.PARALLEL

    def body(index: Any) -> Any:
        return tirx.SeqStmt(list(writer.statements(index)))

    return written_kernel(NAME, buffers, [loop], body, writer.buffers)


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
    """Rows and vectors that are computed at once: where they begin, how many, and how long."""

    row: Any
    column: Any
    rows: int
    vectors: int
    lanes: int


class _Writer:
    """Writes what is done with a block of queries."""

    def __init__(self, what: Attention, machine: Machine, output: Any) -> None:
        self._what, self._machine, self._output = what, machine, output
        self._lanes = machine.lanes
        self._vectors = -(-what.keys // machine.lanes)
        self._rows = rows_of_block(what, machine)
        self.blocks = -(-what.queries // self._rows)
        self._scores = scratch_of("scores", [self._rows, self._vectors * machine.lanes])
        self._sums = scratch_of("sums", [self._rows])
        self._largest = scratch_of("largest", [1])
        self._dot = scratch_of("dot", [1])
        self._tile = scratch_of("tile", [TILE_ROWS, machine.vectors * machine.lanes], scope="local")
        self.buffers = [self._scores, self._sums, self._largest, self._dot, self._tile]

    def statements(self, block: Any) -> Iterator[Any]:
        """Return what is done for a block, given its number among all."""
        batch = indices_of(tirx.indexdiv(block, self.blocks), self._what.batch)
        # The last block does again what the one before it has done, where it must.
        first = self._turn(tirx.indexmod(block, self.blocks)) * self._rows
        first = tirx.min(first, self._what.queries - self._rows)

        full, seen = self._what.keys // self._lanes, self._seen(first)
        filled = tirx.indexdiv(seen + (self._lanes - 1), self._lanes)
        if self._what.keys_are_rows:
            yield self._dotted(batch, first)
        else:
            scored = partial(self._scored, batch=batch, first=first)
            yield from self._tiles(0, full, scored, filled)
            yield from self._tiles(full, self._vectors, partial(scored, is_last=True), filled)
        yield loop_of(self._rows, partial(self._exponentials, filled=filled))
        width, rest = divmod(self._what.width, self._lanes)
        result = partial(self._result, batch=batch, first=first, seen=seen)
        yield from self._tiles(0, width, result, number_of(width))
        if rest:
            last = _Tile(0, width * self._lanes, 0, 1, rest)
            for rows in _cut(0, self._rows, TILE_ROWS):
                yield self._rows_of(last, rows, result)

    def _turn(self, number: Any) -> Any:
        """Return which block is computed in this place.

        Each core has neighbouring places. Where blocks see ever more keys, short and long ones take
        turns.
        """
        if self._what.ahead is None:
            return number
        pair = tirx.indexdiv(number, 2)
        return tirx.Select(tirx.indexmod(number, 2) == 0, pair, self.blocks - 1 - pair)

    def _seen(self, first: Any) -> Any:
        """Return how many keys a block of queries sees at most."""
        ahead, keys = self._what.ahead, number_of(self._what.keys)
        return keys if ahead is None else tirx.min(first + (self._rows + ahead), keys)

    def _tiles(
        self, start: int, end: int, body: Callable[[_Tile], Any], most: Any
    ) -> Iterator[Any]:
        """Do something for all rows of these vectors, a tile at a time, as far as there are any."""
        for columns in _cut(start, end, self._machine.vectors):
            within = tirx.indexdiv(most + (columns.size - 1 - columns.start), columns.size)
            pieces = tirx.max(tirx.min(within, number_of(columns.pieces)), number_of(0))
            for rows in _cut(0, self._rows, TILE_ROWS):
                yield self._loops(columns, pieces, rows, body)

    def _loops(self, columns: _Part, pieces: Any, rows: _Part, body: Callable[[_Tile], Any]) -> Any:
        """Do something for each tile of the same size; of the vectors for so many pieces."""

        def tiles(j: Any) -> Any:
            column = (j * columns.size + columns.start) * self._lanes
            return self._rows_of(_Tile(0, column, 0, columns.size, self._lanes), rows, body)

        return loop_of(pieces, tiles)

    def _rows_of(self, tile: _Tile, rows: _Part, body: Callable[[_Tile], Any]) -> Any:
        """Do something for all rows of a part, in the columns of a tile."""

        def moved(i: Any) -> _Tile:
            return tile._replace(row=i * rows.size + rows.start, rows=rows.size)

        return loop_of(rows.pieces, lambda i: body(moved(i)))

    def _scored(
        self, tile: _Tile, batch: Sequence[Any], first: Any, *, is_last: bool = False
    ) -> Any:
        """Multiply queries with keys, and do what is done to the product; the last may be none."""
        what = self._what

        def stored(i: Any, j: Any) -> Any:
            at = [*batch, first + tile.row + i, tile.column + j]
            score = self._stepped(self._tile[i, j], at)
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

    def _dotted(self, batch: Sequence[Any], first: Any) -> Any:
        """Multiply queries with one key after the other, and do what is done to the product."""
        what, dot = self._what, self._dot

        def score(i: Any, j: Any) -> Any:
            def added(k: Any) -> Any:
                product = what.query([*batch, first + i, k]) * what.key([*batch, k, j])
                return tirx.BufferStore(dot, dot[0] + product, [0])

            stepped = self._stepped(dot[0], [*batch, first + i, j])
            return tirx.SeqStmt(
                [
                    tirx.BufferStore(dot, tirx.const(0.0, "float32"), [0]),
                    loop_of(what.depth, added),
                    tirx.BufferStore(self._scores, stepped, [i, j]),
                ]
            )

        def nothing(i: Any, j: Any) -> Any:
            least = tirx.const(-math.inf, "float32")
            return tirx.BufferStore(self._scores, least, [i, what.keys + j])

        def row(i: Any) -> Any:
            beyond = self._vectors * self._lanes - what.keys
            known = loop_of(what.keys, lambda j: score(i, j))
            return tirx.SeqStmt([known, loop_of(beyond, lambda j: nothing(i, j))])

        return loop_of(self._rows, row)

    def _stepped(self, score: Any, at: Sequence[Any]) -> Any:
        """Do what is done to a score before the softmax."""
        for compute, operands in self._what.steps:
            score = compute(score, *(operand(at) for operand in operands))
        return score

    def _exponentials(self, row: Any, filled: Any) -> Any:
        """Raise e to the scores of a row, less the largest, and add them up.

        What lies beyond the vectors that are filled counts as minus infinity.
        """
        scores, largest, sums = self._scores, self._largest[0], self._sums[row]
        columns = self._vectors * self._lanes
        least = float(np.finfo("float32").min) if self._what.is_safe else -math.inf
        beyond = number_of(self._vectors) - filled

        def vectors(count: Any, first: Any, value: Callable[[Any], Any]) -> Any:
            def store(j: Any, x: Any) -> Any:
                place = [row, (first + j) * self._lanes + x]
                return tirx.BufferStore(scores, value(place), place)

            vectorized = tirx.ForKind.VECTORIZED
            return loop_of(count, lambda j: loop_of(self._lanes, lambda x: store(j, x), vectorized))

        def maximum(j: Any) -> Any:
            return tirx.BufferStore(self._largest, tirx.max(largest, scores[row, j]), [0])

        def added(j: Any) -> Any:
            return tirx.BufferStore(self._sums, sums + scores[row, j], [row])

        def constant(value: float) -> Callable[[Any], Any]:
            return lambda place: tirx.const(value, "float32")

        return tirx.SeqStmt(
            [
                tirx.BufferStore(self._largest, tirx.const(least, "float32"), [0]),
                vectors(beyond, filled, constant(-math.inf)),
                loop_of(columns, maximum),
                vectors(filled, 0, lambda place: tirx.exp(scores[tuple(place)] - largest)),
                vectors(beyond, filled, constant(0.0)),
                tirx.BufferStore(self._sums, tirx.const(0.0, "float32"), [row]),
                loop_of(columns, added),
            ]
        )

    def _result(self, tile: _Tile, batch: Sequence[Any], first: Any, seen: Any) -> Any:
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
                    seen,
                    lambda i, k: self._scores[tile.row + i, k],
                    lambda k, j: what.value([*batch, k, tile.column + j]),
                ),
                self._each(tile, stored),
            ]
        )

    def _product(
        self, tile: _Tile, depth: Any, left: Callable[..., Any], right: Callable[..., Any]
    ) -> Iterator[Any]:
        """Sum up ``left(i, k) * right(k, j)`` in registers."""

        def zero(i: Any, j: Any) -> Any:
            return tirx.BufferStore(self._tile, tirx.const(0.0, "float32"), [i, j])

        def added(i: Any, j: Any, k: Any) -> Any:
            value = self._tile[i, j] + left(i, k) * right(k, j)
            return tirx.BufferStore(self._tile, value, [i, j])

        yield self._each(tile, zero)
        yield loop_of(depth, lambda k: self._each(tile, lambda i, j: added(i, j, k)))

    def _each(
        self,
        tile: _Tile,
        body: Callable[[Any, Any], Any],
        kind: Any = tirx.ForKind.VECTORIZED,
    ) -> Any:
        """Do something for each number of a tile, in a straight line of vectors."""
        unrolled = tirx.ForKind.UNROLLED

        def vector(i: Any, j: Any) -> Any:
            return loop_of(tile.lanes, lambda x: body(i, j * tile.lanes + x), kind)

        return loop_of(
            tile.rows, lambda i: loop_of(tile.vectors, lambda j: vector(i, j), unrolled), unrolled
        )
