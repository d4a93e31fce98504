"""What a memory of earlier runs is worth, by how many networks are in it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from tools.evidence.means import geometric_mean
from tools.evidence.races import Race
from tools.evidence.search_summary import SAME

WITH, WITHOUT = "with memory", "without"
SHARES = (0.125, 0.25, 0.5, 1.0)
"""Of the trials, after which both sides are compared."""


def summarise_memory(races: Iterable[Race]) -> dict[str, Any]:
    """Compare the search with a memory with that without, network by network.

    - ``trials_ratio``: trials after which the side with it was as fast as the other at its end, to
      within 1 %, and stayed so, divided by all; 1 if it was not.
    - ``reached``: whether it was.
    - ``faster``: the throughput with it relative to that without, by the share of the trials.
    """
    by_network: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for race in races:
        by_network[race.what].append({"seed": race.seed, **_compared(race)})
    networks = [{"name": what, **_mean(rows)} for what, rows in by_network.items()]
    return {"networks": networks} if networks else {}


def _compared(race: Race) -> dict[str, Any]:
    ours, theirs = race.curve(WITH), race.curve(WITHOUT)
    slower = np.flatnonzero(ours > (1 + SAME) * theirs[-1])
    since = int(slower[-1]) + 1 if len(slower) else 0
    ends = {share: max(1, round(share * min(len(ours), len(theirs)))) - 1 for share in SHARES}
    return {
        "trials": len(theirs),
        "reached": since < len(ours),
        "trials_ratio": min(since + 1, len(theirs)) / len(theirs),
        "faster": {
            f"{share:g}": float(theirs[end] / ours[end])
            for share, end in ends.items()
            if np.isfinite(theirs[end] + ours[end])
        },
    }


def _mean(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    keys = [f"{share:g}" for share in SHARES]
    shares = [key for key in keys if all(key in row["faster"] for row in rows)]
    return {
        "trials_ratio": geometric_mean([row["trials_ratio"] for row in rows]),
        "faster": {
            share: geometric_mean([row["faster"][share] for row in rows]) for share in shares
        },
        "seeds": rows,
    }
