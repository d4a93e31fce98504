"""Which program of a task is the best after what was measured."""

from __future__ import annotations

from collections import defaultdict
from statistics import median_low

from hypothesis import given
from hypothesis import strategies as st

from costlib.schema import Origin
from costlib.search.history import TaskHistory
from costlib.space.program import Program

PROGRAMS = {
    name: Program("task", "sketch", [[0, name]]) for name in ("steady", "doubtful", *"abcd")
}
NAMES = {program.program_id: name for name, program in PROGRAMS.items()}


def add(history: TaskHistory, name: str, latency_s: float | None) -> None:
    history.add(PROGRAMS[name], latency_s, Origin.RANDOM)


def best(history: TaskHistory) -> str | None:
    return None if history.best is None else NAMES[history.best]


latencies = st.none() | st.floats(1e-6, 1.0)


@given(st.lists(st.tuples(st.sampled_from("abcd"), latencies)))
def test_the_lowest_median_leads(trials: list[tuple[str, float | None]]) -> None:
    history, samples = TaskHistory(), defaultdict(list)
    for program, latency_s in trials:
        add(history, program, latency_s)
        if latency_s is not None:
            samples[program].append(latency_s)
    medians = {PROGRAMS[name].program_id: median_low(own) for name, own in samples.items()}
    assert history.latencies_s == medians
    assert [latency_s for latency_s, _ in history.elite] == sorted(medians.values())
    assert history.best_s == min(history.latencies_s.values(), default=None)
    measured = [program for program, _ in trials]
    if history.best is None:
        assert (history.looks(), history.stands()) == (0, 0)
    else:
        assert history.looks() == measured.count(NAMES[history.best])
        assert history.stands() == measured[::-1].index(NAMES[history.best])


def test_of_two_that_disagree_the_third_decides() -> None:
    for third, leader, best_s in ((13.0, "steady", 10.0), (8.1, "doubtful", 8.1)):
        history = TaskHistory()
        for program, latency_s in (("steady", 10.0), ("doubtful", 8.0), ("doubtful", 14.0)):
            add(history, program, latency_s)
        assert (best(history), history.best_s, history.is_sure()) == (
            "doubtful",
            8,
            False,
        )
        add(history, "doubtful", third)
        assert (best(history), history.best_s) == (leader, best_s)


def test_a_second_look_that_comes_to_the_same_confirms() -> None:
    history = TaskHistory()
    assert not history.is_sure()
    for latency_s, confirmed in ((10.0, False), (12.0, False), (10.4, True)):
        add(history, "a", latency_s)
        assert history.is_sure() is confirmed


def test_a_best_program_measured_in_a_calm_moment_is_sure() -> None:
    history = TaskHistory()
    history.add(PROGRAMS["a"], 1.0, Origin.RANDOM, calm=True)
    assert history.is_sure()


def test_after_a_calm_moment_no_other_counts() -> None:
    history = TaskHistory()
    for name, latency_s, calm in (
        ("steady", 10.0, True),
        ("doubtful", 6.0, False),
        ("doubtful", 11.0, True),
        ("doubtful", 5.0, False),
        ("doubtful", 10.5, True),
    ):
        history.add(PROGRAMS[name], latency_s, Origin.RANDOM, calm=calm)
    assert history.best_after_s == [10.0, 6.0, 10.0, 10.0, 10.0]
    assert (best(history), history.is_sure()) == ("steady", True)
    assert history.latencies_s[PROGRAMS["doubtful"].program_id] == 10.5


def test_the_best_latency_after_each_measurement_rises_where_luck_is_found_out() -> None:
    history = TaskHistory()
    for name, latency_s in (("a", None), ("b", 8.0), ("c", 10.0), ("b", 14.0), ("b", 13.0)):
        add(history, name, latency_s)
    assert history.best_after_s == [None, 8.0, 8.0, 8.0, 10.0]
    assert history.measured == {PROGRAMS[name].program_id for name in "abc"}


def test_what_was_raced_is_known_roughly() -> None:
    history = TaskHistory()
    history.add(PROGRAMS["a"], 1.0, Origin.RANDOM, raced=True)
    history.add(PROGRAMS["b"], 2.0, Origin.EVOLVED, calm=True)
    history.add(PROGRAMS["b"], 3.0, Origin.REPEATED, raced=True)
    assert [latency_s for latency_s, _ in history.elite] == [1.0, 2.0]
    assert [latency_s for latency_s, _ in history.timed_well] == [2.0]
    assert history.origins == {Origin.RANDOM: 1, Origin.EVOLVED: 1, Origin.REPEATED: 1}
