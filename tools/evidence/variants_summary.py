"""What settings of the search are worth on invented tasks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import numpy as np

from tools.evidence.means import geometric_mean, log_error
from tools.evidence.races import Race

PRESENT = "present"
COLD = "cold"
COUNTS = (1, 2, 4, 8, 16, 32, 64, 128, 200)


def summarise_variants(races: Iterable[Race]) -> dict[str, Any]:
    """Return the throughput of each variant relative to the present or the cold search, by trials.

    Races in which either has no program that runs by then are left out of that count.

    ``error`` is the standard error of its logarithm.
    ``overhead_s``: seconds a trial beside building and running, its and those of the other.
    ``seconds``: all seconds a trial, relative to that.
    """
    ratios: dict[str, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    overheads: dict[str, list[tuple[float, float]]] = defaultdict(list)
    elapsed: dict[str, list[float]] = defaultdict(list)
    for race in races:
        curves = {name: race.curve(name) for name in race.sides}
        for name, side in race.sides.items():
            base = COLD if name.startswith(f"{COLD},") else PRESENT
            overheads[name].append((side.overhead_s, race.sides[base].overhead_s))
            elapsed[name].append(side.seconds / race.sides[base].seconds)
            for count in COUNTS:
                if count <= min(len(curves[name]), len(curves[base])):
                    theirs_s, ours_s = curves[base][count - 1], curves[name][count - 1]
                    if np.isfinite(theirs_s + ours_s):
                        ratios[name][count].append(theirs_s / ours_s)
    return {
        name: {
            str(count): {
                "mean": geometric_mean(found),
                "error": log_error(found) if len(found) > 1 else None,
                "range": [round(min(found), 3), round(max(found), 3)],
                "tasks": len(found),
            }
            for count, found in by_count.items()
        }
        | {"overhead_s": np.mean(overheads[name], axis=0).round(4).tolist()}
        | {"seconds": geometric_mean(elapsed[name])}
        for name, by_count in ratios.items()
        if name != PRESENT
    }
