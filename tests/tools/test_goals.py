"""Goals are met or missed by what was measured."""

from __future__ import annotations

from tools.evidence.goals import RaceGoals

FOUND = {"trials_ratio": 0.09, "time_ratio": 0.3, "latency_ratio": 1.2, "reached": 0.9}


def test_each_goal_of_races_is_judged_by_its_own_figure() -> None:
    goals = RaceGoals(trials_ratio=0.1, time_ratio=0.2, latency_ratio=1.15, all_won=True)
    assert goals.verdict(FOUND) == (
        "Our goals: at most 0.10 of the trials: met; at most 0.20 of the time: **missed**; "
        "at least 1.15x as fast after as many trials: met; every race won: **missed**."
    )


def test_what_was_not_aimed_at_is_not_judged() -> None:
    assert RaceGoals(trials_ratio=0.05).verdict(FOUND) == (
        "Our goals: at most 0.050 of the trials: **missed**."
    )
