"""The types that a task computes with, as columns of a model."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from costlib.arrays import Float32s
from costlib.features.columns import PRECISION
from costlib.tvm_compat import nodes
from costlib.workloads.task import weight_arguments

Argument = tuple[str, Sequence[int]]
"""Type and extents."""


def precision(arguments: Sequence[Argument], mod: Any | None) -> Float32s:
    """Tell the types of a task's input, weight and sums.

    Parameters
    ----------
    arguments
        What it is called with, results last.
    mod
        The unscheduled module; without it, what it sums in is unknown, and what is a weight.

    Returns
    -------
    ndarray
        float32, a column for each of :data:`costlib.features.columns.PRECISION`: bits of an element
        as stored, and 1 for floating point; 0 where there is no such thing, NaN if unknown. Of
        several inputs or weights the largest counts.
    """
    if mod is None:
        inputs, weights = arguments[:-1], None
    else:
        constant = weight_arguments(mod)
        inputs = [one for i, one in enumerate(arguments[:-1]) if i not in constant]
        weights = [one for i, one in enumerate(arguments) if i in constant]
    found = [_of(_largest(inputs)), _of(_largest(weights)), _of(None if mod is None else _sum(mod))]
    values = np.asarray([number for pair in found for number in pair], "float32")
    assert len(values) == len(PRECISION)
    return values


def _largest(arguments: Sequence[Argument] | None) -> str | None:
    if arguments is None:
        return None
    return max(arguments, key=lambda one: math.prod(one[1]), default=("", ()))[0]


def _of(dtype: str | None) -> tuple[float, float]:
    """Return the bits of a type, and whether it is of floating point."""
    if dtype is None:
        return math.nan, math.nan
    bits = re.search(r"\d+", dtype)
    return float(bits[0]) if bits else float(bool(dtype)), float("float" in dtype)


def _sum(mod: Any) -> str:
    """Return the type of the sums, of the reduction with the most steps; nothing without any."""
    found = max(_reductions(mod["main"].body), default=(0, ""))
    return found[1]


def _reductions(node: Any) -> Iterator[tuple[int, str]]:
    """Go through the steps and the type of each reduction."""
    if isinstance(node, nodes.SBlockRealize):
        block = node.block
        if block.init is not None:
            steps = math.prod(_extent(axis.dom.extent) for axis in block.iter_vars)
            yield steps, str(block.writes[0].source.dtype)
        yield from _reductions(block.body)
    elif isinstance(node, nodes.SeqStmt):
        for part in node.seq:
            yield from _reductions(part)
    elif hasattr(node, "body"):
        yield from _reductions(node.body)


def _extent(extent: Any) -> int:
    return int(extent) if isinstance(extent, nodes.IntImm) else 1
