"""Columns that follow from those there are: the innermost loop along which stores lie side by side.

Where it is not the innermost one, but is unrolled with all that is inside it, the compiler makes
vector instructions of what the other columns describe as scalar.
"""

from __future__ import annotations

import numpy as np

from costlib.arrays import Bools, Float32s, Floats, Integers
from costlib.features.batch import FeatureBatch

_DEPTHS = 5
"""Loops that are described one by one."""

_NONE = 9.0
"""Instead of the logarithm of a size, where there is no such loop."""

_LANES = 8


def contiguous_columns(batch: FeatureBatch) -> Float32s:
    """Describe the innermost loop along which stores lie side by side, float32 `n x 14`."""
    extents, jumps, load_jumps = (
        2 ** _by_depth(batch, name) - 1 for name in ("extent", "store_jump", "load_jump")
    )
    standing, in_order, kinds = (
        _by_depth(batch, name) for name in ("loads_standing", "loads_in_order", "kind")
    )
    limit = np.maximum(2 ** _column(batch, "unroll_steps") - 1, 1)
    depth, reduction = _first(np.abs(jumps - 1) < 0.01), _first((jumps < 0.01) & (extents > 1.01))
    there, rows = depth < _DEPTHS, np.arange(len(batch))
    place = np.minimum(depth, _DEPTHS - 1)

    def its(values: Floats) -> Floats:
        return np.where(there, values[rows, place], 0)

    inside = np.column_stack([np.ones(len(batch)), np.cumprod(np.maximum(extents, 1), 1)])
    around, extent = inside[rows, depth], its(extents)
    unrolled = around * np.maximum(extent, 1)
    columns = [
        depth,
        np.log2(1 + extent),
        np.log2(around),
        np.where(there, np.log2(around) - np.log2(limit), _NONE),
        np.where(there, np.log2(unrolled) - np.log2(limit), _NONE),
        its(standing),
        its(in_order),
        np.log2(1 + its(load_jumps)),
        np.where(there, kinds[rows, place], -1),
        there & (extent % _LANES == 0),
        extent / (_LANES * np.ceil(np.maximum(extent, 1) / _LANES)),
        its(standing + in_order) > 0.99,
        reduction,
        depth - reduction,
    ]
    return np.stack(columns, 1).astype("float32")


def _column(batch: FeatureBatch, name: str) -> Floats:
    return np.asarray(batch.context[:, batch.names.index(name)])


def _by_depth(batch: FeatureBatch, name: str) -> Floats:
    return np.stack([_column(batch, f"loop{n}.{name}") for n in range(1, _DEPTHS + 1)], 1)


def _first(marked: Bools) -> Integers:
    """Return the first place that is marked in each row, the number of places if none is."""
    return np.asarray(np.where(marked.any(1), marked.argmax(1), marked.shape[1]))
