"""What each part of the search is worth."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from tools.evidence.ablation_summary import RACED_ON
from tools.evidence.files import read_result
from tools.evidence.markdown import (
    in_words,
    percent,
    pictures,
    share,
    table,
    with_error,
    with_range,
)
from tools.evidence.marks import Mark, marks_figure
from tools.evidence.origins import origin
from tools.evidence.pages.page import Page
from tools.evidence.part_names import titled
from tools.evidence.protocol import (
    ABLATION_TRIALS,
    CONFIDENCE,
    DIFFUSION_TRIALS,
    is_on_by_default,
)
from tools.evidence.provenance import machine, measured, provenance
from tools.evidence.stores import SEARCH

Row = Mapping[str, Any]

_LOOPS = {
    "full": "full search",
    "plain": "plain loop",
    "cold": "full search without a bundle",
    "cold-plain": "plain loop without a bundle",
}


def parts() -> list[str]:
    """Return the page."""
    rows = read_result("search")["ablation"]
    return [
        pictures({name: f"what each part gains {_PICTURES[name][0]}" for name in _drawings()}),
        "Versions of the search race each other at the two heaviest tasks of each held-out "
        f"network, with {ABLATION_TRIALS} trials for each version. The *plain loop* is Ansor's: "
        "evolution under the bundle's exact model and nothing else. The *full search* has all "
        "parts that are on, and some that have been switched off since. The *gain* of a part is "
        "the throughput with it divided by the throughput without it, the geometric mean over the "
        "races with the standard error of its logarithm.",
        "## With a bundle",
        "Parts that gain nothing here may be on all the same: they are needed without a bundle, in "
        "longer runs, or on whole networks.",
        *_raced(rows, "tasks", "full", "plain", "with a bundle"),
        "## Without a bundle",
        "The same tasks, without a bundle. There the plain loop learns from what the run measures, "
        "as Ansor's does. Throughputs are relative to the full search with a bundle.",
        *_raced(rows, "tasks, cold", "cold", "cold-plain", "without a bundle"),
        "## Diffusion",
        "Diffusion hands programs from task to task, so it is raced on whole networks, with "
        f"{DIFFUSION_TRIALS} trials a task.",
        *_raced(rows, "networks", "full", "plain", "diffusion"),
        *_variants(read_result("variants")),
        *measured("ablation", "variants"),
        *(["Races of versions by machine:", _machines()] if rows else []),
    ]


def _raced(rows: Sequence[Row], on: str, full: str, plain: str, part: str) -> list[str]:
    """Return what there is to say of the races on something."""
    if not any(row["on"] == on for row in rows):
        return ["None of them has been raced yet."]
    return [
        *([_told_apart(rows, on, full, plain)] if on != "networks" else []),
        origin("ablation", part),
        _gains(rows, on, full, plain),
        f"What each part gains in the {_LOOPS[full]} after so many trials a task, with the "
        f"interval that holds it with {percent(CONFIDENCE)} confidence:",
        _by_trials(rows, on, full),
        "The searches as wholes:",
        _loops(rows, on),
    ]


def _by_trials(rows: Sequence[Row], on: str, full: str) -> str:
    shown = {
        row["version"].partition(" ")[2][2:]: row["by_trials"]
        for row in rows
        if row["on"] == on and row["version"].startswith(f"{full} ")
    }
    budgets = sorted({int(budget) for found in shown.values() for budget in found})
    return table(
        ["part", *(f"{budget} trials" for budget in budgets)],
        [
            [titled(part), *(_with_interval(found.get(str(b))) for b in budgets)]
            for part, found in shown.items()
        ],
    )


def _with_interval(found: Row | None) -> str:
    return "" if found is None else with_range(found["gain"], *found["interval"])


def _variants(result: Mapping[str, Row]) -> list[str]:
    if not result:
        return []
    return [
        "## Settings on invented tasks",
        "Settings of the search race the search as it was on that day, at tasks that no benchmark "
        "holds. Those that begin with *cold* have no bundle and are compared with the search "
        "without one; *cold* itself is compared with the search with one. The columns are "
        "throughputs after so many trials, and then seconds a trial, all of them and those beside "
        "building and running, relative to what it is compared with.",
        origin("variants"),
        _variants_table(result),
    ]


def _gain(rows: Sequence[Row], on: str, version: str) -> tuple[float, float] | None:
    for row in rows:
        if (row["on"], row["version"]) == (on, version):
            return row["gain"], row.get("gain_error", math.nan)
    return None


def _gains_by_part(
    rows: Sequence[Row], on: str, full: str, plain: str
) -> dict[str, tuple[tuple[float, float], tuple[float, float] | None]]:
    """Return what each part gains in the full search and in the plain loop, most first."""
    found = {}
    for row in rows:
        base, _, change = row["version"].partition(" ")
        if row["on"] == on and base == full and change:
            part = change[2:]
            found[part] = (
                (row["gain"], row.get("gain_error", math.nan)),
                _gain(rows, on, f"{plain} + {part}"),
            )
    return dict(sorted(found.items(), key=lambda entry: -entry[1][0][0]))


def _gains(rows: Sequence[Row], on: str, full: str, plain: str) -> str:
    return table(
        ["part", f"gain in the {_LOOPS[full]}", f"gain in the {_LOOPS[plain]}", "by default"],
        [
            [
                titled(part),
                with_error(*in_full),
                with_error(*alone) if alone else "always there",
                "on" if is_on_by_default(part) else "off",
            ]
            for part, (in_full, alone) in _gains_by_part(rows, on, full, plain).items()
        ],
    )


def _told_apart(rows: Sequence[Row], on: str, full: str, plain: str) -> str:
    """Say which parts' gains are larger than twice their standard errors."""
    gains = _gains_by_part(rows, on, full, plain)
    words = []
    for loop, found in (
        (full, {part: in_full for part, (in_full, _) in gains.items()}),
        (plain, {part: alone for part, (_, alone) in gains.items() if alone}),
    ):
        logs = {part: (np.log(gain), error) for part, (gain, error) in found.items()}
        gain = [titled(part) for part, (log, error) in logs.items() if log > 2 * error]
        cost = [titled(part) for part, (log, error) in logs.items() if log < -2 * error]
        words.append(
            f"In the {_LOOPS[loop]} "
            + (
                f"these gain more than twice their standard error: {in_words(gain)}."
                if gain
                else "no part gains more than twice its standard error."
            )
        )
        if cost:
            words.append(f"These cost more than that: {in_words(cost)}.")
    return " ".join(words)


