"""What the races of ``tools.benchmarks.peers`` come to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tools.evidence.races import Race
from tools.evidence.search_summary import compared, pooled

PEERS = {"ansor": "Ansor", "diffusion": "Bayesian Code Diffusion"}
"""Whom costlib is raced against, as the sides of races are called, and what they are."""


def summarise_peers(races: Sequence[Race]) -> dict[str, Any]:
    """Compare costlib with each peer: its races, and all of a kind together.

    The figures are those of :func:`tools.evidence.search_summary.compared`, where the peer stands
    for stock. Nothing, if there are none.
    """
    rows = [
        {
            "against": peer,
            "kind": race.kind,
            "name": race.what,
            "seed": race.seed,
            "hardware": race.hardware,
            **{key: (race.sides[peer].settings or {}).get(key) for key in ("tvm", "mcpu")},
            **compared(race, peer),
        }
        for peer in PEERS
        for race in races
        if peer in race.sides
    ]
    if not rows:
        return {}
    groups = sorted({(row["against"], row["kind"]) for row in rows})
    return {
        "races": rows,
        "pooled": [
            {
                "against": peer,
                "kind": kind,
                "races": len(found),
                **pooled(found),
            }
            for peer, kind in groups
            if (found := [r for r in rows if (r["against"], r["kind"]) == (peer, kind)])
        ],
    }
