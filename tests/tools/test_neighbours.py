"""All programs that are one change away from another."""

from __future__ import annotations

import itertools
from collections import Counter
from math import prod

import pytest

from costlib.space.design_space import DesignSpace
from costlib.space.program import Program
from costlib.space.vectors import sketch_vectors
from costlib.workloads import Task
from tools.benchmarks.neighbours import Change, changes


@pytest.fixture(scope="module")
def space(matmul: Task) -> DesignSpace:
    return DesignSpace(matmul)


@pytest.fixture(scope="module")
def parent(space: DesignSpace) -> Program:
    drawn = itertools.islice(space.sample(seed=3), 20)
    return max(
        (program for program, schedule in drawn if schedule is not None),
        key=lambda program: len(program.decisions),
    )


@pytest.fixture(scope="module")
def found(space: DesignSpace, parent: Program) -> list[Change]:
    return changes(sketch_vectors(space, 0, [parent])[parent.sketch_id], parent)


def test_one_decision_is_changed(found: list[Change], parent: Program) -> None:
    ids = [change.program.program_id for change in found]
    assert len(set(ids)) == len(ids) > 20
    for change in found:
        pairs = zip(parent.decisions, change.program.decisions, strict=True)
        ((before, after),) = [(one, other) for one, other in pairs if one != other]
        assert before[0] == after[0]
        if "to " in change.direction:  # A tile size: its loop stays as long as it was.
            assert prod(before[1]) == prod(after[1])


def test_directions_say_between_which_levels_a_factor_moves(
    found: list[Change], parent: Program
) -> None:
    names = {change.direction for change in found}
    assert "unroll" in names
    assert any(name.startswith("reduction") for name in names)
    decided = dict(map(tuple, parent.decisions))
    for change in found:
        if change.direction.startswith("spatial"):
            ((place, after),) = [d for d in change.program.decisions if decided[d[0]] != d[1]]
            grows = [new > old for old, new in zip(decided[place], after, strict=True)]
            assert change.direction.endswith("inner") == grows[-1]


def test_what_metaschedule_can_draw_is_there(
    space: DesignSpace, parent: Program, found: list[Change]
) -> None:
    """Its tile sizes and unrolling do not depend on the other decisions."""
    known = {change.program.program_id for change in found}
    drawn = [space.mutate(parent, seed, "unroll") for seed in range(10)]
    drawn += [space.mutate(parent, seed, "tile_spatial") for seed in range(40)]
    programs = {one[0].program_id for one in drawn if one is not None} - {parent.program_id}
    assert len(programs) > 10
    assert programs <= known


def test_chances_are_metaschedules(found: list[Change]) -> None:
    by_kind = Counter[str]()
    for change in found:
        by_kind["tiles" if "to " in change.direction else change.direction] += change.chance
    assert by_kind["unroll"] == pytest.approx(0.03)
    assert 0.6 < by_kind["tiles"] <= 0.9 + 1e-9  # Moves that nothing can make are lost.
