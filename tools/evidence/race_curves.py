"""Throughput by trials of all sides of races, as a picture."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from costlib.arrays import Floats
from tools.evidence.drawing import NOTHING_GAINED, panels
from tools.evidence.races import Race

_MOST_COLUMNS = 4
_TICKS = (1, 4, 16, 64, 200, 1000)
_STYLES = {
    "costlib": ("C0", "costlib"),
    "stock": ("C1", "stock MetaSchedule"),
    "generate": ("C2", "generated and random programs, picked by the models"),
    "written": ("C3", "generated ones alone"),
    "sampled": ("C4", "random ones alone"),
}


def draw_races(races: Sequence[Race], names: Mapping[str, str]) -> Figure:
    """Draw a panel for each task or network, and first one for all of them.

    A line is a side of a race, relative to what stock reached in it at its end, from where each
    task has a program that runs. In the first panel it is the geometric mean over all races, of the
    sides that were in all of them.
    """
    found: dict[str, list[Race]] = defaultdict(list)
    for race in races:
        found[race.what].append(race)
    columns = min(len(found) + 1, _MOST_COLUMNS)
    rows = -(-(len(found) + 1) // columns)
    figure, axes = panels(columns, rows, (2.7, 2.1), sharey=True)
    _draw_mean(axes[0], races)
    for panel, (what, seeds) in zip(axes[1:], found.items(), strict=False):
        for race in seeds:
            for side in race.sides:
                _step(panel, _relative(race, side), len(race.tasks), side, lw=1)
        panel.set_title(names.get(what, what))
    for panel in axes[: len(found) + 1]:
        panel.axhline(1, **NOTHING_GAINED)
        panel.set(xscale="log", ylim=(0, None))
        panel.set_xticks([n for n in _TICKS if n <= panel.get_xlim()[1]])
        panel.xaxis.set_major_formatter("{x:g}")
        panel.minorticks_off()
        panel.set_xlim(1, None)
    for panel in axes[len(found) + 1 :]:
        panel.set_axis_off()
    figure.supxlabel("trials a task")
    figure.supylabel("throughput / stock's at its end")
    figure.legend(loc="outside upper right", ncols=3)
    return figure


def _relative(race: Race, side: str) -> Floats:
    """Throughput after each trial, of stock's at its end; NaN until each task has a program."""
    seconds = race.curve(side)
    goal = float(race.curve("stock")[-1])
    return np.asarray(goal / np.where(np.isfinite(seconds), seconds, np.nan))


def _by_task(race: Race, side: str) -> Floats:
    """The same after so many trials a task."""
    return _relative(race, side)[len(race.tasks) - 1 :: len(race.tasks)]


def _draw_mean(panel: Any, races: Sequence[Race]) -> None:
    for side in dict.fromkeys(side for race in races for side in race.sides):
        if all(side in race.sides for race in races):
            by_task = [_by_task(race, side) for race in races]
            count = min(map(len, by_task))
            mean = np.exp(np.mean([np.log(line[:count]) for line in by_task], axis=0))
            _step(panel, mean, 1, side, lw=1.6, label=_STYLES[side][1])
    panel.set_title("geometric mean of all", fontweight="bold")


def _step(panel: Any, values: Floats, tasks: int, side: str, **style: Any) -> None:
    """Draw a line that changes where its values do."""
    changes = np.flatnonzero(np.diff(values, prepend=np.nan) != 0)
    kept = np.unique([*changes, len(values) - 1])
    trials = (kept + 1) / tasks
    panel.step(trials, values[kept], color=_STYLES[side][0], where="post", **style)
