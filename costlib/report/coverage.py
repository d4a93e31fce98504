"""What a dataset covers, as one picture."""

from __future__ import annotations

import math
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from costlib.data import coverage
from costlib.data.dataset import Dataset
from costlib.errors import InputError
from costlib.places import check_writable
from costlib.report.figures import fixed_ticks, plain_ticks, save_figure, whole_ticks

_MOST_OPERATORS = 20
"""Operators with a bar of their own."""

_LABEL_LENGTH = 34

_TITLES = ("programs per task", "spread of latency", "", "best so far")
"""Of all panels but the first; that of the failures counts them."""


def draw_coverage(dataset: Dataset, path: Path) -> Path:
    """Write :func:`coverage_figure` as a picture, whose name ends with ``.png`` or ``.svg``.

    Raises
    ------
    InputError
        Another ending, or there is nothing to draw.
    StorageError
        The picture cannot be written.
    """
    if path.suffix.lower() not in (".png", ".svg"):
        raise InputError(f"{path} is no name for a picture; end it with .png or .svg")
    check_writable(path)
    save_figure(coverage_figure(dataset), path, dpi=150)
    return path


def coverage_figure(dataset: Dataset) -> Figure:
    """Draw five panels; held-out tasks are not drawn.

    Raises
    ------
    InputError
        There is nothing to draw.
    """
    operators = coverage.by_operator(dataset)
    if operators.is_empty():
        raise InputError(f"{dataset.path} holds no measurements to draw")

    figure = Figure(figsize=(12, 8), layout=ConstrainedLayoutEngine(hspace=0.05, wspace=0.04))
    grid = figure.add_gridspec(2, 3, width_ratios=(1.25, 1, 1))
    panels = [figure.add_subplot(grid[:, 0])]
    panels += [figure.add_subplot(grid[row, column]) for row in (0, 1) for column in (1, 2)]
    _draw_operators(panels[0], operators)
    draw_programs(panels[1], coverage.programs_per_task(dataset))
    draw_slowness(panels[2], coverage.slowness(dataset))
    _draw_failures(panels[3], coverage.failures(dataset), int(operators["programs"].sum()))
    draw_best_so_far(panels[4], coverage.best_so_far(dataset))
    for axes, title in zip(panels[1:], _TITLES, strict=True):
        if title:
            axes.set_title(title)
    panels[4].legend(frameon=False, loc="lower right", fontsize=8)
    for panel in panels:
        panel.spines[["top", "right"]].set_visible(False)
        panel.title.set_fontsize(11)
    name = dataset.path.resolve().name
    figure.suptitle(
        f"{name}: {operators['programs'].sum():,} measurements of {operators['tasks'].sum():,} "
        f"tasks on {len(coverage.by_hardware(dataset))} hardware"
    )
    return figure


def _draw_operators(axes: Axes, operators: pl.DataFrame) -> None:
    shown = operators.head(_MOST_OPERATORS)
    labels = [textwrap.fill(name, _LABEL_LENGTH) for name in shown["operator"]]
    counts = shown["tasks"].to_list()
    if len(operators) > _MOST_OPERATORS:
        labels.append(f"{len(operators) - _MOST_OPERATORS} others")
        counts.append(int(operators["tasks"].tail(-_MOST_OPERATORS).sum()))
    _draw_bars(axes, labels, counts)
    axes.margins(x=0.12, y=0.01)
    axes.set(title="tasks by operator", xlabel="tasks")


def _draw_bars(axes: Axes, labels: list[str], counts: list[int], **style: Any) -> None:
    axes.bar_label(axes.barh(range(len(labels)), counts, **style), padding=3, fontsize=8)
    axes.set_yticks(range(len(labels)), labels, fontsize=8)
    axes.invert_yaxis()


def draw_programs(axes: Axes, counts: pl.Series) -> None:
    """Draw how many tasks have how many programs."""
    most = int(counts.max() or 1)  # type: ignore[arg-type]
    width = -(-most // 30)
    axes.hist(counts.to_numpy(), bins=np.arange(0.5, most + width + 0.5, width).tolist())
    axes.set(xlabel="programs of a task on one hardware", ylabel="tasks")
    axes.set_xlim(left=0)
    whole_ticks(axes.xaxis)
    whole_ticks(axes.yaxis)


def draw_slowness(axes: Axes, ratios: pl.Series) -> None:
    """Draw how many programs take how many times as long as the best of their task."""
    values = ratios.to_numpy()
    largest = max(10.0, float(values.max(initial=1.0)))
    axes.hist(values, bins=np.geomspace(1, largest, 40).tolist())
    axes.set(xlabel="latency / best of the task", ylabel="programs")
    axes.set_xscale("log")
    fixed_ticks(axes.xaxis, [10.0**power for power in range(math.floor(math.log10(largest)) + 1)])
    whole_ticks(axes.yaxis)


def _draw_failures(axes: Axes, failures: pl.DataFrame, programs: int) -> None:
    failed = int(failures["programs"].sum())
    axes.set(title=f"failures: {failed:,} of {programs:,} ({failed / programs:.2%})")
    if failures.is_empty():
        axes.text(0.5, 0.5, "none", ha="center", va="center", transform=axes.transAxes)
        axes.set_axis_off()
        return
    statuses, counts = failures["status"].to_list(), failures["programs"].to_list()
    _draw_bars(axes, statuses, counts, height=0.6, color="tab:red")
    axes.margins(x=0.15)
    whole_ticks(axes.xaxis)
    axes.set(xlabel="programs")


def draw_best_so_far(axes: Axes, shares: pl.DataFrame) -> None:
    """Draw how close to a task's best one is after its first programs."""
    count, low, high, mean = (
        shares[name].to_numpy() for name in ("programs", "low", "high", "mean")
    )
    axes.fill_between(count, low, high, alpha=0.25, lw=0, label="10 % to 90 % of the tasks")
    axes.plot(count, mean, marker="." if len(count) < 3 else None, label="mean")
    axes.set(
        xlabel="programs of a task, as measured",
        ylabel="best of the task / best so far",
        ylim=(0, 1.03),
    )
    whole_ticks(axes.xaxis)
    plain_ticks(axes.yaxis)
