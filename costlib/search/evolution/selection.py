"""Which candidates to measure together: the best ones, and some by chance."""

from __future__ import annotations

import numpy as np

from costlib.arrays import Floats


def select_batch(
    scores: Floats, count: int, rng: np.random.Generator, epsilon: float = 0.0
) -> list[int]:
    """Choose candidates.

    Parameters
    ----------
    scores
        float64 `n`, higher is better.
    count
        How many to choose; all if there are fewer.
    rng
        Draws the random share.
    epsilon
        Share of the batch that is drawn at random.

    Returns
    -------
    list of int
        Indices, the best first, the random ones last.
    """
    count = min(count, len(scores))
    by_chance = int(rng.binomial(count, epsilon)) if epsilon else 0
    order = np.argsort(-scores, kind="stable")
    best, left = order[: count - by_chance], order[count - by_chance :]
    return [*best.tolist(), *rng.choice(np.sort(left), by_chance, replace=False).tolist()]