def _loops(rows: Sequence[Row], on: str) -> str:
    """Return the full searches and plain loops, relative to the full search with a bundle."""
    return table(
        ["version", "races", "at the end", "along the way", "of its plain loop", "overhead"],
        [
            [
                _LOOPS[row["version"]],
                row["cases"],
                with_range(row["throughput"], *row["range"]),
                f"{row['throughput_along_the_way']:.2f}",
                with_error(row["gain"], row.get("gain_error")) if "gain" in row else "",
                share(row["overhead"]),
            ]
            for row in rows
            if row["on"] == on and row["version"] in _LOOPS
        ],
    )


def _variants_table(result: Mapping[str, Row]) -> str:
    runs = provenance().benchmarks["variants"].runs
    machines = {name: machine(run.machine) for run in runs for name in run.variants}
    counts = sorted({int(key) for row in result.values() for key in row if key.isdigit()})
    rows = []
    for name, row in result.items():
        tasks = max(found["tasks"] for key, found in row.items() if key.isdigit())
        by_count = [row.get(str(count)) for count in counts]
        ours, theirs = row["overhead_s"]
        rows.append(
            [
                f"`{name.replace(',', ', ')}`",
                tasks,
                *(with_error(found["mean"], found["error"]) if found else "" for found in by_count),
                f"{row['seconds']:.2f}",
                f"{ours / theirs:.2f}",
                machines[name],
            ]
        )
    head = ["setting", "tasks", *(f"{count} trials" for count in counts)]
    return table([*head, "seconds", "overhead", "machine"], rows)


def _machines() -> str:
    races = Counter(
        (RACED_ON[race.kind], machine(race.hardware))
        for race in SEARCH.load()
        if race.kind in RACED_ON
    )
    return table(["on", "machine", "races"], [[*where, count] for where, count in races.items()])


def _drawn(title: str, on: str, full: str, plain: str) -> Figure:
    gains = _gains_by_part(read_result("search")["ablation"], on, full, plain)
    rows = {titled(part): list(map(_mark, found)) for part, found in gains.items()}
    kinds = ("in the full search", "in the plain loop")
    return marks_figure(title, rows, kinds, "throughput with it / without it", compared=1)


def _mark(found: tuple[float, float] | None) -> Mark | None:
    if found is None:
        return None
    gain, error = found
    return Mark(gain, gain - error, gain + error)


_PICTURES = {
    "ablation.svg": ("with a bundle", "tasks", "full", "plain"),
    "ablation-cold.svg": ("without a bundle", "tasks, cold", "cold", "cold-plain"),
}


def _drawings() -> dict[str, Callable[[], Figure]]:
    """Return what draws the pictures of what was raced."""
    raced = {row["on"] for row in read_result("search")["ablation"]}
    return {name: partial(_drawn, *what) for name, what in _PICTURES.items() if what[1] in raced}


PAGE = Page("ablation", "What each part of the search is worth", parts, ("search",), _drawings)
