"""What another run, or stock MetaSchedule, has measured of the same tasks."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import polars as pl
from matplotlib.figure import Figure

from costlib.data.dataset import Dataset
from costlib.errors import InputError
from costlib.logs.importers import import_logs
from costlib.report.figures import legend_below, task_panels
from costlib.report.page import Picture, Section, Table
from costlib.report.trials import with_progress
from costlib.scratch import ScratchFolder
from costlib.tuning.result import TaskResult
from costlib.tuning.trials import TRIALS


def comparison(trials: pl.DataFrame, tasks: Sequence[TaskResult], against: Path) -> Section:
    """Compare a run with another one, task by task.

    Parameters
    ----------
    trials
        See :func:`costlib.report.trials.with_progress`.
    tasks
        The run's, the most important first.
    against
        The folder of another run, or the work directory or database of MetaSchedule.

    Raises
    ------
    InputError
        It is neither, or has none of these tasks.
    """
    other = _trials_of(against)
    shared = [task for task in tasks if task.trials and _of(other, task)["best_s"].count()]
    if not shared:
        raise InputError(f"{against} has measured none of this run's tasks")
    text = (
        f"The same tasks in {against.name}. How fast the two machines were at the time is not "
        "compared; a fair race takes turns on one machine."
    )
    columns = ("task", ">trials", ">best", ">trials there", ">best there", ">trials to reach that")
    return Section(
        f"Beside {against.name}",
        text,
        [
            Picture("against", "best latency by trials", _figure(trials, other, shared, against)),
            Table(columns, [_row(task, _of(trials, task), _of(other, task)) for task in shared]),
        ],
    )


def _trials_of(against: Path) -> pl.DataFrame:
    if (against / TRIALS).is_dir():
        return with_progress(Dataset.open(against / TRIALS).scan().collect())
    with ScratchFolder() as folder:
        report = import_logs([against], folder / "imported")
        if not report.imported:
            raise InputError(f"{against} is neither a run of costlib nor MetaSchedule's")
        return with_progress(Dataset.open(folder / "imported").scan().collect())


def _of(trials: pl.DataFrame, task: TaskResult) -> pl.DataFrame:
    return trials.filter(workload_id=task.workload_id)


def _row(task: TaskResult, ours: pl.DataFrame, theirs: pl.DataFrame) -> list[str]:
    (goal_s,) = theirs["best_s"].tail(1)
    reached = ours.filter(pl.col("best_s") <= goal_s)["trial"].min()
    return [
        task.name,
        str(len(ours)),
        _us(*ours["best_s"].tail(1)),
        str(len(theirs)),
        _us(goal_s),
        "not reached" if reached is None else str(reached),
    ]


def _us(seconds: object) -> str:
    return f"{seconds * 1e6:.1f} µs" if isinstance(seconds, float) else "-"


def _figure(
    ours: pl.DataFrame, theirs: pl.DataFrame, tasks: Sequence[TaskResult], against: Path
) -> Figure:
    figure, panels = task_panels(tasks)
    for task, axes in panels:
        for label, trials, style in (("this run", ours, "-"), (against.name, theirs, "--")):
            known = _of(trials, task).drop_nulls("best_s")
            best_us = known["best_s"].to_numpy() * 1e6
            axes.step(known["trial"].to_numpy(), best_us, style, where="post", label=label)
        axes.set_ylabel("best, µs")
    legend_below(figure, 2)
    return figure
