"""Sketches, batches and Ctrl-C: the small decisions."""

from __future__ import annotations

import os
import signal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from costlib.search.evolution.selection import select_batch
from costlib.search.evolution.sketch_choice import SketchChoice
from costlib.tuning.interrupt import Interruptible


def test_sketches_are_alike_until_all_are_explored() -> None:
    choice = SketchChoice(["a", "b"])
    for _ in range(10):
        choice.observe("a", 1e-3)
    assert choice.committed is None
    assert choice.shares() == {"a": 0.5, "b": 0.5}


def test_commits_to_the_fastest_and_keeps_exploring() -> None:
    choice = SketchChoice(["a", "b", "c"])
    for _ in range(4):
        choice.observe("a", 2e-3)
        choice.observe("b", 1e-3)
        choice.observe("c", None)
    assert choice.committed == "b"
    shares = choice.shares()
    assert shares["b"] > 0.5
    assert shares["a"] > 0 and shares["c"] > 0
    assert sum(shares.values()) == pytest.approx(1)


def test_a_wrong_commitment_is_undone() -> None:
    choice = SketchChoice(["a", "b"])
    for _ in range(4):
        choice.observe("a", 1.0e-3)
        choice.observe("b", 1.1e-3)
    assert choice.committed == "a"
    for _ in range(8):
        choice.observe("b", 0.5e-3)
    assert choice.committed == "b"


def test_one_sketch_gets_everything() -> None:
    assert SketchChoice(["a"]).shares() == {"a": 1}


@given(st.integers(0, 30), st.integers(1, 12), st.floats(0, 1), st.integers(0, 99))
def test_a_batch_is_as_large_as_can_be_and_has_no_repeats(
    n: int, count: int, epsilon: float, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    chosen = select_batch(rng.normal(size=n), count, rng, epsilon)
    assert len(chosen) == len(set(chosen)) == min(n, count)


def test_the_best_are_chosen() -> None:
    scores = np.array([3.0, 1.0, 2.0, 5.0])
    assert select_batch(scores, 3, np.random.default_rng(0)) == [3, 0, 2]


def test_chance_draws_what_scores_do_not() -> None:
    chosen = select_batch(np.arange(100.0), 10, np.random.default_rng(0), epsilon=0.5)
    assert 0 < sum(index < 90 for index in chosen) < 10


def test_the_first_ctrl_c_is_a_wish_the_second_an_order() -> None:
    before = signal.getsignal(signal.SIGINT)
    with Interruptible() as interruptible:
        assert not interruptible.asked()
        os.kill(os.getpid(), signal.SIGINT)
        assert interruptible.asked()
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before
