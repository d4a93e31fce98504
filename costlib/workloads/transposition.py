"""A kernel that transposes matrices in registers.

Squares of as many rows as a vector has numbers are loaded, halves of them exchanged, then quarters,
and so on, and stored: no number is moved by itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from costlib.tvm_compat import tirx
from costlib.workloads.written_kernels import indices_of, written_kernel

_INDEX = "int64"


def transposition(
    source: Any,
    target: Any,
    rows: int,
    lanes: int,
    place: Callable[[Sequence[Any]], Sequence[Any]],
) -> Any:
    """Return the function that transposes a float32 matrix for each index of a batch.

    Parameters
    ----------
    source
        The buffer that the matrices are in.
    target
        That of `batch x columns x rows`; columns, and rows with what it has room for beyond them,
        fill vectors. Beyond them the last row is repeated.
    rows
        How many there are.
    lanes
        Numbers of a vector.
    place
        Turns indices of the batch, a row and a column into those of the source; neighbours along
        the columns are neighbours in memory.
    """
    *batch, columns, filled = (int(extent) for extent in target.shape)
    blocks, squares = filled // lanes, columns // lanes

    def body(index: Any) -> Any:
        at = indices_of(tirx.indexdiv(index, blocks), batch)
        row, column = tirx.indexmod(index, blocks) * lanes, tirx.Var("column", _INDEX)
        vectors, statements = list[Any](), list[Any]()
        for i in range(lanes):
            one = row + i if filled == rows else tirx.min(row + i, rows - 1)
            *outer, inner = place([*at, one, column * lanes])
            vectors.append(tirx.BufferLoad(source, [*outer, tirx.Ramp(inner, 1, lanes)]))
        for distance in (lanes >> shift for shift in range(1, lanes.bit_length())):
            vectors = _named(vectors, statements)
            vectors = _exchanged(vectors, distance)
        for i, vector in enumerate(vectors):
            place_of_column = [*at, column * lanes + i, tirx.Ramp(row, 1, lanes)]
            statements.append(tirx.BufferStore(target, vector, place_of_column))
        zero, count = tirx.const(0, _INDEX), tirx.const(squares, _INDEX)
        return tirx.For(column, zero, count, tirx.ForKind.SERIAL, tirx.SeqStmt(statements))

    loop = math.prod(batch) * blocks, tirx.ForKind.PARALLEL
    return written_kernel("transpose", [source, target], [loop], body)


def _named(values: Sequence[Any], statements: list[Any]) -> list[Any]:
    """Compute values once."""
    variables = [tirx.Var("t", f"float32x{len(values)}") for _ in values]
    statements += map(tirx.Bind, variables, values)
    return variables


def _exchanged(vectors: Sequence[Any], distance: int) -> list[Any]:
    """Exchange columns of one vector for those of another, at this distance in both directions."""
    found = list(vectors)
    lanes = range(len(vectors))
    for i in lanes:
        if not i & distance:
            j = i + distance
            pair = [vectors[i], vectors[j]]
            low = [n if not n & distance else len(lanes) + n - distance for n in lanes]
            high = [n + distance if not n & distance else len(lanes) + n for n in lanes]
            found[i], found[j] = (
                tirx.Shuffle(pair, [tirx.const(n, "int32") for n in order]) for order in (low, high)
            )
    return found
