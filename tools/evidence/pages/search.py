"""costlib's search against stock MetaSchedule's."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

from matplotlib.figure import Figure

from tools.evidence.files import read_result
from tools.evidence.markdown import pictures, share, table, times, with_range
from tools.evidence.origins import origin
from tools.evidence.pages.page import Page
from tools.evidence.protocol import (
    EARLY_TRIALS,
    HEAVY_TRIALS,
    LONG_TRIALS,
    NETWORK_TRIALS,
    STOCK_BATCH,
)
from tools.evidence.provenance import machine, measured, provenance
from tools.evidence.race_curves import ALL, race_pictures
from tools.evidence.races import Race
from tools.evidence.search_summary import SAME
from tools.evidence.stores import SEARCH
from tools.evidence.task_titles import title

Row = Mapping[str, Any]

_HEAD = ("won", "trials", "time", "faster", "early", "overhead", "seconds")


def parts() -> list[str]:
    """Return the page."""
    result = read_result("search")
    goal = provenance().goals.search_overhead_ratio
    batches = math.ceil(HEAVY_TRIALS / STOCK_BATCH)
    return [
        *(
            [pictures({f"search-networks-{ALL}.svg": "throughput by trials on whole networks"})]
            if result["networks"]
            else []
        ),
        "Stock MetaSchedule and costlib tune the same tasks on one machine and take turns. Both "
        "use one builder, one runner and the same number of repeats, and canaries correct every "
        "latency. Programs that led their side for a while are measured again after the race; "
        "only that second look counts.",
        "The columns of the tables:",
        "- *won*: races in which costlib was as fast as stock at its end, to within "
        f"{100 * SAME:.0f} %, and stayed so;\n"
        "- *trials*, *time*: what costlib spent until then, as a share of all that stock spent; a "
        "race that is not won counts as all that costlib spent;\n"
        "- *faster*: stock's last latency divided by costlib's after as many trials, with the "
        "range over the races;\n"
        f"- *early*: the same of costlib after {EARLY_TRIALS} trials a task, stock at its end;\n"
        "- *overhead*: seconds a trial beside building and running, relative to stock's; our goal "
        f"is {goal};\n"
        "- *seconds*: all seconds a trial, relative to stock's.",
        "All of them are geometric means over the races. What costlib proposes while it builds "
        "slows building down a little and is not part of its overhead.",
        "## Whole networks",
        f"Each side has {NETWORK_TRIALS} trials a task on the average. That is one batch by "
        "stock's default settings, so its cost model has not learnt anything yet. A curve "
        "begins where each task has a program; stock takes one task after the other.",
        *_races_of(result, "networks", "network", without_all=True),
        "## Single tasks",
        f"The two heaviest tasks of each held-out network, with {HEAVY_TRIALS} trials for each "
        f"side. Stock measures them in {batches} batches.",
        *_races_of(result, "heavy", "task"),
        *_lost(result["heavy"]),
        "## Long races",
        f"The heaviest task of each held-out network, one seed. Stock has {LONG_TRIALS:,} trials, "
        f"costlib {HEAVY_TRIALS}; *faster* compares their ends.",
        *_races_of(result, "long", "network"),
        *_lost(result["long"]),
        *measured("search"),
    ]


def _races_of(result: Row, key: str, first: str, *, without_all: bool = False) -> list[str]:
    """Return the pictures and tables of a kind of races, or that there was none."""
    if not result[key]:
        return ["None of them has been raced yet."]
    goals = provenance().goals.races
    shown = [name for name in _pictures(key) if not (without_all and name.endswith(f"-{ALL}.svg"))]
    return [
        pictures(dict.fromkeys(shown, "throughput by trials")),
        origin("search", _KINDS[key][1]),
        *_tables(result, key, first),
        *([goals[key].verdict(result["pooled"][key])] if key in goals else []),
    ]


_KINDS = {
    "networks": ("network", "whole networks"),
    "heavy": ("heavy", "single tasks"),
    "long": ("long", "long races"),
}
"""What races are called among races and in the provenance, by where their figures are."""


def _lost(entries: Sequence[Row]) -> list[str]:
    """Say which races were lost, by how much, and how the best programs of both sides differ."""
    lost = [
        ([_label(entry["name"]), race["seed"], machine(race["hardware"])], race)
        for entry in entries
        for race in entry["seeds"]
        if not race["reached"]
    ]
    if not lost:
        return []
    head = ["task", "seed", "machine"]
    ratios = [
        [*which, times(race["latency_ratio"]), times(race["latency_ratio_at_16"])]
        for which, race in lost
    ]
    beside = [
        [*which, *("<br>".join(race["loops"][side]) for side in ("stock", "costlib"))]
        for which, race in lost
        if "loops" in race
    ]
    explained = [
        "The best programs of both sides: the loops of each block, the outermost first. A loop is "
        "its extent; *k* marks those of a reduction.",
        table([*head, "stock's", "costlib's"], beside),
    ]
    return [
        "These races were lost:",
        table([*head, "faster", "early"], ratios),
        *(explained if beside else []),
    ]


def _tables(result: Row, key: str, first: str) -> list[str]:
    races = [race for entry in result[key] for race in entry["seeds"]]
    rows = [[_label(entry["name"]), *_figures(entry, entry["seeds"])] for entry in result[key]]
    rows.append(["**all**", *_figures(result["pooled"][key], races)])
    by_machine = [
        [
            machine(row["hardware"]),
            *_figures(row, [race for race in races if race["hardware"] == row["hardware"]]),
        ]
        for row in result[f"{key}_by_hardware"]
    ]
    return [table([first, *_HEAD], rows), table(["machine", *_HEAD], by_machine)]


def _figures(means: Row, races: Sequence[Row]) -> list[str]:
    def ranged(figure: str, digits: int) -> str:
        found = [race[figure] for race in races]
        return with_range(means[figure], min(found), max(found), digits)

    return [
        f"{sum(race['reached'] for race in races)} of {len(races)}",
        share(means["trials_ratio"]),
        share(means["time_ratio"]),
        ranged("latency_ratio", 2),
        f"{means['latency_ratio_at_16']:.2f}",
        ranged("overhead_ratio", 3),
        share(means["seconds_ratio"]),
    ]


@cache
def _races() -> tuple[Race, ...]:
    return tuple(SEARCH.load())


def _label(what: str) -> str:
    """Return a network, or a network and its task."""
    network, _, _ = what.rpartition("-")
    if not network:
        return f"`{what}`"
    (task, *_) = (r.tasks[0] for r in _races() if r.kind == "heavy" and r.what == what)
    return f"`{network}`: {title(task.name, task.workload_id)}"


def _pictures(key: str) -> dict[str, Callable[[], Figure]]:
    races = [race for race in _races() if race.kind == _KINDS[key][0]]
    names = {race.what: _label(race.what).replace("`", "") for race in races}
    return {f"search-{key}-{what}.svg": make for what, make in race_pictures(races, names).items()}


PAGE = Page(
    "search",
    "The search against stock MetaSchedule",
    parts,
    ("search",),
    lambda: {name: make for key in _KINDS for name, make in _pictures(key).items()},
)
