from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence

import pytest

from costlib.collecting.plan import Mix
from costlib.collecting.proposals import Draw, Known, TaskState, draw
from costlib.measure.measurement import Candidate
from costlib.schema import Origin
from costlib.space.design_space import DesignSpace
from costlib.space.program import Program
from costlib.workloads import Task

MIX = Mix(evolved=0.25, mutated=0.5)


def some_search(task: Task, known: Sequence[Known], count: int, seed: int) -> Sequence[Candidate]:
    """Propose random programs of even seeds: an actual search is tested with the searches."""
    sampled = itertools.islice(DesignSpace(task).sample(2 * seed), 4 * count)
    taken = {one.program.program_id for one in known}
    return [Candidate(*one) for one in sampled if one[0].program_id not in taken][:count]


@pytest.fixture
def state(matmul: Task) -> TaskState:
    return TaskState(matmul)


def measure(state: TaskState, draws: Sequence[Draw]) -> None:
    """Pretend that each program takes a time that depends on it alone."""
    for one in draws:
        program = one.candidate.program
        state.add(program, one.origin, 1e-3 + int(program.program_id[:4], 16) * 1e-9)


def test_the_first_batch_changes_nothing(state: TaskState) -> None:
    draws = draw(state, 8, MIX, some_search, seed=0)
    assert [one.origin for one in draws] == 2 * [Origin.EVOLVED] + 6 * [Origin.RANDOM]


def test_the_shares_are_kept(state: TaskState) -> None:
    for _ in range(10):
        measure(state, draw(state, 8, MIX, some_search, seed=0))
    made = Counter({origin: count for origin, count in state.made.items() if count})
    assert sum(made.values()) == len(state.measured) == 80
    assert 12 <= made[Origin.EVOLVED] <= 28
    assert 28 <= made[Origin.MUTATION] <= 52


def test_the_same_seed_draws_the_same(matmul: Task) -> None:
    programs = []
    for seed in (1, 1, 2):
        state = TaskState(matmul)
        for _ in range(3):
            draws = draw(state, 6, MIX, some_search, seed)
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


def test_evolved_programs_are_what_the_search_proposes(state: TaskState) -> None:
    measure(state, draw(state, 8, MIX, None, seed=0))
    told: list[tuple[Sequence[Known], int]] = []
    proposed: list[str] = []

    def search(task: Task, known: Sequence[Known], count: int, seed: int) -> Sequence[Candidate]:
        found = some_search(task, known, count, seed)
        told.append((list(known), count))
        proposed.extend(one.program.program_id for one in found)
        return found

    draws = draw(state, 8, Mix(evolved=0.25, mutated=0), search, seed=5)
    assert [one.candidate.program.program_id for one in draws[:4]] == proposed
    assert [one.origin for one in draws] == 4 * [Origin.EVOLVED] + 4 * [Origin.RANDOM]
    ((known, count),) = told
    assert count == 4
    assert {one.program.program_id for one in known} == state.measured
    assert min(one.latency_s or 1 for one in known) == state.best_s


def test_a_search_learns_of_what_was_raced_or_failed(state: TaskState) -> None:
    for number, (program, _) in enumerate(itertools.islice(state.space.sample(0), 3)):
        state.add(program, Origin.RANDOM, (None, 1.0, 2.0)[number], raced=number == 1)
    assert [one.latency_s for one in state.known] == [None, 1.0, 2.0]
    assert state.best_s == 2.0, "what a raced program takes is known roughly"


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
