"""costlib's search against Ansor and Bayesian Code Diffusion themselves."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from matplotlib.figure import Figure

from tools.evidence.files import read_result
from tools.evidence.markdown import in_words, pictures, share, table, times, with_range
from tools.evidence.origins import origin
from tools.evidence.pages.page import Page
from tools.evidence.peers_summary import PEERS
from tools.evidence.protocol import EARLY_TRIALS, HEAVY_TRIALS, LONG_TRIALS, NETWORK_TRIALS
from tools.evidence.provenance import machine, measured, provenance
from tools.evidence.race_curves import ALL, race_pictures
from tools.evidence.races import Race
from tools.evidence.stores import PEERS as STORE
from tools.evidence.task_titles import title

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
    overall = [name for name in _pictures() if name.endswith(f"-{ALL}.svg")]
    return [
        pictures(dict.fromkeys(overall, "throughput by trials")),
        "The searches themselves, not their likeness: Ansor, and what the authors of Bayesian Code "
        f"Diffusion publish, both in TVM {versions}. They tune the same tensor expressions as "
        f"costlib for the same processor{_older(result['races'])}, with as many repeats and as "
        "long, and all take turns on one machine. Programs that led their side for a while are "
        "measured again after the race, in turns; only that second look counts.",
        "*Trials* and *time* are what costlib spent until it was as fast as the other at its end "
        "and stayed so, as a share of all that the other spent. *Faster* is the other's last "
        f"latency by costlib's after as many trials, *early* by costlib's after {EARLY_TRIALS} "
        "trials a task.",
        origin("peers"),
        table(
            ["against", "races", "won", "trials", "time", "faster", "early"],
            [_pooled(row, result["races"]) for row in result["pooled"]],
        ),
        *map(_verdict, result["pooled"]),
        "## Race by race",
        pictures(dict.fromkeys(sorted(_pictures().keys() - overall), "throughput by trials")),
        "Each race; the network that a task is of stands before it.",
        origin("peers"),
        table(
            ["against", "network or task", "seed", "machine", "trials", "time", "faster", "early"],
            [_race(row) for row in result["races"]],
        ),
        *measured("peers"),
    ]


def _older(races: list[Row]) -> str:
    """Say for what processor the others compile where their LLVM does not know the one here."""
    theirs = sorted({r["mcpu"] for r in races if r["mcpu"] and r["mcpu"] not in r["hardware"]})
    if not theirs:
        return ""
    names = in_words([f"`{name}`" for name in theirs])
    return f" (as {names}, where their LLVM is too old to know it)"


def _verdict(row: Row) -> str:
    goals = provenance().goals.races[row["against"]]
    return f"{PEERS[row['against']]}, {_KINDS[row['kind']]}. {goals.verdict(row)}"


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
        next(_label(r) for r in _raced() if (r.kind, r.what) == (row["kind"], row["name"])),
        str(row["seed"]),
        machine(row["hardware"]),
        share(row["trials_ratio"]) + ("" if row["reached"] else ", not reached"),
        share(row["time_ratio"]),
        times(row["latency_ratio"]),
        times(row["latency_ratio_at_16"]),
    ]


@cache
def _raced() -> tuple[Race, ...]:
    return tuple(STORE.load())


def _label(race: Race) -> str:
    """Return a network, or a network and its task."""
    if race.kind == "network":
        return f"`{race.what}`"
    (task,) = race.tasks
    return f"`{race.what.rpartition('-')[0]}`: {title(task.name, task.workload_id)}"


def _pictures() -> dict[str, Callable[[], Figure]]:
    """Draw races relative to the peer that was in most of them, Ansor if both were."""
    found: dict[str, Callable[[], Figure]] = {}
    for kind in _KINDS:
        by_peer = {
            peer: [race for race in _raced() if race.kind == kind and peer in race.sides]
            for peer in PEERS
        }
        against, races = max(by_peer.items(), key=lambda item: len(item[1]))
        names = {race.what: _label(race).replace("`", "") for race in races}
        drawn = race_pictures(races, names, against)
        found |= {f"peers-{kind}-{what}.svg": make for what, make in drawn.items()}
    return found


PAGE = Page(
    "peers", "The search against Ansor and Bayesian Code Diffusion", parts, ("peers",), _pictures
)
