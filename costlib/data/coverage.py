"""How well a dataset covers its tasks: the frames behind the tables and pictures of `info`."""

from __future__ import annotations

import polars as pl

from costlib.data.dataset import Dataset
from costlib.schema import Status
from costlib.workloads.title import fused_title


def by_operator(dataset: Dataset) -> pl.DataFrame:
    """Return one row for each fused operator as people call it, the one with most tasks first.

    It has ``operator``, ``tasks``, ``programs``, ``failed``, ``best_s`` and ``worst_s`` (the
    fastest and slowest latency of its tasks' best programs), ``median_ratio`` (the median of
    latencies as multiples of the best of their task).
    """
    best = pl.col("best_s")
    return (
        _with_best(dataset)
        .join(_operators(dataset), on="workload_id")
        .group_by("operator")
        .agg(
            tasks=pl.col("workload_id").n_unique(),
            programs=pl.len(),
            failed=_failed().sum(),
            best_s=best.min(),
            worst_s=best.max(),
            median_ratio=(pl.col("latency_s") / best).median(),
        )
        .sort(["tasks", "programs", "operator"], descending=[True, True, False])
        .collect()
    )


def _operators(dataset: Dataset) -> pl.LazyFrame:
    """Return ``workload_id`` and ``operator`` of each workload."""
    rows = dataset.scan("workloads").select("workload_id", "name", "arguments").collect()
    found = {
        one: fused_title(name, [(argument["dtype"], argument["shape"]) for argument in arguments])
        for one, name, arguments in rows.iter_rows()
    }
    schema = {"workload_id": pl.String, "operator": pl.String}
    return pl.LazyFrame(list(found.items()), schema, orient="row")


def by_hardware(dataset: Dataset) -> pl.DataFrame:
    """Return one row for each hardware: ``hardware``, ``programs``, ``failed``, ``tasks``, days.

    ``first_day`` and ``last_day`` are dates.
    """
    return (
        dataset.scan()
        .group_by("hardware")
        .agg(
            programs=pl.len(),
            failed=_failed().sum(),
            tasks=pl.col("workload_id").n_unique(),
            first_day=pl.col("measured_at").min().dt.date(),
            last_day=pl.col("measured_at").max().dt.date(),
        )
        .sort("hardware")
        .collect()
    )


def failures(dataset: Dataset) -> pl.DataFrame:
    """Return ``status`` and ``programs`` of all that failed, and the most frequent ``error``."""
    return (
        dataset.scan()
        .filter(_failed())
        .group_by("status")
        .agg(programs=pl.len(), error=pl.col("error").drop_nulls().mode().sort().first())
        .sort(["programs", "status"], descending=[True, False])
        .collect()
    )


def programs_per_task(dataset: Dataset) -> pl.Series:
    """Return how many programs each task has on each hardware."""
    counted = dataset.scan().group_by("hardware", "workload_id").agg(programs=pl.len())
    return counted.collect()["programs"]


def slowness(dataset: Dataset) -> pl.Series:
    """Return each latency as a multiple of the best of its task on its hardware."""
    ratios = _with_best(dataset).select(slowness=pl.col("latency_s") / pl.col("best_s"))
    return ratios.drop_nulls().collect()["slowness"]


def best_so_far(dataset: Dataset) -> pl.DataFrame:
    """Return how close to a task's best one is after its first n programs, as measured.

    It has ``programs`` (n), and over the tasks that have that many (``tasks``) the ``mean`` and
    the quantiles ``low`` (10 %) and ``high`` (90 %) of best latency / best among the first n.
    """
    task = ["hardware", "workload_id"]
    first = pl.col("latency_s").fill_null(float("inf")).cum_min().over(task, order_by="measured_at")
    position = pl.int_range(1, pl.len() + 1).over(task, order_by="measured_at")
    return (
        _with_best(dataset)
        .select(programs=position, share=pl.col("best_s") / first)
        .drop_nulls()
        .group_by("programs")
        .agg(
            mean=pl.col("share").mean(),
            low=pl.col("share").quantile(0.1),
            high=pl.col("share").quantile(0.9),
            tasks=pl.len(),
        )
        .sort("programs")
        .collect()
    )


def _failed() -> pl.Expr:
    return pl.col("status") != str(Status.OK)


def _with_best(dataset: Dataset) -> pl.LazyFrame:
    best = pl.col("latency_s").min().over("hardware", "workload_id")
    return dataset.scan().with_columns(best_s=best)
