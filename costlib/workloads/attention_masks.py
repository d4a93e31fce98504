"""Masks of attention: what they hide, as far as that is known when a network is compiled.

What is done to the scores are steps, each a Relax call and the place of the scores among its
arguments.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from costlib.tvm_compat import tvm
from costlib.workloads.folding import is_call

HIDDEN = -1e30
"""What this, or less, is added to has no share in a softmax beside other scores."""


def keys_ahead(mask: np.ndarray) -> int | None:
    """Return how many keys beyond its own number a query sees; ``None`` if that may be all.

    A query that a mask hides all keys from sees all: its softmax is that of all, or no number.

    Parameters
    ----------
    mask
        What is added to the scores: float32 `... x queries x keys`.
    """
    queries, keys = mask.shape[-2:]
    seen = np.any(~(mask.reshape(-1, queries, keys) <= HIDDEN), axis=0)  # NaN hides nothing.
    if not np.all(np.any(seen, axis=1)):
        return None
    last = keys - 1 - seen[:, ::-1].argmax(axis=1)
    ahead = int((last - np.arange(queries)).max())
    return ahead if ahead + 1 < keys else None


def adds_nothing(step: Any, place: int) -> bool:
    """Whether a step adds zeros: masks of exported networks often hide nothing."""
    other = step.args[1 - place] if is_call(step, "relax.add") else None
    return isinstance(other, tvm.ir.GenericConst) and not np.any(other.value.numpy())


def steps_ahead(steps: Sequence[tuple[Any, int]], rows: int, columns: int) -> int | None:
    """Return how many keys beyond its own number a query sees; ``None`` if that may be all.

    What the last step hides counts, if that is constant. What is done before must hide nothing: a
    query that sees no key is given the softmax of all.
    """
    if not steps:
        return None
    *before, (last, place) = steps
    mask = _mask(last, place)
    if mask is None or mask.shape[-2:] != (rows, columns) or not all(map(_hides_nothing, before)):
        return None
    return keys_ahead(mask)


def _mask(step: Any, place: int) -> np.ndarray | None:
    """Return what a step adds to scores, or chooses instead of them, if that is constant."""
    values = _constants(step, place)
    if values is not None and is_call(step, "relax.where"):
        condition, instead = values
        return np.where(condition == (place == 1), 0.0, instead)
    return values[0] if values is not None and is_call(step, "relax.add") else None


def _hides_nothing(taken: tuple[Any, int]) -> bool:
    values = _constants(*taken)
    return values is not None and all(np.all(np.abs(value) < -HIDDEN) for value in values)


def _constants(step: Any, place: int) -> list[np.ndarray] | None:
    """Return the arguments of a step beside the scores; ``None`` if they are not all constant."""
    others = [argument for i, argument in enumerate(step.args) if i != place]
    if not all(isinstance(other, tvm.ir.GenericConst) for other in others):
        return None
    return [other.value.numpy() for other in others]
