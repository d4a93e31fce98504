"""What a run's trials came to: the frames and figures behind its report."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from costlib.report.figures import legend_below, panels, shortened, task_panels
from costlib.schema import Origin, Status
from costlib.search.history import TaskHistory
from costlib.space.program import Program
from costlib.tuning.result import TaskResult

_SPENDING = 24
"""Tasks with a bar of their own."""


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


def tasks_figure(trials: pl.DataFrame, tasks: Sequence[TaskResult]) -> Figure:
    """Draw each of :func:`with_progress`'s trials of the first tasks, by origin, and the best."""
    figure, panels = task_panels([task for task in tasks if task.trials])
    for task, axes in panels:
        _draw_task(axes, trials.filter(workload_id=task.workload_id))
    legend_below(figure, 6)
    return figure


def _draw_task(axes: Axes, trials: pl.DataFrame) -> None:
    for number, origin in enumerate(Origin):
        own = trials.filter(pl.col("origin") == str(origin), pl.col("latency_s").is_not_null())
        if len(own):
            latency_us = own["latency_s"].to_numpy() * 1e6
            colour = f"C{number}"
            axes.plot(own["trial"].to_numpy(), latency_us, ".", color=colour, label=str(origin))
    known = trials.drop_nulls("best_s")
    best_us = known["best_s"].to_numpy() * 1e6
    (line,) = axes.step(known["trial"].to_numpy(), best_us, where="post", label="best so far")
    line.set(color="tab:gray", lw=1)
    axes.set_ylabel("µs")
    axes.yaxis.set_major_locator(MaxNLocator(5))
    axes.minorticks_off()


def spending_figure(tasks: Sequence[TaskResult]) -> Figure:
    """Draw where trials went beside where time is spent, before tuning and after."""
    shown = tasks[:_SPENDING]
    calls = np.array([sum(task.calls.values()) for task in shown], "float64")
    before = np.array([task.latency_before_s or 0 for task in shown])
    after = np.array([task.latency_after_s or task.latency_before_s or 0 for task in shown])
    trials = np.array([task.trials for task in shown], "float64")
    parts = {"time before": before * calls, "time after": after * calls, "trials": trials}
    figure, (axes,) = panels(1, 1, 9, 1.6 + 0.42 * len(shown))
    places = np.arange(len(shown))
    for number, (label, values) in enumerate(parts.items()):
        share = 100 * values / max(values.sum(), 1e-30)
        axes.barh(places + 0.27 * (number - 1), share, height=0.25, label=label)
    axes.set_yticks(places, [shortened(task.name, 42) for task in shown], fontsize=8)
    axes.invert_yaxis()
    axes.set(xlabel="share of all tasks (%)")
    legend_below(figure, 3)
    return figure
