"""What the races of ``tools.benchmarks.search`` come to, as one table."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tools.evidence.ablation_summary import summarise_ablation
from tools.evidence.means import geometric_mean
from tools.evidence.protocol import EARLY_TRIALS
from tools.evidence.races import Race

SAME = 0.01
"""Latencies that differ by less count as the same."""

FIGURES = (
    "trials_ratio",
    "time_ratio",
    "latency_ratio",
    "latency_ratio_at_16",
    "overhead_ratio",
    "seconds_ratio",
)


def summarise_search(races: Sequence[Race]) -> dict[str, Any]:
    """Compare the sides of all races; of those that were lost the best programs' loops are kept."""
    grouped: dict[str, dict[str, list[dict[str, Any]]]] = defaultdict(lambda: defaultdict(list))
    for race in races:
        if race.kind in ("network", "heavy", "long"):
            known = {"seed": race.seed, "hardware": race.hardware}
            found = known | compared(race)
            if not found["reached"] and "loops" in race.details:
                found["loops"] = race.details["loops"]
            grouped[race.kind][race.what].append(found)
    summary: dict[str, Any] = {"pooled": {}}
    for kind, key in (("network", "networks"), ("heavy", "heavy"), ("long", "long")):
        entries = [{"name": what, **_over_seeds(rows)} for what, rows in grouped[kind].items()]
        summary[key] = entries
        if entries:
            summary["pooled"][key] = pooled(entries)
            summary[f"{key}_by_hardware"] = _by_hardware(entries)
    summary["ablation"] = summarise_ablation(races)
    return summary


def compared(race: Race, against: str = "stock") -> dict[str, Any]:
    """Compare one race's sides: how costlib did relative to another, which is called stock here.

    - ``trials_ratio``, ``time_ratio``: trials and active seconds after which costlib was
      as fast as stock at its end, to within 1 %, and stayed so, divided by stock's. If it was not
      in the end, all that it spent: then the ratio is at least that.
    - ``reached``: 1 if it was, else 0; of several races, their share.
    - ``latency_ratio``: stock's last latency divided by costlib's at as many trials, or at its end.
    - ``latency_ratio_at_16``: stock's last latency divided by costlib's after 16 trials a task.
    - ``overhead_ratio``: seconds a trial that were not building or running, costlib's by stock's.
      What costlib proposes while it builds shows in how long that takes.
    - ``seconds_ratio``: all seconds a trial, costlib's by stock's.
    """
    theirs, ours = race.sides[against], race.sides["costlib"]
    their_curve, our_curve = race.curve(against), race.curve("costlib")
    count = len(our_curve)
    slower = np.flatnonzero(our_curve > (1 + SAME) * their_curve[-1])
    since = int(slower[-1]) + 1 if len(slower) else 0
    last = min(since, count - 1)
    at_16 = min(EARLY_TRIALS * len(race.tasks), count) - 1
    return {
        "stock_s": float(their_curve[-1]),
        "costlib_s": float(our_curve[-1]),
        "trials": len(their_curve),
        "reached": int(since < count),
        "trials_ratio": float((last + 1) / len(their_curve)),
        "time_ratio": float(ours.trials[last][2] / theirs.trials[-1][2]),
        "latency_ratio": float(their_curve[-1] / our_curve[min(len(their_curve), count) - 1]),
        "latency_ratio_at_16": float(their_curve[-1] / our_curve[at_16]),
        "overhead_ratio": ours.overhead_s / theirs.overhead_s,
        "seconds_ratio": ours.seconds / theirs.seconds,
    }


def _over_seeds(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {**pooled(rows), "seeds": [dict(row) for row in rows]}


def _by_hardware(entries: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    races: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for race in (race for entry in entries for race in entry["seeds"]):
        races[race["hardware"]].append(race)
    return [{"hardware": on, "races": len(rows), **pooled(rows)} for on, rows in races.items()]


def pooled(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the geometric mean of each figure, and the share of races that reached stock's end."""
    means = {figure: geometric_mean([row[figure] for row in rows]) for figure in FIGURES}
    return {"reached": round(float(np.mean([row["reached"] for row in rows])), 4), **means}
