"""Runs beside one another: which ends fastest, and which gets there first."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from costlib.report.compare.sides import Side, sides_of, thing_of
from costlib.report.curve import By, both_ways, frame_curves
from costlib.report.figures import finish, legend_name, panel, tip
from costlib.report.found_run import FoundRun, time_before_s
from costlib.report.page import Gallery, Section, Sentence, Table
from costlib.report.units import Unit, counted, plain, unit_for

_NETWORKS = 6
"""Networks whose curves are drawn."""

_LINES = 8
"""Sides with a curve of their own, the fastest ones."""

_TASKS = 40
_COLUMNS = 6
"""Tasks and sides in the table of tasks."""

_SENTENCES = 3


class RunComparison:
    """Compares runs, those that differ in their seed at most taken together.

    Parameters
    ----------
    runs
        The runs.
    """

    def __init__(self, runs: Sequence[FoundRun]) -> None:
        self._runs = runs
        self._sides = sides_of(runs)
        things = {thing_of(side.runs) for side in self._sides}
        self._thing = "run" if "run" in things else "seed"
        self._unit: Unit = unit_for(
            end for side in self._sides for n in side.networks for end in side.ends_s(n)
        )
        shared: dict[str, list[Side]] = {}
        for side in self._sides:
            for network in side.networks:
                if len(side.curves(network)):
                    shared.setdefault(network, []).append(side)
        self._shared = {network: _ranked(sides, network) for network, sides in shared.items()}

    def verdict(self) -> list[Sentence]:
        """Say which side makes each network fastest, by how much, and how sure that is."""
        raced = {network: sides for network, sides in self._shared.items() if len(sides) > 1}
        sentences: list[Sentence] = [
            [self._sentence(network, sides)] for network, sides in list(raced.items())[:_SENTENCES]
        ]
        if len(raced) > _SENTENCES:
            wins: dict[str, int] = {}
            for sides in raced.values():
                wins[sides[0].name] = wins.get(sides[0].name, 0) + 1
            ranked = sorted(wins.items(), key=lambda pair: -pair[1])
            text = "; ".join(f"{name}: {count}" for name, count in ranked[:_SENTENCES])
            sentences.append([f"Fastest at the end, by networks of {len(raced)}: {text}."])
        if not raced:
            sentences.append(["These runs have no network in common, so none is faster."])
        empty = sum(not run.result.curve for run in self._runs)
        if empty:
            sentences.append([f"{counted(empty, 'run')} measured nothing yet."])
        return sentences

    def _sentence(self, network: str, sides: Sequence[Side]) -> str:
        first, second = sides[:2]
        ours, theirs = first.ends_s(network), second.ends_s(network)
        end_s, goal_s = float(np.median(ours)), float(np.median(theirs))
        trials = float(np.nanmedian(first.spent(network, goal_s, "trials")))
        seconds = float(np.nanmedian(first.spent(network, goal_s, "seconds")))
        text = (
            f"{network}: {first.name} ends fastest, at {self._unit.text(end_s)}; {second.name} "
            f"ends at {self._unit.text(goal_s)}, {plain(goal_s / end_s)} times that. The former "
            f"is there after {counted(round(trials), 'trial')} or {plain(seconds)} s."
        )
        if min(len(ours), len(theirs)) < 2:
            return f"{text} One run each says little: other seeds may end elsewhere."
        if ours.max() < theirs.min():
            one = self._thing
            return f"{text} Every {one} of the one beats every {one} of the other."
        return f"{text} Their {self._thing}s overlap, so that neither is surely faster."

    def sections(self) -> list[Section]:
        """Return the tables and curves behind the verdict."""
        return [section for section in (self._networks(), self._tasks()) if section is not None]

    def _networks(self) -> Section | None:
        if not self._shared:
            return None
        rows = [
            self._row(network, side, sides[-1] if len(sides) > 1 else None)
            for network, sides in self._shared.items()
            for side in sides
        ]
        columns = (
            "network", "run", f">{self._thing}s", ">trials", ">seconds", ">tasks at the end",
            ">trials to the slowest's end", ">seconds to that", ">of PyTorch",
        )  # fmt: skip
        pictures = [
            both_ways(
                f"compared-{number}",
                f"latency of {network}",
                partial(self._figure, network, sides[:_LINES]),
            )
            for number, (network, sides) in enumerate(list(self._shared.items())[:_NETWORKS], 1)
        ]
        return Section(
            "Networks",
            "Sums of the best programs of a network's tasks, all corrected to the reference state "
            "of their machine. Runs that differ in their seed at most are one line; its band is "
            f"from the best to the worst {self._thing}. Of several {self._thing}s a table gives "
            "the median.",
            [Gallery(pictures), Table(columns, rows[: 20 * _NETWORKS])],
        )

    def _row(self, network: str, side: Side, slowest: Side | None) -> list[str]:
        curves, ends = side.curves(network), side.ends_s(network)
        torch = [
            one.pytorch_latency_s / one.latency_after_s
            for run in side.runs
            for one in run.result.networks
            if one.network == network and one.pytorch_latency_s is not None
        ]
        text = self._unit.text(float(np.median(ends)))
        if len(ends) > 1:
            low, high = (plain(end * self._unit.per_second) for end in (ends.min(), ends.max()))
            text += f" ({low} to {high})"
        return [
            network,
            side.name,
            str(len(curves)),
            f"{np.median([curve.trials[-1] for curve in curves]):,.0f}",
            plain(float(np.median([curve.seconds[-1] for curve in curves]))),
            text,
            *_spent_until(side, network, slowest),
            f"{plain(float(np.median(torch)))}x" if torch else "-",
        ]

    def _figure(self, network: str, sides: Sequence[Side], by: By) -> Figure:
        figure, axes = panel(2.1)
        factor = self._unit.per_second
        highest, furthest = 0.0, 1.0
        for number, side in enumerate(sides):
            places, middle, low, high = side.band(network, by)
            colour = f"C{number}"
            (line,) = axes.step(
                places, middle * factor, where="post", color=colour, label=legend_name(side.name)
            )
            tip(line, f"{side.name}: {self._unit.text(middle[-1])} at the end")
            if len(side.runs) > 1:
                band: dict[str, Any] = {"color": colour, "alpha": 0.2, "lw": 0}
                axes.fill_between(places, low * factor, high * factor, step="post", **band)
            highest, furthest = max(highest, high.max()), max(furthest, places[-1])
        ends = [float(np.median(side.ends_s(network))) for side in sides]
        frame_curves(axes, ends, highest, furthest, by, self._unit)
        finish(axes, network)
        return figure

    def _tasks(self) -> Section | None:
        """Return the best latency of each task on each side, tasks of several sides only."""
        sides = self._sides[:_COLUMNS]
        best: dict[str, dict[str, float]] = {}
        titles, weights = {}, {}
        for side in sides:
            for run in side.runs:
                for task in run.result.tasks:
                    if task.latency_after_s is None:
                        continue
                    of_task = best.setdefault(task.workload_id, {})
                    earlier = of_task.get(side.name, np.inf)
                    of_task[side.name] = min(earlier, task.latency_after_s)
                    titles[task.workload_id] = run.titles[task.workload_id]
                    weights[task.workload_id] = time_before_s(task)
        shared = [one for one in best if len(best[one]) > 1]
        shared.sort(key=weights.__getitem__, reverse=True)
        if not shared:
            return None
        rows = [
            [titles[one], *(self._unit.text(best[one].get(side.name)) for side in sides)]
            for one in shared[:_TASKS]
        ]
        text = "The best latency of each task that several runs have tuned, of all "
        text += f"{self._thing}s."
        if len(self._sides) > len(sides):
            text += f" The first {len(sides)} of {len(self._sides)} settings."
        return Section("Tasks", text, [Table(("task", *(f">{s.name}" for s in sides)), rows)])


def _ranked(sides: Sequence[Side], network: str) -> list[Side]:
    """Sides by what they brought a network down to, the fastest first."""
    return sorted(sides, key=lambda side: float(np.median(side.ends_s(network))))


def _spent_until(side: Side, network: str, slowest: Side | None) -> list[str]:
    """Trials and seconds that a side spent until it was where the slowest one ends."""
    if slowest is None:
        return ["-", "-"]
    goal_s = float(np.median(slowest.ends_s(network)))
    return [
        _spent(side.spent(network, goal_s, "trials"), whole=True),
        _spent(side.spent(network, goal_s, "seconds"), whole=False),
    ]


def _spent(values: Sequence[float], *, whole: bool) -> str:
    known = [value for value in values if np.isfinite(value)]
    if not known:
        return "not reached"
    middle = float(np.median(known))
    text = f"{middle:,.0f}" if whole else plain(middle)
    missed = len(values) - len(known)
    return f"{text} ({missed} not)" if missed else text
