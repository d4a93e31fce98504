"""Which program of a task is the best after what was measured."""

from __future__ import annotations

from collections import defaultdict
from statistics import median_low

from hypothesis import given
from hypothesis import strategies as st

from costlib.search.standings import Standings

latencies = st.none() | st.floats(1e-6, 1.0)


@given(st.lists(st.tuples(st.sampled_from("abcd"), latencies)))
def test_the_lowest_median_leads(trials: list[tuple[str, float | None]]) -> None:
    standings, samples = Standings(), defaultdict(list)
    for program, latency_s in trials:
        standings.add(program, latency_s)
        if latency_s is not None:
            samples[program].append(latency_s)
    assert standings.latencies_s == {program: median_low(own) for program, own in samples.items()}
    assert standings.best_s == min(standings.latencies_s.values(), default=None)
    measured = [program for program, _ in trials]
    if standings.best is None:
        assert (standings.looks(), standings.stands()) == (0, 0)
    else:
        assert standings.looks() == measured.count(standings.best)
        assert standings.stands() == measured[::-1].index(standings.best)


def test_of_two_that_disagree_the_third_decides() -> None:
    for third, best, best_s in ((13.0, "steady", 10.0), (8.1, "doubtful", 8.1)):
        standings = Standings()
        for program, latency_s in (("steady", 10.0), ("doubtful", 8.0), ("doubtful", 14.0)):
            standings.add(program, latency_s)
        assert (standings.best, standings.best_s, standings.is_confirmed()) == (
            "doubtful",
            8,
            False,
        )
        standings.add("doubtful", third)
        assert (standings.best, standings.best_s) == (best, best_s)


def test_a_second_look_that_comes_to_the_same_confirms() -> None:
    standings = Standings()
    assert not standings.is_confirmed()
    for latency_s, confirmed in ((10.0, False), (12.0, False), (10.4, True)):
        standings.add("only", latency_s)
        assert standings.is_confirmed() is confirmed
