"""Runs that differ in nothing but perhaps their seed, and the curves they have in common."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from costlib.arrays import Floats
from costlib.report.curve import By, Curve, curve_of
from costlib.report.found_run import FoundRun
from costlib.report.units import counted

_PLACES = 200
"""Where a curve by seconds is read."""


@dataclass(frozen=True)
class Side:
    """Runs of one setting.

    Attributes
    ----------
    name
        What the page calls it.
    runs
        The runs.
    """

    name: str
    runs: Sequence[FoundRun]

    @cached_property
    def networks(self) -> list[str]:
        """What its runs tune."""
        return sorted({n for run in self.runs for task in run.result.tasks for n in task.calls})

    def curves(self, network: str) -> list[Curve]:
        """Return a network's curve of each run that measured anything of it."""
        return [
            curve_of(run, network)
            for run in self.runs
            if run.result.curve and any(network in task.calls for task in run.result.tasks)
        ]

    def ends_s(self, network: str) -> Floats:
        """Return what each run brought a network down to."""
        return np.array([curve.latency_s[-1] for curve in self.curves(network)])

    def spent(self, network: str, goal_s: float, by: By) -> list[float]:
        """Return what each run spent until a network was that fast; NaN if it never was."""
        found = []
        for curve in self.curves(network):
            reached = np.flatnonzero(curve.latency_s <= goal_s * (1 + 1e-9))
            places = curve.trials if by == "trials" else curve.seconds
            found.append(float(places[reached[0]]) if len(reached) else float("nan"))
        return found

    def band(self, network: str, by: By) -> tuple[Floats, Floats, Floats, Floats]:
        """Return places, and there the median, the lowest and the highest latency of all runs."""
        curves = self.curves(network)
        if by == "trials":
            places = np.arange(min(len(curve.trials) for curve in curves), dtype=float)
        else:
            places = np.linspace(0, min(curve.seconds[-1] for curve in curves), _PLACES)
        values = []
        for curve in curves:
            along = curve.trials if by == "trials" else curve.seconds
            at = np.searchsorted(along, places, side="right") - 1
            values.append(curve.latency_s[at])
        return places, np.median(values, 0), np.min(values, 0), np.max(values, 0)


def sides_of(runs: Sequence[FoundRun]) -> list[Side]:
    """Put runs that differ in their seed at most on one side, and name the sides."""
    groups: dict[str, list[FoundRun]] = {}
    for run in runs:
        groups.setdefault(_setting(run), []).append(run)
    folders = [run.folder.resolve() for run in runs]
    short = [folder.name for folder in folders]
    unique = len(set(short)) == len(short)

    def name(run: FoundRun) -> str:
        folder = run.folder.resolve()
        return folder.name if unique else f"{folder.parent.name}/{folder.name}"

    def many(group: Sequence[FoundRun]) -> str:
        return f" ({counted(len(group), thing_of(group))})" if len(group) > 1 else ""

    return [Side(name(group[0]) + many(group), group) for group in groups.values()]


def thing_of(runs: Sequence[FoundRun]) -> str:
    """What runs of one setting are counted as: no two of several seeds have the same."""
    return "seed" if len({run.result.seed for run in runs}) == len(runs) else "run"


def _setting(run: FoundRun) -> str:
    """What a run is of, without its seed; an unfinished one is like no other."""
    if run.unfinished:
        return str(run.folder.resolve())
    result = run.result
    networks = sorted({network for task in result.tasks for network in task.calls})
    return json.dumps([networks, result.bundle, result.config, result.hardware_id])
