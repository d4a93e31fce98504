"""Programs that a bundle's generator writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from costlib.report.figures import COMPARED, finish, fixed_ticks, panel, plain_ticks, tip
from costlib.report.units import plain
from costlib.workloads.title import fused_title
from tools.evidence.files import read_result
from tools.evidence.generate_summary import COUNTS
from tools.evidence.markdown import between, percent, pictures, table, with_error
from tools.evidence.origins import origin
from tools.evidence.pages.page import Page
from tools.evidence.protocol import BESIDE_WRITTEN_TRIALS, NETWORK_GENERATED, WRITTEN
from tools.evidence.provenance import machine, measured, provenance

Row = Mapping[str, Any]

_WAYS = {
    "generate": "`costlib generate`",
    "written": "written ones alone",
    "sampled": "random ones alone",
    "search without": "search, as it comes",
    "search": "search with the generator",
}


def parts() -> list[str]:
    """Return the page."""
    result = read_result("generate")
    goal = provenance().goals.generated_of_long
    count = str(NETWORK_GENERATED)
    long = result["pooled"]["generate"]["1000"][count]
    return [
        pictures(
            {
                f"generator-{trials}.svg": f"throughput beside stock with {trials} trials"
                for trials in _STOCK
            }
        ),
        "At the two heaviest tasks of each held-out network a bundle's language model writes "
        f"{WRITTEN:,} programs of a task, and as many are drawn at random. The bundle's models "
        "pick the best of both together, as `costlib generate` does, or of either alone; the "
        "picked ones are measured, the best first. Stock MetaSchedule and costlib's search race "
        "them. The tables give the throughput of the best of so many measured programs, relative "
        "to stock's, as geometric means over the races.",
        *(line for trials in _STOCK for line in _against(result, trials)),
        f"Our goal is that {count} generated programs are as good as a long search of stock. They "
        f"reach {long:.2f} of it; the goal is {goal:.2f}.",
        "## Written or random",
        "Most of this is owed to the models that pick. The throughput of the best written programs "
        "relative to that of the best random ones:",
        origin("generate"),
        origin("search", "long races"),
        _written_or_random(result),
        "## In the search",
        "The search with the generator, relative to the search without it, in the same races; the "
        "error is that of the logarithm. It is ahead only while very few programs are measured, "
        "so it is off by default in the search.",
        origin("generate"),
        table(
            ["programs measured", "throughput", "ahead in"],
            [
                [
                    int(programs),
                    with_error(found["throughput"], found["standard_error"]),
                    f"{found['ahead']} of {len(result['cases'])} races",
                ]
                for programs, found in result["generator_in_search"].items()
            ],
        ),
        *_on_networks(result["networks"]),
        "## Speed and validity",
        *_speed(result),
        "## Without measuring",
        *_reach(),
        *measured("generate", "generator_reach"),
    ]


def _on_networks(races: Sequence[Row]) -> list[str]:
    if not races:
        return []
    return [
        "## On whole networks",
        "So many generated programs of each task, relative to stock at its end of the same race:",
        origin("search", "whole networks"),
        table(
            ["network", "seed", *map(_programs, COUNTS[:3]), "machine"],
            [
                [
                    f"`{row['network']}`",
                    row["seed"],
                    *(f"{row['generate'][str(n)]:.2f}" for n in COUNTS[:3]),
                    machine(row["hardware"]),
                ]
                for row in races
            ],
        ),
    ]


def _ways(trials: str) -> dict[str, str]:
    """Return what the ways are called; in the long races the search is as it comes."""
    if trials != "1000":
        return _WAYS
    return {way: words for way, words in _WAYS.items() if way != "search without"} | {
        "search": _WAYS["search without"]
    }


def _programs(count: int) -> str:
    return "1 program" if count == 1 else f"{count} programs"


def _against(result: Row, trials: str) -> list[str]:
    words = {
        "64": f"Stock has {BESIDE_WRITTEN_TRIALS} trials in the same race.",
        "200": "What stock gains with more trials is taken from its longer races at the same tasks "
        "and seeds.",
        "1000": "Races of their own, one for each network, on the same machine; the search has "
        "fewer trials than stock here, too.",
    }
    races = sum(trials in case["written"] for case in result["cases"] + result["long"])
    return [
        f"## Against {int(trials):,} trials of stock",
        f"{words[trials]} There are {races} races.",
        *_ORIGINS[trials](),
        table(
            ["", *map(_programs, COUNTS)],
            [
                [words, *(f"{found[str(n)]:.2f}" if str(n) in found else "" for n in COUNTS)]
                for way, words in _ways(trials).items()
                if (found := result["pooled"][way][trials])
            ],
        ),
    ]


_ORIGINS = {
    "64": lambda: [origin("generate")],
    "200": lambda: [origin("generate"), origin("search", "single tasks")],
    "1000": lambda: [origin("search", "long races")],
}


def _written_or_random(result: Row) -> str:
    pooled = result["pooled"]
    return table(
        ["races", *map(_programs, COUNTS)],
        [
            [
                words,
                *(
                    f"{pooled['written'][trials][str(n)] / pooled['sampled'][trials][str(n)]:.2f}"
                    for n in COUNTS
                ),
            ]
            for trials, words in (("64", "single tasks"), ("1000", "against long searches"))
        ],
    )


def _speed(result: Row) -> list[str]:
    rates = {
        way: [case["programs_per_s"][way] for case in result["cases"]]
        for way in ("written", "sampled")
    }
    relative = np.divide(rates["written"], rates["sampled"])
    return [
        f"{percent(result['valid'])} of the written programs pass TVM's postprocessors. Programs a "
        "second, lowered and passed, over the races:",
        origin("generate"),
        table(
            ["", "median", "range"],
            [
                ["written", f"{np.median(rates['written']):.0f}", _range(rates["written"], 0)],
                ["drawn by TVM", f"{np.median(rates['sampled']):.0f}", _range(rates["sampled"], 0)],
                ["written / drawn", f"{np.median(relative):.2f}", _range(relative, 2)],
            ],
        ),
    ]


def _range(values: Any, digits: int) -> str:
    return between(min(values), max(values), digits)


def _reach() -> list[str]:
    result = read_result("generator_reach")
    rows = sorted(result["by_name"].items(), key=lambda entry: -entry[1])
    return [
        f"On {len(result['tasks'])} invented tasks that it was not trained on: how far the written "
        "programs lie on the way from random ones (0) to those that evolved under the model of "
        "schedules that taught the generator (1), by that model's scores.",
        origin("generator_reach"),
        table(
            ["tasks", "reach"],
            [
                ["**mean**", f"{result['mean']:.2f}"],
                ["**median**", f"{result['median']:.2f}"],
                *([fused_title(name, ()), f"{reach:.2f}"] for name, reach in rows),
            ],
        ),
    ]


def _drawn(trials: str) -> Figure:
    pooled = read_result("generate")["pooled"]
    figure, axes = panel()
    for way, words in _ways(trials).items():
        found = pooled[way][trials]
        colour = f"C{list(_WAYS.values()).index(words)}"
        counts = list(map(int, found))
        (line,) = axes.plot(
            counts, list(found.values()), "o-", ms=4, lw=1.2, color=colour, label=words.strip("`")
        )
        tip(line, *(f"{count} programs: {plain(found[str(count)])}" for count in counts))
    axes.axhline(1, **COMPARED)
    axes.set_xscale("log")
    fixed_ticks(axes.xaxis, COUNTS)
    plain_ticks(axes.yaxis)
    axes.set(xlabel="programs measured", ylabel="throughput / stock's")
    finish(axes, f"stock with {int(trials):,} trials")
    return figure


_STOCK = ("64", "200", "1000")
"""Trials of stock, in races with each."""

PAGE = Page(
    "generator",
    "Generating instead of searching",
    parts,
    ("generate", "generator_reach"),
    lambda: {f"generator-{trials}.svg": partial(_drawn, trials) for trials in _STOCK},
)
