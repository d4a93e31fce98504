"""What was aimed at, and whether it was reached, in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict

from tools.evidence.markdown import share, times
from tools.evidence.protocol import EARLY_TRIALS


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class RaceGoals(_Strict):
    """What races against another search are to show; ``None``: nothing was aimed at.

    Attributes
    ----------
    trials_ratio, time_ratio
        Most that costlib spends until it is as fast as the other at its end, of what that spent.
    latency_ratio
        Least latency of the other by costlib's after as many trials.
    latency_ratio_at_16
        The same after few trials of costlib and all of the other.
    all_won
        Whether costlib is to be as fast in every race.
    """

    trials_ratio: float
    time_ratio: float | None = None
    latency_ratio: float | None = None
    latency_ratio_at_16: float | None = None
    all_won: bool = False

    def verdict(self, found: Mapping[str, Any]) -> str:
        """Say which goals means of races meet, of the figures of ``search_summary``."""
        least = {
            "latency_ratio": "after as many trials",
            "latency_ratio_at_16": f"after {EARLY_TRIALS} trials a task",
        }
        said = [
            judged(f"at most {share(most)} of the {what}", found[key] <= most)
            for key, what in {"trials_ratio": "trials", "time_ratio": "time"}.items()
            if (most := getattr(self, key)) is not None
        ]
        said += [
            judged(f"at least {times(goal)} as fast {when}", found[key] >= goal)
            for key, when in least.items()
            if (goal := getattr(self, key)) is not None
        ]
        if self.all_won:
            said.append(judged("every race won", found["reached"] == 1))
        return f"Our goals: {'; '.join(said)}."


class Goals(_Strict):
    """What was aimed at.

    Attributes
    ----------
    search_overhead_ratio
        Most seconds a trial beside building and running, relative to stock's.
    ranking_top1
        Least share of the best throughput that the first of a ranking reaches.
    generated_of_long
        Least throughput of generated programs, relative to stock's after a long search.
    slower_than_pytorch
        Most networks that are slower than PyTorch.
    surrogate_correlation
        Least rank correlation of what settings reach on a surrogate and in real races.
    diffusion_gain
        Least throughput with diffusion, relative to that without it, with few trials and no bundle.
    directions_gain
        Least throughput of a search that is told the best direction of each change, from which on
        a classifier of directions is worth building.
    faster_than
        Least geometric mean of throughput relative to each engine's.
    races
        By the kind of races against stock, or by the peer.
    """

    search_overhead_ratio: float
    ranking_top1: float
    generated_of_long: float
    slower_than_pytorch: int
    surrogate_correlation: float
    diffusion_gain: float
    directions_gain: float
    faster_than: dict[str, float]
    races: dict[str, RaceGoals] = {}


def judged(goal: str, is_met: bool) -> str:
    """Return a goal, and whether it is met."""
    return f"{goal}: {'met' if is_met else '**missed**'}"
