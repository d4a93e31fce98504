"""Rows of marks: a value with its range or error, of one or two kinds a row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure

from costlib.report.figures import COMPARED, finish, fixed_ticks, plain_ticks, row_panel, tip
from costlib.report.units import plain

_SHIFT = 0.24
"""Of the second kind below the first one, in rows."""


class Mark(NamedTuple):
    """A value, and what lies around it."""

    value: float
    low: float
    high: float


def marks_figure(
    title: str,
    rows: Mapping[str, Sequence[Mark | None]],
    kinds: Sequence[str],
    label: str,
    *,
    ticks: Sequence[float] = (),
    compared: float | None = None,
) -> Figure:
    """Draw a row of marks for each name.

    Parameters
    ----------
    rows
        A mark of each kind, by the row's name; ``None`` where there is none.
    kinds, label
        What the kinds are called, and what the values are.
    ticks
        Where the horizontal axis, a logarithmic one, has ticks; without them it is linear.
    compared
        A value that all are compared with.
    """
    figure, axes = row_panel(list(rows))
    for number, kind in enumerate(kinds):
        shift = _SHIFT * (number - (len(kinds) - 1) / 2)
        explained = False
        for place, (name, marks) in enumerate(rows.items()):
            mark = marks[number]
            if mark is None:
                continue
            text = kind if not explained else ""
            explained = True
            colour, height = f"C{number}", place + shift
            axes.plot([mark.low, mark.high], [height, height], color=colour, lw=1.2)
            (point,) = axes.plot(mark.value, height, "o", ms=4, color=colour, label=text)
            tip(point, f"{name}, {kind}: {plain(mark.value)}")
    if compared is not None:
        places = np.arange(len(rows))
        axes.vlines(np.full(len(rows), compared), places - 0.18, places + _SHIFT, **COMPARED)
    if ticks:
        axes.set_xscale("log")
        fixed_ticks(axes.xaxis, ticks)
    else:
        plain_ticks(axes.xaxis)
    axes.set(xlabel=label)
    finish(axes, title)
    return figure
