"""What an oracle of directions gains at families whose answer is known."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tools.evidence.directions_summary import of_families, summarise_directions
from tools.evidence.families import Child, Family

DIRECTIONS = ("a", "b", "c", "d")


def family(number: int, latency_s: Callable[[int, int], float | None], count: int = 16) -> Family:
    """Make a parent of 1 s with so many children of each direction, by direction and number."""
    pairs = [(d, n) for d in range(len(DIRECTIONS)) for n in range(count)]
    return Family(
        device="surrogate",
        hardware="x",
        workload_id=f"task-{number}",
        title="matmul",
        parent=f"parent-{number}",
        recorded=1.0,
        parent_s=1.0,
        children=tuple(
            Child(
                direction=DIRECTIONS[d],
                words=f"{n}",
                chance=1 / len(pairs),
                latency_s=latency_s(d, n),
            )
            for d, n in pairs
        ),
    )


def test_an_oracle_finds_the_direction_that_is_better() -> None:
    """Direction `number % 4` is twice as fast; eight of all have one of it in nine of ten draws."""
    found = of_families([family(n, lambda d, _, n=n: 0.5 if d == n % 4 else 1.0) for n in range(8)])
    assert found["right"] == found["tied"] == 1
    assert found["by_chance"] == found["tied_by_chance"] == 0.25
    missed = np.prod([(24 - k) / (32 - k) for k in range(8)])  # None of the 8 among 32.
    assert found["gain"]["oracle"]["ratio"] == pytest.approx(2**missed, rel=0.02)
    assert found["gain"]["all_known"]["ratio"] == pytest.approx(2**missed, rel=0.02)
    assert found["gain"]["always"]["ratio"] < 0.7
    assert found["by_direction"]["a"] == {
        "parents": 8,
        "children": 16,
        "stock": 0.25,
        "pays": 0.25,
        "named": 0.25,
        "gain": pytest.approx(found["by_direction"]["b"]["gain"], rel=0.02),
    }


def test_luck_gains_nothing() -> None:
    """Where all directions are alike, the best of the seen half says nothing of the other."""
    rng = np.random.default_rng(0)
    table = np.exp(0.3 * rng.standard_normal((24, 4, 16)))
    found = of_families([family(n, lambda d, i, n=n: table[n, d, i]) for n in range(24)])
    for side in ("oracle", "random"):
        assert found["gain"][side]["ratio"] == pytest.approx(1, abs=0.05)
        assert found["gain"][side]["low"] < 1 < found["gain"][side]["high"]
    assert found["right"] == pytest.approx(0.25, abs=0.1)
    assert found["gain"]["all_known"]["low"] > 1.05  # Who has seen all children is paid for luck.


def test_a_parent_that_no_child_beats_is_kept() -> None:
    found = of_families([family(n, lambda d, _: 1.2 + d) for n in range(4)])
    assert found["better"] == 0
    assert found["parent_of_best"] == pytest.approx(1.2)
    assert found["gain"]["oracle"]["kept_ratio"] == 1
    assert found["gain"]["oracle"]["ratio"] >= 1


def test_a_direction_with_few_children_is_filled_up() -> None:
    """One with two children, which are no better, costs nothing."""
    found = of_families(
        [family(n, lambda d, i: (0.9 if d else 1) if d or i < 2 else None) for n in range(4)]
    )
    assert found["by_direction"]["a"]["children"] == 2
    assert found["by_direction"]["a"]["gain"] == pytest.approx(1, abs=0.01)
    assert found["ran"] == found["children"] - 4 * 14


def test_families_that_cannot_decide_are_left_out() -> None:
    assert of_families([family(0, lambda d, _: 1.0 if d < 2 else None)]) == {}


def test_devices_are_kept_apart_and_rows_bring_families_back() -> None:
    one = family(0, lambda d, _: 1.0 + d if d < 3 else None)
    other = one.model_copy(update={"device": "native", "hardware": "y"})
    assert Family.from_rows(one.rows()) == one
    found = summarise_directions([one, other])
    assert list(found) == ["surrogate", "native"]
    assert found["surrogate"]["x"] == found["native"]["y"]


def test_directions_are_told_apart_in_three_ways() -> None:
    names = [
        "spatial outer to inner",
        "spatial middle to inner",
        "spatial inner to outer",
        "unroll",
    ]
    one = family(0, lambda d, i: 1 + d + i / 100)
    children = [
        child.model_copy(update={"direction": names[DIRECTIONS.index(child.direction)]})
        for child in one.children
    ]
    found = summarise_directions([one.model_copy(update={"children": tuple(children)})])
    by_kind = {k: set(v.get("by_direction", ())) for k, v in found["surrogate"]["x"].items()}
    assert by_kind["fine"] == set(names)
    assert by_kind["level"] == {"spatial to inner", "spatial to outer", "unroll"}
    assert by_kind["today"] == set()  # Two directions are too few to choose from.
