"""Was the machine, day by day, in the state that its latencies are corrected to?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import polars as pl

from costlib.canary_times import CanaryTimes

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
