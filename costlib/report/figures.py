"""Figures in the style of the reports."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from costlib.files import write_file
from costlib.tuning.result import TaskResult

_TASKS = 12
"""Tasks with a panel of their own."""


def panels(
    count: int, columns: int, width: float, height: float, *, sharey: bool = False
) -> tuple[Figure, list[Axes]]:
    """Return a figure of panels, so many beside one another, each of so many inches."""
    rows = max(1, -(-count // columns))
    figure = Figure(figsize=(width * columns, height * rows), layout="constrained")
    every = figure.subplots(rows, columns, squeeze=False, sharey=sharey).ravel()
    for axes in every:
        axes.spines[["top", "right"]].set_visible(False)
    for axes in every[count:]:
        axes.set_axis_off()
    return figure, list(every[:count])


def task_panels(tasks: Sequence[TaskResult]) -> tuple[Figure, list[tuple[TaskResult, Axes]]]:
    """Return a figure with panels for the latencies of the first tasks, trial by trial."""
    shown = tasks[:_TASKS]
    figure, each = panels(len(shown), min(3, max(len(shown), 1)), 3.2, 2.6)
    pairs = list(zip(shown, each, strict=True))
    for task, axes in pairs:
        axes.set_title(shortened(task.name, 36), fontsize=8)
        axes.set(xlabel="trial", yscale="log")
        axes.yaxis.set_major_formatter("{x:g}")
        axes.tick_params(labelsize=7, which="both")
    return figure, pairs


def legend_below(figure: Figure, columns: int) -> None:
    """Explain below a figure what its panels show, each thing once."""
    handles = {}
    for axes in figure.axes:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            handles[label] = handle
    if handles:
        place = {"loc": "outside lower center", "ncols": columns, "frameon": False}
        figure.legend(list(handles.values()), list(handles), **place)


def save_figure(figure: Figure, path: Path, dpi: int) -> None:
    """Write a figure as the picture that its file's name ends like, in one step.

    Raises
    ------
    StorageError
        It cannot be written.
    """
    picture = io.BytesIO()
    figure.savefig(picture, format=path.suffix.removeprefix("."), dpi=dpi)
    write_file(path, picture.getbuffer())


def shortened(name: str, length: int) -> str:
    """Cut a long name."""
    return name if len(name) <= length else f"{name[: length - 1]}…"
