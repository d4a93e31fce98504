"""A bundle's scores of a run's programs beside what was measured."""

from __future__ import annotations

import numpy as np

from costlib.data.borrowing import borrowed
from costlib.errors import CostlibError
from costlib.hub import load_pretrained
from costlib.report.figures import finish, panel, plain_ticks, tip
from costlib.report.found_run import FoundRun, anchor
from costlib.report.page import Link, Picture, Section, Table
from costlib.report.units import plain
from costlib.training.batches import TrainingData, assemble
from costlib.training.metrics import pairwise_accuracy, rank_correlation
from costlib.tuning.tune import COLD

_PROGRAMS = 300
"""Programs whose features are computed for a page, of the heaviest tasks first."""

_TITLE = "Predicted against measured"


def predictions(run: FoundRun) -> Section | None:
    """Compare the scores of a run's bundle with its trials; ``None`` if it had no bundle."""
    bundle = run.result.bundle
    if bundle in ("", COLD) or run.dataset is None:
        return None
    only = _heaviest(run)
    try:
        model = load_pretrained(bundle).statement_model()
        with borrowed(run.dataset) as copy:
            data = assemble(copy, hardware=[run.result.hardware_id], only=only)
    except CostlibError as error:
        return Section(_TITLE, f"There is nothing to compare: {error}")
    return _section(run, data, np.asarray(model.predict(data.batch)))


def _heaviest(run: FoundRun) -> list[str]:
    chosen, programs = [], 0
    for task in run.tasks:
        if task.trials and programs < _PROGRAMS:
            chosen.append(task.workload_id)
            programs += task.trials
    return chosen


def _section(run: FoundRun, data: TrainingData, scores: np.ndarray) -> Section:
    figure, axes = panel(2.3)
    links = {
        task.workload_id: Link(run.titles[task.workload_id], f"#{anchor(task)}")
        for task in run.tasks
    }
    rows: list[list[object]] = []
    for number, (workload_id, _) in enumerate(data.tasks):
        own = np.flatnonzero(data.groups == number)
        if len(own) < 2:
            continue
        link = links[workload_id]
        heights = scores[own] - scores[own].max()
        (points,) = axes.plot(heights, 100 * data.labels[own], "o", ms=4, alpha=0.6, color="C0")
        tip(points, *(f"{link.text}: {run.unit.text(data.latency_s[place])}" for place in own))
        pairs = pairwise_accuracy(scores[own], data.latency_s[own])
        correlation = rank_correlation(scores[own], data.latency_s[own])
        rows.append([link, len(own), f"{100 * pairs:.0f} %", plain(correlation)])
    if not rows:
        return Section(_TITLE, "No task has two programs that ran.")
    axes.set(xlabel="score, from the task's highest", ylabel="throughput, % of the task's best")
    plain_ticks(axes.xaxis)
    plain_ticks(axes.yaxis)
    finish(axes)
    return Section(
        _TITLE,
        f"A point is a program. Scores are by {run.result.bundle} as it was before the run, "
        "without what the run has taught it. The programs that were measured are those it thought "
        "well of: telling them apart is harder than telling random ones apart.",
        [
            Picture("predictions", "score and throughput of each program", figure),
            Table(("task", ">programs", ">pairs in order", ">rank correlation"), rows),
        ],
    )
