"""Draws the cases of ``bench_search.py``: throughput by trials, ours beside stock's."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from search_summary import curve

Floats = np.ndarray[Any, np.dtype[np.float64]]

_MOST_COLUMNS = 4
_TICKS = (1, 4, 16, 64, 200, 1000)
_STYLES = {
    "costlib": ("C0", "costlib"),
    "stock": ("C1", "stock MetaSchedule"),
    "generate": ("C2", "generator's and random programs, picked by the models"),
    "written": ("C3", "the generator's alone"),
    "sampled": ("C4", "random ones alone"),
}


def draw(folder: Path, kind: str, picture: Path) -> None:
    """Draw the races of a kind, a panel for each task or network and one for all of them.

    A line is a seed, relative to what stock reached with that seed at its end, from where each task
    has a program that runs; in the last panel it is the geometric mean over all races, of the sides
    that were in all of them.
    """
    races: dict[str, list[dict[str, Floats]]] = defaultdict(list)
    tasks: dict[str, int] = {}
    for file in sorted(folder.glob(f"{kind}-*.json")):
        case = json.loads(file.read_text())
        weights = np.array([task["weight"] for task in case["tasks"]], "float64")
        curves = {name: curve(arm, weights) for name, arm in case["arms"].items()}
        goal = curves["stock"][-1]
        name = file.stem.removeprefix(f"{kind}-").rpartition("-seed")[0]
        races[name].append(
            {
                arm: goal / np.where(np.isfinite(seconds), seconds, np.nan)
                for arm, seconds in curves.items()
            }
        )
        tasks[name] = len(weights)
    if not races:
        return
    by_task = {
        name: [
            {arm: relative[tasks[name] - 1 :: tasks[name]] for arm, relative in race.items()}
            for race in seeds
        ]
        for name, seeds in races.items()
    }
    columns = min(len(races) + 1, _MOST_COLUMNS)
    rows = -(-(len(races) + 1) // columns)
    figure = Figure(figsize=(3.1 * columns, 2.5 * rows), layout="constrained")
    panels = figure.subplots(rows, columns, sharey=True, squeeze=False).ravel()
    for axes, (name, seeds) in zip(panels, races.items(), strict=False):
        for race in seeds:
            for arm, relative in race.items():
                trials = np.arange(1, len(relative) + 1) / tasks[name]
                axes.step(trials, relative, color=_STYLES[arm][0], lw=1, where="post")
        axes.set_title(name, fontsize=9)
    every = [race for seeds in by_task.values() for race in seeds]
    last = panels[len(races)]
    arms = dict.fromkeys(arm for race in every for arm in race)
    for arm in arms:
        colour, label = _STYLES[arm]
        lines = [race[arm] for race in every if arm in race]
        count = min(map(len, lines)) if len(lines) == len(every) else 0
        mean = np.exp(np.mean([np.log(line[:count]) for line in lines], axis=0))
        last.step(np.arange(1, count + 1), mean, color=colour, label=label, where="post")
    last.set_title("geometric mean of all", fontsize=9)
    for axes in panels[: len(races) + 1]:
        axes.axhline(1, color="tab:gray", lw=0.5)
        axes.set(xscale="log", ylim=(0, None))
        axes.set_xticks([n for n in _TICKS if n <= axes.get_xlim()[1]])
        axes.xaxis.set_major_formatter("{x:g}")
        axes.minorticks_off()
        axes.set_xlim(1, None)
        axes.tick_params(labelsize=7, which="both")
        axes.spines[["top", "right"]].set_visible(False)
    for axes in panels[len(races) + 1 :]:
        axes.set_axis_off()
    figure.supxlabel("trials a task", fontsize=9)
    figure.supylabel("throughput / stock's at its end", fontsize=9)
    figure.legend(fontsize=8, frameon=False, loc="outside upper right", ncols=len(arms))
    figure.savefig(picture, dpi=130)
