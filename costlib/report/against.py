"""What another run, or stock MetaSchedule, has measured of the same tasks."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from costlib.data.dataset import Dataset
from costlib.errors import InputError
from costlib.logs.importers import import_logs
from costlib.report.figures import (
    finish,
    latency_scale,
    legend_name,
    panel,
    tip,
    whole_ticks,
)
from costlib.report.found_run import FoundRun, anchor
from costlib.report.page import Gallery, Picture, Section, Table
from costlib.report.progress import with_progress
from costlib.scratch import ScratchFolder
from costlib.tuning.result import TaskResult
from costlib.tuning.trials import TRIALS

_PICTURES = 12

_COLUMNS = ("task", ">trials", ">best", ">trials there", ">best there", ">trials to reach that")


def comparison(run: FoundRun, against: Path) -> Section:
    """Compare a run with another one, task by task.

    Parameters
    ----------
    run
        The run.
    against
        The folder of another run, or the work directory or database of MetaSchedule.

    Raises
    ------
    InputError
        It is neither, or has none of these tasks.
    """
    other = _trials_of(against)
    theirs = {
        task.workload_id: other.filter(workload_id=task.workload_id) for task in run.result.tasks
    }
    shared = [t for t in run.tasks if t.trials and theirs[t.workload_id]["best_s"].count()]
    if not shared:
        raise InputError(f"{against} has measured none of this run's tasks")
    text = (
        f"The same tasks in {against.name}. How fast the two machines were at the time is not "
        "compared; a fair race takes turns on one machine."
    )
    pictures = _pictures(run, theirs, shared, against.name)
    rows = [_row(run, task, theirs[task.workload_id]) for task in shared]
    return Section(
        f"Beside {against.name}",
        text,
        [Table(_COLUMNS, rows), *([Gallery(pictures)] if pictures else [])],
    )


def _trials_of(against: Path) -> pl.DataFrame:
    if (against / TRIALS).is_dir():
        return with_progress(Dataset.open(against / TRIALS).scan().collect())
    with ScratchFolder() as folder:
        report = import_logs([against], folder / "imported")
        if not report.imported:
            raise InputError(f"{against} is neither a run of costlib nor MetaSchedule's")
        return with_progress(Dataset.open(folder / "imported").scan().collect())


def _row(run: FoundRun, task: TaskResult, theirs: pl.DataFrame) -> list[object]:
    ours = run.of(task)
    (goal_s,) = theirs["best_s"].tail(1)
    reached = ours.filter(pl.col("best_s") <= goal_s)["trial"].min()
    return [
        run.link(task.workload_id),
        str(len(ours)),
        run.unit.text(ours["best_s"].tail(1).item()),
        str(len(theirs)),
        run.unit.text(goal_s),
        "not reached" if reached is None else str(reached),
    ]


def _pictures(
    run: FoundRun, theirs: dict[str, pl.DataFrame], tasks: Sequence[TaskResult], name: str
) -> list[Picture]:
    pictures = []
    for task in tasks[:_PICTURES]:
        sides = {"this run": run.of(task), name: theirs[task.workload_id]}
        known = {side: trials.drop_nulls("best_s") for side, trials in sides.items()}
        if max(map(len, known.values())) < 2:
            continue
        figure, axes = panel()
        for (side, trials), style in zip(known.items(), ("-", "--"), strict=True):
            best = trials["best_s"].to_numpy() * run.unit.per_second
            (line,) = axes.step(
                trials["trial"].to_numpy(), best, style, where="post", label=legend_name(side)
            )
            tip(line, f"{side}: {run.unit.text(trials['best_s'][-1])}")
        values = [s * run.unit.per_second for rows in known.values() for s in rows["best_s"]]
        latency_scale(axes, values)
        whole_ticks(axes.xaxis)
        axes.set(xlabel="trial of this task", ylabel=f"best latency ({run.unit.name})")
        finish(axes, run.titles[task.workload_id])
        place = f"against-{anchor(task.workload_id)}"
        pictures.append(Picture(place, "best latency by trials", figure))
    return pictures
