"""What a run's trials came to, trial by trial and by where programs came from."""

from __future__ import annotations

from collections import defaultdict

import polars as pl

from costlib.schema import Origin, Status
from costlib.search.history import TaskHistory
from costlib.space.program import Program


def with_progress(trials: pl.DataFrame) -> pl.DataFrame:
    """Order a dataset's measurements by time and say which were a task's best so far.

    Returns
    -------
    polars.DataFrame
        The rows with ``trial`` (1 is the task's first), ``best_s`` (its best latency up to then,
        null before the first; see :class:`costlib.search.history.TaskHistory`), ``is_better``
        (whether this program became the best) and ``is_final`` (whether this is where the task's
        best at the end was measured first).
    """
    ordered = trials.sort("measured_at", maintain_order=True)
    histories: dict[str, TaskHistory] = defaultdict(TaskHistory)
    best_s: list[float | None] = []
    is_better = []
    columns = ("workload_id", "sketch_id", "decisions", "latency_s", "origin")
    for task, sketch, decisions, latency_s, origin in ordered.select(columns).iter_rows():
        history, program = histories[task], Program.from_row(task, sketch, decisions)
        before = history.best
        history.add(program, latency_s, Origin(origin))
        best_s.append(history.best_s)
        is_better.append(program.program_id == history.best != before)
    final = [histories[task].best for task in ordered["workload_id"]]
    return ordered.with_columns(
        trial=pl.int_range(1, pl.len() + 1).over("workload_id"),
        best_s=pl.Series(best_s, dtype=pl.Float64),
        is_better=pl.Series(is_better, dtype=pl.Boolean),
        is_final=pl.col("program_id").is_first_distinct().over("workload_id")
        & (pl.col("program_id") == pl.Series(final, dtype=pl.String)).fill_null(False),
    )


def by_origin(trials: pl.DataFrame) -> pl.DataFrame:
    """Return what each source of programs gave to :func:`with_progress`, most trials first.

    Returns
    -------
    polars.DataFrame
        ``origin``, ``trials``, ``failed``, ``better`` (trials that became their task's best),
        ``final`` (tasks whose best at the end is of it) and ``median_ratio`` (median of latency /
        the task's best at the end).
    """
    failed = pl.col("status") != str(Status.OK)
    ratio = pl.col("latency_s") / pl.col("best_s").last().over("workload_id")
    return (
        trials.with_columns(ratio=ratio)
        .group_by("origin")
        .agg(
            trials=pl.len(),
            failed=failed.sum(),
            better=pl.col("is_better").sum(),
            final=pl.col("is_final").sum(),
            median_ratio=pl.col("ratio").median(),
        )
        .sort(["trials", "origin"], descending=[True, False])
    )
