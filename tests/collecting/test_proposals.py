from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import pytest

from costlib.collecting.evolved import evolve
from costlib.collecting.plan import Mix
from costlib.collecting.proposals import Draw, Proposer
from costlib.collecting.task_state import TaskState
from costlib.errors import InputError
from costlib.hardware import Hardware
from costlib.hub import Bundle
from costlib.measure.measurement import Candidate
from costlib.schema import Origin
from costlib.workloads import Task

MIX = Mix(evolved=0, mutated=0.5)


def draw(
    state: TaskState, wanted: int, mix: Mix = MIX, bundle: Bundle | None = None, seed: int = 0
) -> list[Draw]:
    return Proposer(mix, Hardware.local(), bundle, seed).draw(state, wanted)


@pytest.fixture
def state(matmul: Task) -> TaskState:
    return TaskState(matmul)


def measure(state: TaskState, draws: Sequence[Draw]) -> None:
    """Pretend that each program takes a time that depends on it alone."""
    for one in draws:
        program = one.candidate.program
        latency_s = 1e-3 + int(program.program_id[:4], 16) * 1e-9
        state.history.add(program, latency_s, one.origin)


def test_the_first_batch_changes_nothing(state: TaskState) -> None:
    assert [one.origin for one in draw(state, 8)] == 8 * [Origin.RANDOM]


def test_the_shares_are_kept(state: TaskState, bundle: Bundle) -> None:
    mix = Mix(evolved=0.25, mutated=0.5)
    for _ in range(5):
        measure(state, draw(state, 8, mix, bundle))
    made = state.history.origins
    assert sum(made.values()) == len(state.history.measured) == 40
    assert 6 <= made[Origin.EVOLVED] <= 14
    assert 14 <= made[Origin.MUTATION] <= 26


def test_the_same_seed_draws_the_same(matmul: Task) -> None:
    programs = []
    for seed in (1, 1, 2):
        state = TaskState(matmul)
        for _ in range(3):
            draws = draw(state, 6, seed=seed)
            measure(state, draws)
        programs.append([one.candidate.program.program_id for one in draws])
    assert programs[0] == programs[1] != programs[2]


def test_children_follow_their_parent_in_every_direction(state: TaskState) -> None:
    measure(state, draw(state, 8))
    draws = draw(state, 16, Mix(evolved=0, mutated=1))
    parent = draws[0].candidate.program
    children = [one for one in draws if one.parent_id == parent.program_id]
    directions = [one.direction for one in children]
    assert draws[1 : len(children) + 1] == children
    assert len(set(directions)) == len(directions)
    assert set(directions) <= set(state.space.directions(parent))
    assert len(directions) >= 3


def test_evolved_programs_are_what_the_search_proposes(
    state: TaskState, bundle: Bundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    measure(state, draw(state, 8))
    told: list[tuple[set[str], float | None, int]] = []
    proposed: list[str] = []

    def noted(*arguments: Any) -> list[Candidate]:
        *_, known, count, _, _ = arguments
        told.append((set(known.measured), known.best_s, count))
        found = evolve(*arguments)
        proposed.extend(one.program.program_id for one in found)
        return found

    monkeypatch.setattr("costlib.collecting.proposals.evolve", noted)
    draws = draw(state, 8, Mix(evolved=0.25, mutated=0), bundle, seed=5)
    assert [one.candidate.program.program_id for one in draws[:4]] == proposed
    assert [one.origin for one in draws] == 4 * [Origin.EVOLVED] + 4 * [Origin.RANDOM]
    assert told == [(state.history.measured, state.best_s, 4)]


@pytest.mark.parametrize("mix", [Mix(evolved=0.5), Mix(generated=0.5), Mix(uncertain=0.5)])
def test_shares_that_take_a_bundle_are_not_made_at_random_without_one(mix: Mix) -> None:
    with pytest.raises(InputError, match="take a bundle"):
        Proposer(mix, Hardware.local())


def test_what_a_raced_program_takes_is_known_roughly(state: TaskState) -> None:
    for number, (program, _) in enumerate(itertools.islice(state.space.sample(0), 3)):
        latency_s = (None, 1.0, 2.0)[number]
        state.history.add(program, latency_s, Origin.RANDOM, raced=number == 1)
    assert state.best_s == 2.0


def test_nothing_is_drawn_twice(state: TaskState) -> None:
    for _ in range(4):
        draws = draw(state, 16)
        ids = [one.candidate.program.program_id for one in draws]
        assert len(set(ids)) == len(ids)
        assert not set(ids) & state.history.measured
        measure(state, draws)
