from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from costlib.data.plan import Mix
from costlib.data.proposals import Draw, TaskState, draw
from costlib.schema import Origin
from costlib.space.design_space import DesignSpace
from costlib.space.program import Program
from costlib.workloads import Task

MIX = Mix(evolved=0.25, mutated=0.5)


class LongerIsBetter:
    """Scores by the number of characters of the program, which takes no model."""

    name = "longer-is-better"

    def __call__(self, space: DesignSpace, schedules: Sequence[Any]) -> np.ndarray[Any, Any]:
        return np.array([len(str(schedule.mod)) for schedule in schedules], "float64")


@pytest.fixture
def state(matmul: Task) -> TaskState:
    return TaskState(matmul)


def measure(state: TaskState, draws: Sequence[Draw]) -> None:
    """Pretend that each program takes a time that depends on it alone."""
    for one in draws:
        program = one.candidate.program
        state.add(program, one.origin, 1e-3 + int(program.program_id[:4], 16) * 1e-9)


def test_the_first_batch_is_random(state: TaskState) -> None:
    draws = draw(state, 8, MIX, LongerIsBetter(), seed=0)
    assert len(draws) == 8
    assert {one.origin for one in draws} == {Origin.RANDOM}


def test_the_shares_are_kept(state: TaskState) -> None:
    for _ in range(10):
        measure(state, draw(state, 8, MIX, LongerIsBetter(), seed=0))
    made = Counter({origin: count for origin, count in state.made.items() if count})
    assert sum(made.values()) == len(state.measured) == 80
    assert 12 <= made[Origin.EVOLVED] <= 28
    assert 28 <= made[Origin.MUTATION] <= 52


def test_the_same_seed_draws_the_same(matmul: Task) -> None:
    programs = []
    for seed in (1, 1, 2):
        state = TaskState(matmul)
        for _ in range(3):
            draws = draw(state, 6, MIX, LongerIsBetter(), seed)
            measure(state, draws)
        programs.append([one.candidate.program.program_id for one in draws])
    assert programs[0] == programs[1] != programs[2]


def test_children_follow_their_parent_in_every_direction(state: TaskState) -> None:
    measure(state, draw(state, 8, MIX, None, seed=0))
    draws = draw(state, 16, Mix(evolved=0, mutated=1), None, seed=0)
    parent = draws[0].candidate.program
    children = [one for one in draws if one.parent_id == parent.program_id]
    directions = [one.direction for one in children]
    assert draws[1 : len(children) + 1] == children
    assert len(set(directions)) == len(directions)
    assert set(directions) <= set(state.space.directions(parent))
    assert len(directions) >= 3


def test_evolved_programs_are_the_best_of_their_pool(state: TaskState) -> None:
    measure(state, draw(state, 8, MIX, None, seed=0))
    mix = Mix(evolved=1, mutated=0)
    score = LongerIsBetter()
    picked = draw(state, 8, mix, score, seed=5)
    plain = draw(state, 8, mix, None, seed=5)
    assert {one.origin for one in picked} == {Origin.EVOLVED}
    assert {one.origin for one in plain} == {Origin.RANDOM}

    def mean(draws: Sequence[Draw]) -> float:
        return float(score(state.space, [one.candidate.schedule for one in draws]).mean())

    assert mean(picked) > mean(plain)


def test_generated_programs_are_what_the_generator_writes(state: TaskState) -> None:
    measure(state, draw(state, 8, MIX, None, seed=0))
    written: list[str] = []

    def write(space: DesignSpace, count: int, seed: int) -> list[Program]:
        programs = [program for program, _ in itertools.islice(space.sample(seed + 1), count)]
        written.extend(program.program_id for program in programs)
        return programs

    mix = Mix(evolved=0, mutated=0, generated=0.25)
    draws = draw(state, 8, mix, None, seed=0, write=write)
    generated = [one for one in draws if one.origin == Origin.GENERATED]
    assert len(draws) == 8
    assert 1 <= len(generated) <= 4
    assert {one.candidate.program.program_id for one in generated} <= set(written)
    assert Origin.GENERATED not in {one.origin for one in draw(state, 8, mix, None, seed=0)}


def test_nothing_is_drawn_twice(state: TaskState) -> None:
    for _ in range(4):
        draws = draw(state, 16, MIX, None, seed=0)
        ids = [one.candidate.program.program_id for one in draws]
        assert len(set(ids)) == len(ids)
        assert not set(ids) & state.measured
        measure(state, draws)
