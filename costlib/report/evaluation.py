"""The page of a bundle that was judged on a dataset."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from matplotlib.figure import Figure

from costlib.data.task_tables import kind_of, title_of
from costlib.hub.bundle import Bundle
from costlib.hub.evaluate import Evaluation, Judged
from costlib.report.bundle import calibration_section, ranking_parts, ranking_sentences
from costlib.report.figures import finish, panel, plain_ticks, tip
from costlib.report.importance import importance_section
from costlib.report.page import Gallery, Page, Picture, Section, Sentence, Table
from costlib.report.ranking import EXPLAINED, figure_text
from costlib.report.units import Unit, counted, plain, unit_for
from costlib.training.metrics import (
    calibrate_pairs,
    expected_best,
    pairwise_accuracy,
    rank_correlation,
    top_k,
)

_ROWS = 100
"""Tasks with a row of their own, the worst first."""

_POINTS = 150
"""Programs of a kind of operator that are drawn beside the first choices."""

_PICTURES = 6
"""Kinds of operators with a picture of their own."""


_TASKS = (
    ">programs", ">top-1", ">top-5", ">random top-1", ">regret", ">pairs in order",
    ">rank correlation",
)  # fmt: skip


def evaluation_report(bundle: Bundle, found: Evaluation, judged: Judged) -> Page:
    """Describe where a bundle that was judged on a dataset is right, and where it is wrong.

    Parameters
    ----------
    bundle
        The bundle.
    found, judged
        How it scores, see :func:`costlib.hub.evaluate.examine`, and what it was judged on.
    """
    tasks = _tasks(found)
    metrics = found.metrics.model_dump()
    unit = unit_for(tasks["chosen_s"])
    calibration = calibrate_pairs(found.scores, found.data.latency_s, found.data.groups)
    sections = [
        Section("How well it ranks", EXPLAINED, ranking_parts(metrics)),
        _by_kind(tasks),
        _wrong(tasks, unit),
        _scatter(found, tasks),
        calibration_section(calibration.model_dump()),
        importance_section(bundle.model),
        _by_task(tasks),
    ]
    return Page(
        title=f"{bundle.name} judged on {Path(judged.dataset).resolve().name}",
        text=f"Judged on {judged}.",
        facts=[
            ("model", bundle.manifest.model_kind),
            ("tasks", f"{len(tasks):,}"),
            ("programs", f"{len(found.scores):,}"),
            ("hardware", ", ".join(judged.hardware)),
        ],
        sections=[section for section in sections if section is not None],
        verdict=[*ranking_sentences(metrics), *_worst_sentence(tasks)],
    )


def _tasks(found: Evaluation) -> pl.DataFrame:
    """Return a row for each task: what it is, and how well its programs are ranked."""
    workloads = found.dataset.scan("workloads").select("workload_id", "name", "arguments").collect()
    known = {row["workload_id"]: row for row in workloads.iter_rows(named=True)}
    rows = []
    for number, (workload_id, hardware_id) in enumerate(found.data.tasks):
        own = found.data.groups == number
        scores, latency_s = found.scores[own], found.data.latency_s[own]
        best_s, chosen_s = float(latency_s.min()), top_k(scores, latency_s, 1)
        rows.append(
            {
                "task": title_of(known[workload_id]),
                "kind": kind_of(known[workload_id]),
                "hardware": hardware_id,
                "programs": len(scores),
                "best_s": best_s,
                "chosen_s": chosen_s,
                "top1": best_s / chosen_s,
                "top5": best_s / top_k(scores, latency_s, 5),
                "random_top1": best_s / expected_best(latency_s, 1),
                "regret": chosen_s / best_s - 1,
                "pairs": pairwise_accuracy(scores, latency_s),
                "correlation": rank_correlation(scores, latency_s),
                "rank_of_best": int((scores > scores[latency_s.argmin()]).sum()) + 1,
            }
        )
    return pl.DataFrame(rows)


def _figures(row: dict[str, float]) -> list[str]:
    names = ("top1", "top5", "random_top1")
    return [
        *(figure_text(row[name]) for name in names),
        f"{100 * row['regret']:.0f} %",
        figure_text(row["pairs"]),
        figure_text(row["correlation"]),
    ]


def _means(tasks: pl.DataFrame) -> pl.DataFrame:
    """Return the means of each kind of operator, that with most tasks first."""
    names = ("top1", "top5", "random_top1", "regret", "pairs", "correlation")
    means = [pl.col(name).fill_nan(None).mean() for name in names]
    return (
        tasks.group_by("kind")
        .agg(pl.len().alias("tasks"), pl.col("programs").sum(), *means)
        .with_columns(pl.col("pairs", "correlation").fill_null(float("nan")))
        .sort(["tasks", "kind"], descending=[True, False])
    )


def _by_kind(tasks: pl.DataFrame) -> Section:
    rows = [
        [row["kind"], row["tasks"], f"{row['programs']:,}", *_figures(row)]
        for row in _means(tasks).to_dicts()
    ]
    text = "Means over the tasks of a kind; regret is how much longer the first choice takes."
    return Section("By operator", text, [Table(("operator", ">tasks", *_TASKS), rows)])


def _by_task(tasks: pl.DataFrame) -> Section:
    shown = tasks.sort("top1").head(_ROWS)
    rows = [
        [row["task"], f"{row['programs']:,}", *_figures(row)] for row in shown.iter_rows(named=True)
    ]
    text = f"The worst {_ROWS} of {len(tasks):,}." if len(tasks) > _ROWS else "The worst first."
    return Section("By task", text, [Table(("task", *_TASKS), rows)])


def _worst_sentence(tasks: pl.DataFrame) -> list[Sentence]:
    kinds = _means(tasks)
    if len(kinds) < 2:
        return []
    worst = kinds.sort("top1").row(0, named=True)
    return [
        [
            f"Of the operators it is worst at “{worst['kind']}”: on average, its first choice "
            f"reaches {figure_text(worst['top1'])} of the best throughput, over "
            f"{counted(worst['tasks'], 'task')}."
        ]
    ]


def _wrong(tasks: pl.DataFrame, unit: Unit) -> Section:
    lost = tasks.with_columns(lost_s=pl.col("chosen_s") - pl.col("best_s"))
    shown = lost.filter(pl.col("lost_s") > 0).sort("lost_s", descending=True).head(10)
    rows = [
        [
            row["task"],
            unit.text(row["chosen_s"]),
            unit.text(row["best_s"]),
            unit.text(row["lost_s"]),
            f"{row['rank_of_best']} of {row['programs']}",
        ]
        for row in shown.iter_rows(named=True)
    ]
    if not rows:
        return Section("Where it is wrong", "Its first choice is the best program of each task.")
    columns = ("task", ">its first choice", ">best", ">lost", ">rank of the best")
    text = "The tasks whose first choice costs most time, and where it ranks the best program."
    return Section("Where it is wrong", text, [Table(columns, rows)])


def _scatter(found: Evaluation, tasks: pl.DataFrame) -> Section:
    """Draw scores and throughputs, a picture for each of the most frequent kinds of operators."""
    kinds = tasks["kind"].to_numpy()
    ranked = _means(tasks)["kind"].to_list()
    pictures = [
        Picture(f"predicted-{kind}", f"scores and throughputs of {kind}", figure)
        for kind in ranked[:_PICTURES]
        if (figure := _kind_figure(found, tasks, kind, kinds)) is not None
    ]
    text = (
        "A point is a program; both axes are relative to its task. A model that is right puts the "
        "best programs at the upper right."
    )
    if len(ranked) > _PICTURES:
        text += f" The {_PICTURES} most frequent operators of {len(ranked)}."
    return Section("Predicted against measured", text, [Gallery(pictures)] if pictures else [])


def _kind_figure(
    found: Evaluation, tasks: pl.DataFrame, kind: str, kinds: np.ndarray[Any, Any]
) -> Figure | None:
    """Draw the first choice of each task of a kind, and a sample of its other programs."""
    groups = found.data.groups
    rows = np.flatnonzero(kinds[groups] == kind)
    if len(rows) < 2:
        return None
    highest = np.full(len(kinds), -np.inf)
    np.maximum.at(highest, groups, found.scores)
    scores = found.scores - highest[groups]
    others, first = rows[scores[rows] < 0], rows[scores[rows] == 0]
    others = others[:: -(-len(others) // _POINTS) or 1]
    figure, axes = panel(1.9)
    titles = tasks["task"].to_list()
    for chosen, colour, label in (
        (others, "C0", "other programs"),
        (first, "C1", "a task's first choice"),
    ):
        throughput = 100 * found.data.labels[chosen]
        style: dict[str, Any] = {"ms": 3.5, "alpha": 0.6, "color": colour, "label": label}
        (points,) = axes.plot(scores[chosen], throughput, "o", **style)
        names = (titles[group] for group in groups[chosen])
        spoken = zip(names, throughput, strict=True)
        tip(points, *(f"{name}: {plain(percent)} % of the best" for name, percent in spoken))
    axes.set(xlabel="score, from the task's highest", ylabel="throughput, % of the best")
    plain_ticks(axes.xaxis, axes.yaxis)
    finish(axes, kind)
    return figure
