"""A bundle's scores of a run's programs beside what was measured."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from matplotlib.figure import Figure

from costlib.arrays import Floats
from costlib.errors import CostlibError
from costlib.features.lowered import lowered_batch
from costlib.features.task_context import describe_task
from costlib.hub import load_pretrained
from costlib.models.base import CostModel
from costlib.report.figures import finish, panel, plain_ticks, tip
from costlib.report.found_run import FoundRun
from costlib.report.page import Picture, Section, Table
from costlib.report.units import plain
from costlib.schema import CacheState
from costlib.space.program import Program
from costlib.training.metrics import pairwise_accuracy, rank_correlation
from costlib.tuning.bundles import COLD
from costlib.tuning.result import TaskResult

_PROGRAMS = 120
"""Programs whose features are computed for a page, of the heaviest tasks first."""

_OF_A_TASK = 32
"""Of these, evenly from its fastest to its slowest."""

_TITLE = "Predicted against measured"


@dataclass(frozen=True)
class _Scored:
    """Programs of a task: their scores, latencies, and throughputs relative to the task's best."""

    task: TaskResult
    scores: Floats
    latency_s: Floats
    throughput: Floats


def predictions(run: FoundRun) -> Section | None:
    """Compare the scores of a run's bundle with its trials; ``None`` if it had no bundle."""
    bundle = run.result.bundle
    if bundle in ("", COLD) or run.dataset is None:
        return None
    try:
        scored = list(_scored(run, load_pretrained(bundle).statement_model()))
    except CostlibError as error:
        return Section(_TITLE, f"There is nothing to compare: {error}")
    if not scored:
        return Section(_TITLE, "No task has two programs that ran.")
    rows = [
        [
            run.link(one.task.workload_id),
            len(one.scores),
            f"{100 * pairwise_accuracy(one.scores, one.latency_s):.0f} %",
            plain(rank_correlation(one.scores, one.latency_s)),
        ]
        for one in scored
    ]
    return Section(
        _TITLE,
        f"A point is a program. Scores are by {bundle} as it was before the run, without what the "
        "run has taught it. The programs that were measured are those it thought well of: telling "
        "them apart is harder than telling random ones apart. Of a task with many programs "
        f"{_OF_A_TASK} are scored, evenly from the fastest to the slowest.",
        [
            Picture("predictions", "score and throughput of each program", _figure(run, scored)),
            Table(("task", ">programs", ">pairs in order", ">rank correlation"), rows),
        ],
    )


def _scored(run: FoundRun, model: CostModel) -> Iterator[_Scored]:
    """Score programs of the tasks that took most time untuned."""
    left = _PROGRAMS
    for task in run.tasks:
        ran = _ran(run.of(task))
        space = run.space(task.workload_id) if len(ran) > 1 and left > 1 else None
        if space is None:
            continue
        places = np.linspace(0, len(ran) - 1, min(len(ran), _OF_A_TASK, left)).round()
        chosen = ran[places.astype(int)]
        left -= len(chosen)
        columns = chosen.select("sketch_id", "decisions").iter_rows()
        schedules = space.lower_all([Program.from_row(task.workload_id, *row) for row in columns])
        replayed = pl.Series([schedule is not None for schedule in schedules])
        latency_s = chosen["latency_s"].filter(replayed).to_numpy()
        if len(latency_s) < 2:
            continue
        usable = [schedule for schedule in schedules if schedule is not None]
        called = replace(space.task, cache=CacheState(ran["cache"][0]))
        described = describe_task(called, run.hardware, run.canary())
        batch = lowered_batch(space.context, usable, described, run.hardware)
        scores = np.asarray(model.predict(batch))
        yield _Scored(task, scores, latency_s, ran["latency_s"][0] / latency_s)


def _ran(trials: pl.DataFrame) -> pl.DataFrame:
    """The programs that ran, the fastest first, each once."""
    return (
        trials.drop_nulls("latency_s")
        .group_by("program_id")
        .agg(pl.col("sketch_id", "decisions", "cache").first(), pl.col("latency_s").median())
        .sort("latency_s", "program_id")
    )


def _figure(run: FoundRun, scored: list[_Scored]) -> Figure:
    figure, axes = panel(2.3)
    for one in scored:
        heights = one.scores - one.scores.max()
        (points,) = axes.plot(heights, 100 * one.throughput, "o", ms=4, alpha=0.6, color="C0")
        title = run.titles[one.task.workload_id]
        tip(points, *(f"{title}: {run.unit.text(latency_s)}" for latency_s in one.latency_s))
    axes.set(xlabel="score, from the task's highest", ylabel="throughput, % of the task's best")
    plain_ticks(axes.xaxis, axes.yaxis)
    finish(axes)
    return figure
