"""Which sketch to look for programs in."""

from __future__ import annotations

import pytest

from costlib.search.evolution.sketch_choice import SketchChoice


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
