"""How well a model ranks: the tables and pictures that the pages of bundles share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from matplotlib.figure import Figure

from costlib.report.figures import finish, panel, plain_ticks, row_panel, tip
from costlib.report.page import Table

FIGURES = ("top1", "top5", "top10", "pairwise_accuracy", "rank_correlation")
_NAMES = ("top-1", "top-5", "top-10", "pairs in order", "rank correlation")

EXPLAINED = (
    "Top-k is the share of a task's best throughput that the best of the first k programs reaches. "
    "In brackets: where it lies with 95 % confidence, were other tasks drawn."
)


def ranking_table(what: str, judged: Mapping[str, Mapping[str, Any]]) -> Table:
    """Return the figures of several models, or of one on several networks, with their intervals."""
    columns = (what, ">tasks", *(f">{name}" for name in _NAMES))
    rows = [
        [name, m.get("tasks"), *(_with_interval(m, figure) for figure in FIGURES)]
        for name, m in judged.items()
    ]
    return Table(columns, rows)


def _with_interval(metrics: Mapping[str, Any], figure: str) -> str:
    text = figure_text(metrics.get(figure))
    interval = metrics.get(f"{figure}_interval")
    if not interval:
        return text
    return f"{text} ({figure_text(interval[0])} to {figure_text(interval[1])})"


def figure_text(value: object) -> str:
    """Write a figure between 0 and 1, or whatever else it is."""
    if isinstance(value, float):
        return f"{value:.3f}"
    return "-" if value is None else str(value)


def ranking_figure(parts: Mapping[str, Mapping[str, Any]], k: int) -> Figure:
    """Draw a figure of the first k beside what a random choice reaches, a bar for each part."""
    name = f"top{k}"
    figure, axes = row_panel(list(parts))
    for place, (part, metrics) in enumerate(parts.items()):
        (bar,) = axes.barh(place, metrics[name], height=0.45, color="C0", alpha=0.55)
        if place == 0:
            bar.set_label("model")
        tip(bar, f"{part}: {metrics[name]:.3f}, a random choice {metrics[f'random_{name}']:.3f}")
        if bounds := metrics.get(f"{name}_interval"):
            axes.plot(bounds, [place, place], color="C0", lw=2)
    random = [part[f"random_{name}"] for part in parts.values()]
    axes.plot(random, range(len(parts)), "|", ms=11, mew=2, color="C1", label="random choice")
    axes.set(xlim=(0, 1), xlabel=f"top-{k}")
    plain_ticks(axes.xaxis)
    finish(axes)
    return figure


def calibration_figure(expected: list[float], observed: list[float]) -> Figure:
    """Draw the share of pairs that a model puts right, by how sure it is of them."""
    figure, axes = panel(2.4)
    axes.plot([0.5, 1], [0.5, 1], "--", color="tab:gray", lw=1, label="as sure as right")
    (points,) = axes.plot(expected, observed, "o-", ms=4, label="model")
    tip(
        points,
        *(
            f"expected {sure:.2f}, right {right:.2f}"
            for sure, right in zip(expected, observed, strict=True)
        ),
    )
    axes.set(xlabel="expected share of right pairs", ylabel="observed", xlim=(0.48, 1.02))
    plain_ticks(axes.xaxis, axes.yaxis)
    finish(axes)
    return figure
