"""What each part of the search is worth, by races of its versions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tools.evidence.means import geometric_mean, interval, log_error
from tools.evidence.races import Race

RACED_ON = {"cold": "tasks, cold", "ablation": "tasks", "diffusion": "networks"}
"""What the kinds of races of versions were raced on."""

BUDGETS = (8, 16, 32, 48)
"""Trials a task after which gains are compared."""

PLAIN_OF = {"full": "plain", "cold": "cold-plain"}


def summarise_ablation(races: Sequence[Race]) -> list[dict[str, Any]]:
    """Return how fast each version is after all trials, relative to the full search with a bundle.

    ``on``: tasks or networks; races of versions without a bundle are apart from those with one.

    ``gain``: of the version with a part relative to the same one without it, of a full search
    relative to its plain loop; ``gain_error`` is the standard error of its logarithm.

    ``by_trials``: the gain of a part after so many trials a task, in how many races, and the
    interval that holds it with 95 % confidence.
    """
    of_kinds = {kind: [race for race in races if race.kind == kind] for kind in RACED_ON}
    return [
        _version(name, kind, [race for race in found if name in race.sides])
        for kind, found in of_kinds.items()
        for name in dict.fromkeys(name for race in found for name in race.sides)
    ]


def _version(name: str, kind: str, raced: Sequence[Race]) -> dict[str, Any]:
    ratios, areas, overheads, gains = [], [], [], []
    base, _, change = name.partition(" ")
    if not change and all(PLAIN_OF.get(name) in race.sides for race in raced):
        base = PLAIN_OF[name]
    for race in raced:
        full, this, other = (race.curve(side) for side in ("full", name, base))
        ratios.append(full[-1] / this[-1])
        gains.append(this[-1] / other[-1] if change.startswith("-") else other[-1] / this[-1])
        count = min(len(full), len(this))
        known = np.isfinite(full[:count]) & np.isfinite(this[:count])
        areas.append(np.exp(np.mean(np.log(full[:count][known] / this[:count][known]))))
        overheads.append(race.sides[name].overhead_s / race.sides["full"].overhead_s)
    row = {
        "version": name,
        "on": RACED_ON[kind],
        "throughput": geometric_mean(ratios),
        "throughput_along_the_way": geometric_mean(areas),
        "range": [round(min(ratios), 3), round(max(ratios), 3)],
        "overhead": geometric_mean(overheads),
        "cases": len(raced),
        "hardware": sorted({str(race.hardware) for race in raced}),
    }
    if base != name:
        row["gain"] = geometric_mean(gains)
    if base != name and len(gains) > 1:
        row["gain_error"] = log_error(gains)
    if change:
        row["by_trials"] = _by_trials(raced, name, base, change.startswith("-"))
    return row


def _by_trials(
    raced: Sequence[Race], name: str, base: str, is_without: bool
) -> dict[str, dict[str, Any]]:
    found = {}
    for budget in BUDGETS:
        gains = []
        for race in raced:
            place = budget * len(race.tasks) - 1
            curves = [race.curve(side) for side in (name, base)]
            if all(place < len(curve) and np.isfinite(curve[place]) for curve in curves):
                with_it, without = curves if not is_without else curves[::-1]
                gains.append(without[place] / with_it[place])
        if len(gains) > 1:
            found[str(budget)] = {
                "gain": geometric_mean(gains),
                "interval": interval(gains),
                "races": len(gains),
            }
    return found
