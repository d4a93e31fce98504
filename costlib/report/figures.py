"""Figures in the style of the pages: as wide as a phone, so that a page need not shrink them."""

from __future__ import annotations

import io
import json
import math
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from costlib.files import write_file
from costlib.report.units import plain

_WIDTH = 4.1
"""Inches; what fits 420 px beside a page's margins."""

_LINE, _LEGEND = 46, 60
"""Letters of small text that fit a figure's width, however wide they are, and of common words."""

_LEFT = 0.66
"""Inches left of a panel, for its ticks and what they are of."""

_RIGHT = 0.26

_LINE_HEIGHT = 0.165
"""Inches of a line of small text."""

_ROW_HEIGHT = 0.34
"""Inches of a row and its name."""

COMPARED: dict[str, Any] = {"color": "tab:gray", "lw": 0.8, "zorder": 0}
"""How a line looks that values are compared with."""

TIPS = "tips:"
"""How the id of what says something at the mouse begins; a JSON list of texts follows."""


def panel(height: float = 1.9) -> tuple[Figure, Axes]:
    """Return a figure with one panel, of so many inches in height; :func:`finish` frames it."""
    figure = Figure(figsize=(_WIDTH, height))
    axes = figure.subplots()
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=8)
    axes.xaxis.label.set_fontsize(8)
    axes.yaxis.label.set_fontsize(8)
    axes.grid(alpha=0.25, lw=0.5)
    axes.set_axisbelow(True)
    return figure, axes


def row_panel(names: Sequence[str]) -> tuple[Figure, Axes]:
    """Return a panel with a row for each name, which stands above it; rows lie at 0, 1, ..."""
    figure, axes = panel(0.2 + _ROW_HEIGHT * len(names))
    for row, name in enumerate(names):
        place: dict[str, Any] = {"transform": axes.get_yaxis_transform(), "va": "bottom"}
        axes.text(0.01, row - 0.26, name, fontsize=8, parse_math=False, **place)
    axes.set(ylim=(len(names) - 0.5, -0.8), yticks=[])
    return figure, axes


def tip(artist: Any, *texts: str) -> None:
    """Say what a page shows while the mouse is on something: on all of it, or on each point."""
    artist.set_gid(TIPS + json.dumps(texts))


def whole_ticks(axis: Axis) -> None:
    """Put ticks at whole numbers only."""
    axis.set_major_locator(MaxNLocator(5, integer=True, min_n_ticks=1))
    axis.set_major_formatter(_PLAIN)


def latency_scale(axes: Axes, values: Sequence[float]) -> None:
    """Scale the vertical axis for positive values: by their logarithm where they lie far apart."""
    lowest, highest = min(values), max(values)
    axes.yaxis.set_major_formatter(_PLAIN)
    if highest < 4 * lowest:
        space = 0.08 * (highest - lowest) or 0.1 * highest
        axes.set_ylim(max(0.0, lowest - space), highest + space)
        axes.yaxis.set_major_locator(MaxNLocator(5))
        return
    axes.set_yscale("log")
    axes.set_ylim(lowest / 1.15, highest * 1.15)
    fixed_ticks(axes.yaxis, _round_values(lowest, highest))


def fixed_ticks(axis: Axis, values: Sequence[float]) -> None:
    """Put ticks at some values only, written as plain numbers."""
    axis.set_major_locator(FixedLocator(values))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(_PLAIN)


def _round_values(lowest: float, highest: float) -> list[float]:
    """Of 1, 2, 5, 10, and so on those within a range; only 1, 10, 100 where there are many."""
    powers = range(math.floor(math.log10(lowest)), math.ceil(math.log10(highest)) + 1)
    steps = (1, 2, 5) if highest < 300 * lowest else (1,)
    values = [step * 10.0**power for power in powers for step in steps]
    return [value for value in values if lowest / 1.15 <= value <= highest * 1.15]


def _tick_text(value: float, _: int | None = None) -> str:
    if value == 0 or abs(value) >= 1000:
        return f"{value:,.0f}"
    text = plain(value)
    return text.rstrip("0").rstrip(".") if "." in text else text


_PLAIN = FuncFormatter(_tick_text)


def plain_ticks(*axes: Axis) -> None:
    """Write ticks as plain numbers."""
    for axis in axes:
        axis.set_major_locator(MaxNLocator(5))
        axis.set_major_formatter(_PLAIN)


def finish(axes: Axes, title: str = "", columns: int = 2) -> None:
    """Write a panel's title above it, and below it what each colour is, if there are several.

    Both take as many lines as they need; the figure grows by them. (Matplotlib's layout engines
    find margins by drawing twice, which is most of the time a page takes.)
    """
    figure = axes.figure
    assert isinstance(figure, Figure)
    lines = textwrap.wrap(title, _LINE)
    handles, labels = axes.get_legend_handles_labels()
    labels = [textwrap.fill(label, _LEGEND // columns - 4) for label in labels]
    shown = len(handles) > 1
    rows = -(-len(labels) // columns)
    heights = [1 + label.count("\n") for label in labels]
    stacks = [sum(heights[start : start + rows]) for start in range(0, len(labels), rows or 1)]
    legend_lines = max(stacks, default=0) if shown else 0
    above, below = 0.08 + _LINE_HEIGHT * len(lines), 0.44 + _LINE_HEIGHT * legend_lines
    height = figure.get_figheight() + above + below
    figure.set_figheight(height)
    figure.subplots_adjust(
        left=_LEFT / _WIDTH,
        right=1 - _RIGHT / _WIDTH,
        top=1 - above / height,
        bottom=below / height,
    )
    width = _WIDTH - _LEFT - _RIGHT
    axes.yaxis.set_label_coords((0.17 - _LEFT) / width, 0.5)
    axes.set_title(
        "\n".join(lines), fontsize=8, loc="left", parse_math=False, x=(0.03 - _LEFT) / width
    )
    if shown:
        place = {"loc": "lower center", "ncols": columns, "frameon": False, "fontsize": 8}
        spacing = {"labelspacing": 0.3, "borderpad": 0.1, "columnspacing": 1.2}
        legend = figure.legend(handles, labels, **place, **spacing)
        for text in legend.get_texts():
            text.set_parse_math(False)


def legend_name(name: str) -> str:
    """Return a name as a label: matplotlib leaves out what begins with an underscore."""
    return f" {name}" if name.startswith("_") else name


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
