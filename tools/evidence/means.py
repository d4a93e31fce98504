"""Means of ratios."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.stats import sem
from scipy.stats import t as student

from tools.evidence.protocol import CONFIDENCE


def geometric_mean(ratios: Sequence[float]) -> float:
    """Return the geometric mean, to four decimals."""
    return round(float(np.exp(np.mean(np.log(ratios)))), 4)


def log_error(ratios: Sequence[float]) -> float:
    """Return the standard error of the logarithms' mean, to four decimals."""
    return round(float(sem(np.log(ratios))), 4)


def interval(ratios: Sequence[float]) -> list[float]:
    """Return what encloses the geometric mean, by Student's distribution; of two or more ratios."""
    logs = np.log(ratios)
    reach = sem(logs) * student.ppf((1 + CONFIDENCE) / 2, len(logs) - 1)
    return [round(float(np.exp(logs.mean() + side * reach)), 3) for side in (-1, 1)]
