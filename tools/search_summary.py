"""What the cases of ``bench_search.py`` come to, as one table."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import sem

Floats = np.ndarray[Any, np.dtype[np.float64]]


def summarise(folder: Path) -> dict[str, Any]:
    """Read all cases of a folder."""
    cases = {file.stem: json.loads(file.read_text()) for file in sorted(folder.glob("*.json"))}
    grouped: dict[str, dict[str, list[dict[str, Any]]]] = defaultdict(lambda: defaultdict(list))
    for name, case in cases.items():
        kind, rest = name.split("-", 1)
        what, _, seed = rest.rpartition("-seed")
        if kind != "ablation":
            known = {"seed": int(seed), "hardware": case["hardware"]}
            grouped[kind][what].append({**known, **_compared(case)})
    summary: dict[str, Any] = {"pooled": {}}
    for kind, key in (("network", "networks"), ("heavy", "heavy"), ("long", "long")):
        entries = [{"name": what, **_over_seeds(rows)} for what, rows in grouped[kind].items()]
        summary[key] = entries
        if entries:
            summary["pooled"][key] = _pooled(entries)
            summary[f"{key}_by_hardware"] = _by_hardware(entries)
    summary["ablation"] = _ablation(
        {name: case for name, case in cases.items() if name.startswith("ablation-")}
    )
    return summary


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


def _compared(case: Mapping[str, Any]) -> dict[str, Any]:
    """Compare one race's sides: how costlib did relative to stock.

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
    weights = np.array([task["weight"] for task in case["tasks"]], "float64")
    theirs, ours = case["arms"]["stock"], case["arms"]["costlib"]
    their_curve, our_curve = curve(theirs, weights), curve(ours, weights)
    count = len(our_curve)
    slower = np.flatnonzero(our_curve > (1 + SAME) * their_curve[-1])
    since = int(slower[-1]) + 1 if len(slower) else 0
    last = min(since, count - 1)
    at_16 = min(16 * len(weights), count) - 1
    return {
        "stock_s": float(their_curve[-1]),
        "costlib_s": float(our_curve[-1]),
        "trials": len(their_curve),
        "reached": int(since < count),
        "trials_ratio": float((last + 1) / len(their_curve)),
        "time_ratio": float(ours["trials"][last][2] / theirs["trials"][-1][2]),
        "latency_ratio": float(their_curve[-1] / our_curve[min(len(their_curve), count) - 1]),
        "latency_ratio_at_16": float(their_curve[-1] / our_curve[at_16]),
        "overhead_ratio": overhead(ours) / overhead(theirs),
        "seconds_ratio": seconds_of(ours) / seconds_of(theirs),
    }


def curve(arm: Mapping[str, Any], weights: Floats) -> Floats:
    """Weighted sum of the best latencies after each trial; infinite until each task has one.

    The best is what the side took for the best; its latency is what it took when it was measured
    again after the race, if there was such a second look.
    """
    again = dict(arm["again"]) if "again" in arm else None
    best = np.full(len(weights), np.inf)
    sums = []
    for number, (task, latency_s, _) in enumerate(arm["trials"]):
        if again is not None:
            best[task] = again.get(number, best[task])
        elif latency_s is not None:
            best[task] = min(best[task], latency_s)
        sums.append(float(weights @ best))
    return np.array(sums)


def overhead(arm: Mapping[str, Any]) -> float:
    """Seconds a trial that were neither building nor running."""
    return float((arm["active_s"] - arm["measure_s"]) / len(arm["trials"]))


def seconds_of(arm: Mapping[str, Any]) -> float:
    """All seconds a trial."""
    return float(arm["active_s"] / len(arm["trials"]))


def _over_seeds(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {**_pooled(rows), "seeds": [dict(row) for row in rows]}


def _by_hardware(entries: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    races: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for race in (race for entry in entries for race in entry["seeds"]):
        races[race["hardware"]].append(race)
    return [{"hardware": on, "races": len(rows), **_pooled(rows)} for on, rows in races.items()]


def _pooled(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    means = {figure: _geometric_mean([row[figure] for row in rows]) for figure in FIGURES}
    return {"reached": round(float(np.mean([row["reached"] for row in rows])), 4), **means}


def _geometric_mean(values: Sequence[float]) -> float:
    return round(float(np.exp(np.mean(np.log(values)))), 4)


PLAIN_OF = {"full": "plain", "cold": "cold-plain"}


def _ablation(cases: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """How fast each version is after all trials, relative to the full search with a bundle.

    ``on``: tasks or networks; races of versions without a bundle are apart from those with one.

    ``gain``: of the version with a part relative to the same one without it, of a full search
    relative to its plain loop; ``gain_error`` is the standard error of its logarithm.
    """
    rows = []
    kinds = [
        (case, ("networks" if len(case["tasks"]) > 1 else "tasks") + ", cold" * ("-cold-" in name))
        for name, case in cases.items()
    ]
    for on, name in dict.fromkeys((on, name) for case, on in kinds for name in case["arms"]):
        ratios, areas, overheads, gains = [], [], [], []
        raced = [case for case, kind in kinds if kind == on and name in case["arms"]]
        base, _, change = name.partition(" ")
        if not change and all(PLAIN_OF.get(name) in case["arms"] for case in raced):
            base = PLAIN_OF[name]
        for case in raced:
            weights = np.array([task["weight"] for task in case["tasks"]], "float64")
            full, this, other = (curve(case["arms"][arm], weights) for arm in ("full", name, base))
            ratios.append(full[-1] / this[-1])
            gains.append(this[-1] / other[-1] if change.startswith("-") else other[-1] / this[-1])
            count = min(len(full), len(this))
            known = np.isfinite(full[:count]) & np.isfinite(this[:count])
            areas.append(np.exp(np.mean(np.log(full[:count][known] / this[:count][known]))))
            overheads.append(overhead(case["arms"][name]) / overhead(case["arms"]["full"]))
        rows.append(
            {
                "version": name,
                "on": on,
                "throughput": _geometric_mean(ratios),
                "throughput_along_the_way": _geometric_mean(areas),
                "range": [round(min(ratios), 3), round(max(ratios), 3)],
                "overhead": _geometric_mean(overheads),
                "cases": len(raced),
                "hardware": sorted({case["hardware"] for case in raced}),
            }
        )
        if base != name:
            rows[-1]["gain"] = _geometric_mean(gains)
        if base != name and len(gains) > 1:
            rows[-1]["gain_error"] = round(float(sem(np.log(gains))), 4)
    return rows
