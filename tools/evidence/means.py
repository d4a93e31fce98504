"""Means of ratios."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.stats import sem


def geometric_mean(ratios: Sequence[float]) -> float:
    """Return the geometric mean, to four decimals."""
    return round(float(np.exp(np.mean(np.log(ratios)))), 4)


def log_error(ratios: Sequence[float]) -> float:
    """Return the standard error of the logarithms' mean, to four decimals."""
    return round(float(sem(np.log(ratios))), 4)
