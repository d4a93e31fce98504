"""Throughput by trials of all sides of races, as pictures."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from costlib.arrays import Floats
from costlib.report.figures import COMPARED, finish, fixed_ticks, panel, plain_ticks, tip
from costlib.report.units import plain
from tools.evidence.races import Race

_TICKS = (1, 4, 16, 64, 200, 1000)
_STYLES = {
    "costlib": ("C0", "costlib"),
    "stock": ("C1", "stock MetaSchedule"),
    "generate": ("C2", "generated and random ones"),
    "written": ("C3", "generated ones alone"),
    "sampled": ("C4", "random ones alone"),
    "ansor": ("C1", "Ansor"),
    "diffusion": ("C5", "Bayesian Code Diffusion"),
}
_SPACE = 1.05

ALL = "all"
"""What stands for all races in the name of a picture."""


def race_pictures(
    races: Sequence[Race], names: Mapping[str, str], against: str = "stock"
) -> Mapping[str, Callable[[], Figure]]:
    """Return what draws each task or network, by what was raced, and first one for all of them.

    A line is a side of a race, relative to what the side ``against`` which it is raced reached in
    it at its end, from where each task has a program that runs. In the first picture it is the
    geometric mean over all races, of the sides that were in all of them. All have the same scale.
    """
    if not races:
        return {}
    found: dict[str, list[Race]] = defaultdict(list)
    for race in races:
        found[race.what].append(race)
    lines = [_relative(race, side, against) for race in races for side in race.sides]
    top = _SPACE * max(float(np.nanmax(line)) for line in lines)
    return {ALL: partial(_draw_mean, races, against, top)} | {
        what: partial(_draw_seeds, seeds, names[what], against, top)
        for what, seeds in found.items()
    }


def _relative(race: Race, side: str, against: str) -> Floats:
    """Throughput after each trial, of another's at its end; NaN until each task has a program."""
    seconds = race.curve(side)
    goal = float(race.curve(against)[-1])
    return np.asarray(goal / np.where(np.isfinite(seconds), seconds, np.nan))


def _by_task(race: Race, side: str, against: str) -> Floats:
    """The same after so many trials a task."""
    return _relative(race, side, against)[len(race.tasks) - 1 :: len(race.tasks)]


def _draw_seeds(seeds: Sequence[Race], title: str, against: str, top: float) -> Figure:
    figure, axes = panel()
    for place, race in enumerate(seeds):
        for side in race.sides:
            line = _relative(race, side, against)
            _step(axes, line, len(race.tasks), side, explained=place > 0)
    _frame(axes, title, against, top)
    return figure


def _draw_mean(races: Sequence[Race], against: str, top: float) -> Figure:
    figure, axes = panel()
    for side in dict.fromkeys(side for race in races for side in race.sides):
        if all(side in race.sides for race in races):
            by_task = [_by_task(race, side, against) for race in races]
            count = min(map(len, by_task))
            mean = np.exp(np.mean([np.log(line[:count]) for line in by_task], axis=0))
            _step(axes, mean, 1, side, explained=False)
    _frame(axes, "geometric mean of all", against, top)
    return figure


def _step(axes: Axes, values: Floats, tasks: int, side: str, *, explained: bool) -> None:
    """Draw a line that changes where its values do."""
    changes = np.flatnonzero(np.diff(values, prepend=np.nan) != 0)
    kept = np.unique([*changes, len(values) - 1])
    trials = (kept + 1) / tasks
    colour, name = _STYLES[side]
    label = "" if explained else name
    (line,) = axes.step(trials, values[kept], color=colour, where="post", lw=1.2, label=label)
    tip(line, f"{name}: {plain(float(values[-1]))} at the end")


def _frame(axes: Axes, title: str, against: str, top: float) -> None:
    axes.axhline(1, **COMPARED)
    whose = _STYLES[against][1].removesuffix(" MetaSchedule")
    axes.set(xscale="log", ylim=(0, top), xlabel="trials a task", ylabel=f"throughput / {whose}'s")
    last = axes.get_xlim()[1]
    fixed_ticks(axes.xaxis, [tick for tick in _TICKS if tick <= last])
    axes.set_xlim(1, last)
    plain_ticks(axes.yaxis)
    finish(axes, title)
