"""Turns that agree, and turns that do not."""

from __future__ import annotations

from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from costlib.tuning.turns import Contestant, take_turns


def contestant(latencies_s: Iterator[float], *, is_yardstick: bool = False) -> Contestant:
    return Contestant(lambda secs: next(latencies_s), is_yardstick)


def test_three_turns_that_agree_are_enough() -> None:
    one = contestant(iter([1e-4, 1.01e-4, 1.02e-4]))
    take_turns([one], 9)
    assert one.is_settled
    assert one.latency_s == 1.01e-4
    assert one.spread_s == (1e-4, 1.02e-4)


def test_disturbed_turns_do_not_count() -> None:
    one = contestant(iter([5e-2, 1.02e-4, 6e-2, 1e-4, 7e-2, 1.01e-4]))
    take_turns([one], 9)
    assert one.is_settled
    assert one.latency_s == 1.01e-4


def test_what_never_agrees_is_not_settled() -> None:
    one = contestant(iter([1.0, 2.0, 4.0, 8.0, 16.0]))
    take_turns([one], 5)
    assert not one.is_settled


def test_what_is_slow_is_timed_until_it_settles_and_the_others_go_on() -> None:
    slow = contestant(iter([2.0]), is_yardstick=True)
    others = [contestant(iter(turns)) for turns in ([0.1, 0.2, 0.1, 0.1], [1.0, 1.5, 1.0, 1.0])]
    take_turns([slow, *others], 9)
    assert [len(one.turns) for one in (slow, *others)] == [1, 4, 3]
    assert slow.is_settled and all(one.is_settled for one in others)


def test_two_turns_are_enough_for_what_is_slow() -> None:
    one = contestant(iter([1.04, 1.0]))
    take_turns([one], 9)
    assert one.is_settled
    assert one.latency_s == 1.0


@given(st.floats(1e-6, 10.0))
def test_turns_last_as_long_as_calls_take(latency_s: float) -> None:
    given_secs: list[float] = []

    def run(secs: float) -> float:
        given_secs.append(secs)
        return latency_s

    take_turns([Contestant(run)], 3)
    assert len(given_secs) > 1
    assert given_secs[0] == 0.02
    assert set(given_secs[1:]) == {min(max(30 * latency_s, 0.02), 0.3)}


def test_only_slow_calls_count_as_turns() -> None:
    one = contestant(iter([]), is_yardstick=True)
    one.count([0.1])
    assert one.turns == []
    one.count([2.0])
    take_turns([one], 9)
    assert one.latency_s == 2.0


def test_what_is_slow_and_never_agrees_has_a_few_seconds() -> None:
    one = contestant(iter([1.0, 2.0, 4.0]))
    take_turns([one], 9)
    assert one.turns == [1.0, 2.0, 4.0]
    assert not one.is_settled
