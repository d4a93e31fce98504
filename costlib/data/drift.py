"""Was the machine, day by day, in the state that its latencies are corrected to?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import polars as pl

from costlib.canary_times import CanaryTimes
from costlib.frozen import Frozen
from costlib.measure.correction import DEAD_BAND, MEMORY_SHARE
from costlib.measure.measurement import DOUBTFUL

DRIFT_TOLERANCE = 2.5
"""The median canary of a day may be off its reference by this factor, either way: a shared
machine may be half as fast all day, and the correction takes that out of the latencies."""

DAY_MEASUREMENTS = 100
"""A day with fewer measurements is a moment, which may well be slower."""


def canary_ratios(measurements: pl.DataFrame, reference: CanaryTimes) -> pl.DataFrame:
    """Return ``day``, ``compute`` and ``memory``: canaries as multiples of their reference.

    Measurements without canaries are left out.
    """
    timed = (pl.col("canary_compute").list.len() > 0) & (pl.col("canary_memory").list.len() > 0)
    return measurements.filter(timed).select(
        pl.col("measured_at").dt.date().alias("day"),
        compute=(pl.col("canary_compute").list.min() / reference.compute_s).cast(pl.Float32),
        memory=(pl.col("canary_memory").list.min() / reference.memory_s).cast(pl.Float32),
    )


class Steadiness(Frozen):
    """How steady a machine was while programs were measured.

    Attributes
    ----------
    measurements
        How many tell.
    doubtful
        Share of them for which the machine was so slow that the correction is not believed at once.
    slow_down
        How many times slower than in the reference state it was in the worst tenth of them.
    """

    measurements: int
    doubtful: float
    slow_down: float


def steadiness(ratios: pl.DataFrame) -> Steadiness | None:
    """Judge a machine by the ratios of :func:`canary_ratios`; ``None`` if there are none."""
    if ratios.is_empty():
        return None
    compute, memory = (ratios[name].to_numpy().astype("float64") for name in ("compute", "memory"))
    slow_downs = np.maximum(1.0, compute * memory**MEMORY_SHARE / (1 + DEAD_BAND))
    return Steadiness(
        measurements=len(slow_downs),
        doubtful=float(np.mean(slow_downs > DOUBTFUL)),
        slow_down=float(np.quantile(slow_downs, 0.9)),
    )


def drifts(ratios: Iterable[pl.DataFrame]) -> Iterator[str]:
    """Say on which days a canary was off by more than :data:`DRIFT_TOLERANCE`."""
    kinds = ("compute", "memory")
    days = pl.concat(ratios).group_by("day").agg(pl.median(*kinds), count=pl.len()).sort("day")
    for row in days.filter(pl.col("count") >= DAY_MEASUREMENTS).iter_rows(named=True):
        for kind in kinds:
            if not 1 / DRIFT_TOLERANCE <= row[kind] <= DRIFT_TOLERANCE:
                yield (
                    f"drifted: on {row['day']} the median {kind} canary took {row[kind]:.2f} times "
                    f"its reference, more than {DRIFT_TOLERANCE} times off"
                )
