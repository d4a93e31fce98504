"""The programs of a dataset that ran, task after task, never all in memory."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import polars as pl

from costlib.data.dataset import Dataset
from costlib.schema import CacheState, Status

_PROGRAMS_AT_ONCE = 500_000


def programs_by_task(
    dataset: Dataset,
    hardware_id: str,
    *columns: pl.Expr,
    only: Collection[str] | None = None,
    cache: CacheState | None = None,
) -> Iterator[tuple[str, pl.DataFrame]]:
    """Go through the programs that ran on a hardware.

    Parameters
    ----------
    columns
        What to tell about a program, aggregated over its measurements.
    only
        Workload ids to take; all if not given.
    cache
        Leave out what was measured in another state of the caches.

    Yields
    ------
    workload_id, programs
        Tasks in the order of their ids. ``programs`` has ``program_id`` and ``columns``, a row for
        each program in the order of their ids, however they lie on disk.
    """
    with dataset.reading():
        ran = _ran(dataset, hardware_id, only, cache)
        counts = ran.group_by("workload_id").len().sort("workload_id").collect(engine="streaming")
    for workload_ids in _runs(counts):
        with dataset.reading():
            programs = (
                _ran(dataset, hardware_id, workload_ids, cache)
                .group_by("workload_id", "program_id")
                .agg(*columns)
                .sort("workload_id", "program_id")
                .collect(engine="streaming")
            )
        by_task = programs.partition_by("workload_id", as_dict=True, include_key=False)
        for workload_id in workload_ids:
            yield workload_id, by_task[(workload_id,)]


def _ran(
    dataset: Dataset, hardware_id: str, only: Collection[str] | None, cache: CacheState | None
) -> pl.LazyFrame:
    ran = dataset.scan().filter(
        (pl.col("hardware") == hardware_id) & (pl.col("status") == str(Status.OK))
    )
    if cache is not None:
        ran = ran.filter(pl.col("cache") == str(cache))
    return ran if only is None else ran.filter(pl.col("workload_id").is_in(list(only)))


def _runs(counts: pl.DataFrame) -> Iterator[list[str]]:
    """Cut the tasks into runs of about as many programs as may be in memory."""
    run: list[str] = []
    size = 0
    for workload_id, count in counts.iter_rows():
        if run and size + count > _PROGRAMS_AT_ONCE:
            yield run
            run, size = [], 0
        run.append(workload_id)
        size += count
    if run:
        yield run
