"""costlib's search against Ansor and Bayesian Code Diffusion themselves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tools.evidence.files import read_result
from tools.evidence.markdown import share, table, times, with_range
from tools.evidence.origins import origin
from tools.evidence.pages.page import Page
from tools.evidence.peers_summary import PEERS
from tools.evidence.protocol import EARLY_TRIALS, HEAVY_TRIALS, LONG_TRIALS, NETWORK_TRIALS
from tools.evidence.provenance import machine, measured

Row = Mapping[str, Any]

_KINDS = {
    "network": f"whole networks, {NETWORK_TRIALS} trials a task on the average",
    "heavy": f"single tasks, {HEAVY_TRIALS} trials",
    "long": f"single tasks, {LONG_TRIALS:,} trials against costlib's {HEAVY_TRIALS}",
}


def parts() -> list[str]:
    """Return the page."""
    result = read_result("peers")
    versions = " and ".join(sorted({row["tvm"] for row in result["races"] if row["tvm"]}))
    return [
        "The searches themselves, not their likeness: Ansor, and what the authors of Bayesian Code "
        f"Diffusion publish, both in TVM {versions}. They tune the same tensor expressions as "
        "costlib for the same processor, with as many repeats and as long, and all take turns on "
        "one machine. Programs that led their side for a while are measured again after the race, "
        "in turns; only that second look counts.",
        "*Trials* and *time* are what costlib spent until it was as fast as the other at its end "
        "and stayed so, as a share of all that the other spent. *Faster* is the other's last "
        f"latency by costlib's after as many trials, *early* by costlib's after {EARLY_TRIALS} "
        "trials a task.",
        origin("peers"),
        table(
            ["against", "races", "won", "trials", "time", "faster", "early"],
            [_pooled(row, result["races"]) for row in result["pooled"]],
        ),
        "## Race by race",
        origin("peers"),
        table(
            ["against", "network or task", "seed", "machine", "trials", "time", "faster", "early"],
            [_race(row) for row in result["races"]],
        ),
        *measured("peers"),
    ]


def _pooled(row: Row, races: list[Row]) -> list[str]:
    found = [r for r in races if (r["against"], r["kind"]) == (row["against"], row["kind"])]
    faster = [race["latency_ratio"] for race in found]
    return [
        f"{PEERS[row['against']]}: {_KINDS[row['kind']]}",
        str(row["races"]),
        str(sum(race["reached"] for race in found)),
        share(row["trials_ratio"]),
        share(row["time_ratio"]),
        with_range(row["latency_ratio"], min(faster), max(faster), 2),
        times(row["latency_ratio_at_16"]),
    ]


def _race(row: Row) -> list[str]:
    return [
        PEERS[row["against"]],
        f"`{row['name']}`",
        str(row["seed"]),
        machine(row["hardware"]),
        share(row["trials_ratio"]) + ("" if row["reached"] else ", not reached"),
        share(row["time_ratio"]),
        times(row["latency_ratio"]),
        times(row["latency_ratio_at_16"]),
    ]


PAGE = Page("peers", "The search against Ansor and Bayesian Code Diffusion", parts, ("peers",))
