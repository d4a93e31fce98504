"""Which candidates to measure together: good ones, doubtful ones, some by chance, not all alike.

A batch is worth the sum of its scores and the number of different decisions in it, a submodular
function that is maximised greedily (AutoTVM, NeurIPS'18, section 3.3). Where little is known of a
candidate, measuring it teaches more; its score then is taken with some optimism.
"""

from __future__ import annotations

import numpy as np

from costlib.arrays import Floats, Integers


def select_batch(
    scores: Floats,
    decisions: Integers,
    count: int,
    rng: np.random.Generator,
    *,
    uncertainty: Floats | None = None,
    diversity: float = 0.0,
    epsilon: float = 0.0,
) -> list[int]:
    """Choose candidates.

    Parameters
    ----------
    scores
        float64 `n`, higher is better.
    decisions
        int64 `n x d`: what each candidate decided. Equal numbers in a column are equal decisions.
    count
        How many to choose; all if there are fewer.
    rng
        Draws the random share.
    uncertainty
        float64 `n`: what is added to each score, for what may be learnt.
    diversity
        What a batch gains, in standard deviations of the scores, by a candidate all of whose
        decisions are new to it.
    epsilon
        Share of the batch that is drawn at random.

    Returns
    -------
    list of int
        Indices, the best first, the random ones last.
    """
    count = min(count, len(scores))
    by_chance = int(rng.binomial(count, epsilon)) if epsilon else 0
    values = _standardised(scores if uncertainty is None else scores + uncertainty)
    chosen: list[int] = []
    new = np.ones(decisions.shape, bool)
    free = np.ones(len(scores), bool)
    for _ in range(count - by_chance):
        gain = values + diversity * new.mean(1) if decisions.shape[1] else values
        best = int(np.argmax(np.where(free, gain, -np.inf)))
        chosen.append(best)
        free[best] = False
        new &= decisions != decisions[best]
    left = np.flatnonzero(free)
    return chosen + [int(i) for i in rng.choice(left, by_chance, replace=False)]


def _standardised(scores: Floats) -> Floats:
    spread = float(scores.std()) if len(scores) else 0.0
    return (scores - scores.mean()) / spread if spread > 0 else np.zeros(len(scores))
