"""A program of one task carried over to a look-alike: its decisions fitted to other extents.

After Bayesian Code Diffusion (OSDI'25). Its published code scales a tile by the prior's extent only
in name (a shadowed variable); here each rule does what it is called:

- ``copy``: the prior's value where the loops are equal, else the nearest;
- ``nearest``: the tiling whose factors, outermost left out, are nearest on a log scale;
- ``proportional``: the same after each factor was scaled to keep its share of the extent's
  logarithm;
- ``random``: the prior's sketch alone, with random decisions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, get_args

import numpy as np

from costlib.arrays import Integers
from costlib.space.vectors import DecisionVectors

Rule = Literal["copy", "nearest", "proportional", "random"]
RULES: tuple[Rule, ...] = get_args(Rule)


def diffuse(
    decisions: Sequence[Sequence[Any]],
    vectors: DecisionVectors,
    rule: Rule,
    rng: np.random.Generator,
) -> Integers:
    """Fit a program's decisions to another task of the same sketch.

    Parameters
    ----------
    decisions
        The prior's ``[instruction, value]`` pairs, see
        :class:`costlib.space.program.Program`.
    vectors
        The decisions of the other task's sketch.
    rule
        How tile sizes are carried over; anything else is copied where it can be.
    rng
        Decides what nothing fits.

    Returns
    -------
    ndarray
        int64 `d`: a vector of ``vectors``.
    """
    fitted: Integers = vectors.random(1, rng)[0]
    if rule == "random":
        return fitted
    for place, ((_, value), values) in enumerate(zip(decisions, vectors.values, strict=False)):
        if value in values:
            fitted[place] = values.index(value)
        elif isinstance(value, list):
            fitted[place] = _nearest_tiling(value, values, rule)
        elif values and all(isinstance(one, int) for one in [value, *values]):
            fitted[place] = int(np.argmin(np.abs(np.asarray(values) - value)))
    return fitted


def _nearest_tiling(factors: list[int], ways: list[list[int]], rule: Rule) -> int:
    """Return the index of the tiling that is nearest to the factors of another extent."""
    table = np.log2(np.asarray(ways, "float64"))
    wanted = np.log2(np.asarray(factors, "float64"))
    if rule == "proportional":
        wanted *= table[0].sum() / max(wanted.sum(), 1.0)
    distance = np.abs(table[:, 1:] - wanted[1:]).sum(1)
    return int(np.argmin(distance))
