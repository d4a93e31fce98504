"""Which program of a task is the best after what was measured."""

from __future__ import annotations

from collections import defaultdict
from statistics import median

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
    assert standings.latencies_s == {program: median(own) for program, own in samples.items()}
    assert standings.best_s == min(standings.latencies_s.values(), default=None)
    measured = [program for program, _ in trials]
    if standings.best is None:
        assert (standings.looks(), standings.stands()) == (0, 0)
    else:
        assert standings.looks() == measured.count(standings.best)
        assert standings.stands() == measured[::-1].index(standings.best)


def test_one_that_proves_slower_falls_back() -> None:
    standings = Standings()
    for program, latency_s in (("steady", 10.0), ("lucky", 8.0)):
        standings.add(program, latency_s)
    assert standings.best == "lucky"
    standings.add("lucky", 14.0)
    assert (standings.best, standings.best_s) == ("steady", 10.0)
