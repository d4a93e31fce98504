"""How well and how fast programs are measured."""

from __future__ import annotations

from tools.evidence.files import read_result
from tools.evidence.markdown import percent, table, times
from tools.evidence.origins import origin
from tools.evidence.pages.page import Page
from tools.evidence.provenance import machine, measured
from tools.evidence.stores import SEARCH
from tools.evidence.veto_bound import bound_of_vetoes

_WAYS = {
    "raw_median": "raw, the median of the repeats",
    "raw_minimum": "raw, the best repeat",
    "corrected": "corrected by the canaries",
}


def parts() -> list[str]:
    """Return the page."""
    result = read_result("measure")
    agreement, speed = result["agreement"], result["throughput"]
    return [
        f"The same {agreement['programs']} random programs of single operators are measured twice, "
        f"some minutes apart, on {machine(result['hardware_id'])}. *Deviation* is by how much the "
        "two latencies of a program differ. The machine is shared; how noisy it is differs from "
        "hour to hour, and these figures with it.",
        origin("measure"),
        table(
            ["latency", "Spearman", "median deviation", "nine in ten deviate less than"],
            [
                [
                    words,
                    f"{agreement[way]['spearman']:.3f}",
                    percent(agreement[way]["median_deviation"], 1),
                    percent(agreement[way]["p90_deviation"]),
                ]
                for way, words in _WAYS.items()
            ],
        ),
        "## Throughput",
        f"costlib builds and runs {speed['ratio']:.2f} times as many programs a minute as stock "
        "`LocalBuilder` and `LocalRunner`. Both time a program as often, and stock's workers start "
        "as fast as costlib's.",
        origin("measure"),
        table(
            ["operator", "programs", "costlib, s", "stock, s", "ratio"],
            [
                *(
                    [
                        f"`{row['operator']}`",
                        row["programs"],
                        f"{row['costlib_secs']:.1f}",
                        f"{row['stock_secs']:.1f}",
                        times(row["ratio"]),
                    ]
                    for row in speed["operators"]
                ),
                [
                    "programs a minute",
                    speed["programs"],
                    f"{speed['costlib_per_minute']:.0f}",
                    f"{speed['stock_per_minute']:.0f}",
                    times(speed["ratio"]),
                ],
            ],
        ),
        f"Of costlib's time {percent(speed['compiling_share'])} is compiling.",
        *_vetoed(speed["compiling_share"]),
        *_from_memory(),
        *measured("measure", "cache_state"),
    ]


def _vetoed(compiling_share: float) -> list[str]:
    """Say what it could gain to run only some of the programs that are compiled."""
    races = [race for race in SEARCH.load() if race.kind == "heavy"]
    rows = [
        [
            row["trials"],
            percent(row["vetoed"]),
            times(row["more"]),
            row["races"],
            f"{row['ratio']:.3f}",
        ]
        for row in bound_of_vetoes(races, compiling_share)
    ]
    if not rows:
        return []
    return [
        "## Why every program that is compiled is run",
        "The object code of a program shows spilled registers and its mix of instructions. A look "
        "at it could veto a run, but not the compiling before it. The table bounds what the best "
        "possible veto gains: it never hits a program that becomes the best, and the time saved "
        "pays for more programs. *Faster* is the latency of the best program of the search as it "
        "is, divided by that of the best then, from the races of single tasks.",
        origin("search", "single tasks"),
        table(["trials", "not run", "programs", "races", "faster"], rows),
    ]


def _from_memory() -> list[str]:
    """Compare networks that were tuned with weights in the cache and from memory."""
    cases = read_result("cache_state").get("cases", [])
    if not cases:
        return []
    rows = [
        [
            f"`{case['name']}`",
            f"{case['weight_bytes'] >> 20} of {case['cache_bytes'] >> 20} MiB",
            *(
                figure
                for side in (case["warm"], case["cold"])
                for figure in (
                    f"{1e3 * side['network_s']:.2f}",
                    percent(side["network_s"] / side["tasks_s"] - 1, 1),
                )
            ),
            times(case["warm"]["network_s"] / case["cold"]["network_s"]),
        ]
        for case in cases
        if case["problem"] is None
    ]
    return [
        "## Weights from memory",
        "Networks whose weights exceed the last cache are tuned with weights in the cache and with "
        f"weights from memory, {cases[0]['per_task']} trials a task; the two then take turns. "
        "*Above its tasks* is by how much the network takes longer than its tasks do together, as "
        "they were measured.",
        origin("cache_state"),
        table(
            [
                "network",
                "weights",
                "in the cache, ms",
                "above its tasks",
                "from memory, ms",
                "above its tasks",
                "ratio",
            ],
            rows,
        ),
    ]


PAGE = Page("measuring", "Measuring", parts, ("measure",))
