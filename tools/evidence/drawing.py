"""Pictures of one look, the same to the letter whenever they are drawn of the same figures."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from costlib.files import write_file

STYLE = {
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": "medium",
    "font.size": 9,
    "legend.frameon": False,
    "lines.markersize": 4,
    "svg.fonttype": "none",
    "svg.hashsalt": "costlib",
}
NOTHING_GAINED = {"color": "tab:gray", "lw": 0.6, "zorder": 0}
"""How a line at a ratio of one looks."""


def panels(
    columns: int, rows: int = 1, size: tuple[float, float] = (3.4, 2.6), **shared: Any
) -> tuple[Figure, list[Any]]:
    """Return a figure and its panels, row by row; each has this size in inches."""
    figure = Figure(figsize=(size[0] * columns, size[1] * rows), layout="constrained")
    return figure, list(np.ravel(figure.subplots(rows, columns, squeeze=False, **shared)))


def draw(make: Callable[[], Figure], file: Path) -> None:
    """Make a figure and write it as SVG."""
    drawn = io.BytesIO()
    with mpl.rc_context(STYLE):
        make().savefig(drawn, format="svg", metadata={"Date": None}, facecolor="white")
    write_file(file, drawn.getvalue())
