"""Whether a model is as sure as it is right: pairs of programs by the distance of their scores."""

from __future__ import annotations

import numpy as np
from pydantic import BaseModel, ConfigDict
from scipy.special import expit
from sklearn.calibration import calibration_curve

from costlib.arrays import Floats, Integers

_BINS = 10
_MOST_PROGRAMS = 128
"""Of one task; of more, the pairs would crowd out those of the others."""


class Calibration(BaseModel):
    """Pairs of programs of one task, in bins with as many pairs each.

    Attributes
    ----------
    expected
        How probably the one with the higher score is faster, by the logistic function of the
        scores' difference, which is what ranking losses take them for.
    observed
        In which share it was.
    """

    model_config = ConfigDict(frozen=True)

    expected: tuple[float, ...]
    observed: tuple[float, ...]


def calibrate_pairs(scores: Floats, latency_s: Floats, groups: Integers) -> Calibration:
    """Compare the scores' differences with what was measured.

    Parameters
    ----------
    scores, latency_s, groups
        `n` each: a model's score, the measured seconds, and the index of the task.
    """
    gaps, right = [np.zeros(0)], [np.zeros(0, bool)]
    for group in np.unique(groups):
        rows = np.flatnonzero(groups == group)[:_MOST_PROGRAMS]
        one, other = (rows[places] for places in np.triu_indices(len(rows), 1))
        gap = scores[one] - scores[other]
        differ = (gap != 0) & (latency_s[one] != latency_s[other])
        gaps.append(np.abs(gap[differ]))
        right.append(((gap > 0) == (latency_s[one] < latency_s[other]))[differ])
    if not sum(map(len, gaps)):
        return Calibration(expected=(), observed=())
    observed, expected = calibration_curve(
        np.concatenate(right), expit(np.concatenate(gaps)), n_bins=_BINS, strategy="quantile"
    )
    return Calibration(expected=tuple(expected.tolist()), observed=tuple(observed.tolist()))
