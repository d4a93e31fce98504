"""Was the machine, day by day, in the state that its latencies are corrected to?"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date

import polars as pl

from costlib.schema import CanaryTimes

DRIFT_TOLERANCE = 2.5
"""The median canary of a day may be off its reference by this factor, either way: a shared
machine may be half as fast all day, and the correction takes that out of the latencies."""

DAY_MEASUREMENTS = 100
"""A day with fewer measurements is a moment, which may well be slower."""


class CanaryDays:
    """Gathers the canaries of one hardware.

    Parameters
    ----------
    reference
        What they should be near.
    """

    def __init__(self, reference: CanaryTimes) -> None:
        self._expected = {"compute": reference.compute_s, "memory": reference.memory_s}
        self._frames: list[pl.DataFrame] = []

    def add(self, measurements: pl.DataFrame) -> None:
        """Take up measurements; those without canaries do not count."""
        timed = (pl.col("canary_compute").list.len() > 0) & (pl.col("canary_memory").list.len() > 0)
        ratios = [
            (pl.col(f"canary_{kind}").list.min() / expected).cast(pl.Float32).alias(kind)
            for kind, expected in self._expected.items()
        ]
        day = pl.col("measured_at").dt.date().alias("day")
        self._frames.append(measurements.filter(timed).select(day, *ratios))

    def medians(self) -> dict[date, dict[str, float]]:
        """Return the median of each canary as a multiple of its reference, for days that count."""
        rows = (
            pl.concat(self._frames)
            .group_by("day")
            .agg(pl.median(*self._expected), count=pl.len())
            .filter(pl.col("count") >= DAY_MEASUREMENTS)
            .drop("count")
            .sort("day")
        )
        return {row.pop("day"): row for row in rows.iter_rows(named=True)}

    def drifts(self) -> Iterator[str]:
        """Say on which days a canary was off by more than :data:`DRIFT_TOLERANCE`."""
        for day, medians in self.medians().items():
            for kind, ratio in medians.items():
                if not 1 / DRIFT_TOLERANCE <= ratio <= DRIFT_TOLERANCE:
                    yield (
                        f"drifted: on {day} the median {kind} canary took {ratio:.2f} times "
                        f"its reference, more than {DRIFT_TOLERANCE} times off"
                    )
