"""What a look at a compiled program could save at most, that says whether to run it.

Such a look (at spilled registers, at the mix of instructions) costs nothing, but comes after the
program was compiled. So it only saves running what is slow, for which a search may compile more.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tools.evidence.means import geometric_mean
from tools.evidence.races import Race

AFTER = (16, 32, 64)
"""Trials of a task."""
VETOED = (0.5, 0.9)
"""Shares of the programs that are not run."""


def bound_of_vetoes(races: Sequence[Race], compiling_share: float) -> list[dict[str, Any]]:
    """Compare the best programs after some trials with those after what a perfect veto pays for.

    A perfect veto never hits a program that would have become the best.

    Parameters
    ----------
    races
        Of single tasks.
    compiling_share
        Of the time that a trial takes.
    """
    curves = [race.curve("costlib") for race in races]
    rows = []
    for trials in AFTER:
        for vetoed in VETOED:
            more = 1 / (compiling_share + (1 - vetoed) * (1 - compiling_share))
            gains = [
                float(curve[trials - 1] / curve[min(round(trials * more), len(curve)) - 1])
                for curve in curves
                if len(curve) >= trials
            ]
            if gains:
                found = {"races": len(gains), "ratio": geometric_mean(gains)}
                rows.append({"trials": trials, "vetoed": vetoed, "more": round(more, 3), **found})
    return rows
