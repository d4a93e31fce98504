from __future__ import annotations

import itertools

import numpy as np
import pytest

from costlib.hardware import Hardware
from costlib.space.design_space import DesignSpace
from costlib.space.diffusion import RULES, Rule, diffuse
from costlib.space.program import Program
from costlib.space.vectors import DecisionVectors
from costlib.workloads import extract_tasks


def space_of(source: str, hardware: Hardware) -> DesignSpace:
    return DesignSpace(extract_tasks(source, hardware)[0])


def programs_of(space: DesignSpace, count: int) -> list[Program]:
    drawn = (program for program, schedule in space.sample(0) if schedule is not None)
    chosen = (p for p in drawn if p.sketch_id == space.sketches[0].sketch_id)
    return list(itertools.islice(chosen, count))


@pytest.fixture(scope="module")
def small(hardware: Hardware) -> DesignSpace:
    return space_of("matmul 64 64 64", hardware)


@pytest.fixture(scope="module")
def large(hardware: Hardware) -> DesignSpace:
    return space_of("matmul 256 192 64", hardware)


@pytest.fixture(scope="module")
def vectors(large: DesignSpace) -> DecisionVectors:
    return DecisionVectors(large.sketches[0], programs_of(large, 20))


@pytest.mark.parametrize("rule", RULES)
def test_a_diffused_program_is_one_of_the_other_task(
    small: DesignSpace, large: DesignSpace, vectors: DecisionVectors, rule: Rule
) -> None:
    assert small.cluster == large.cluster
    rng = np.random.default_rng(0)
    rows = np.stack([diffuse(p.decisions, vectors, rule, rng) for p in programs_of(small, 20)])
    lowered = [large.lower(program) for program in vectors.decode(rows)]
    assert sum(schedule is not None for schedule in lowered) >= 10


@pytest.mark.parametrize("rule", ["copy", "nearest"])
def test_a_program_of_the_same_task_stays_what_it_is(
    large: DesignSpace, vectors: DecisionVectors, rule: Rule
) -> None:
    for program in programs_of(large, 20):
        row = diffuse(program.decisions, vectors, rule, np.random.default_rng(0))
        assert vectors.decode(row[None]) == [program]


def tile(vectors: DecisionVectors, small: DesignSpace, factors: list[int], rule: Rule) -> list[int]:
    """What becomes of the tiling of the first loop, 64 iterations, where it has 256."""
    program = programs_of(small, 1)[0]
    index, value = program.decisions[0]
    assert len(value) == len(factors)
    decisions = [[index, factors], *program.decisions[1:]]
    row = diffuse(decisions, vectors, rule, np.random.default_rng(0))
    return list(vectors.values[0][row[0]])


def test_nearest_keeps_the_inner_tiles(small: DesignSpace, vectors: DecisionVectors) -> None:
    assert tile(vectors, small, [4, 2, 2, 4], "nearest") == [16, 2, 2, 4]


def test_proportional_scales_all_of_them(small: DesignSpace, vectors: DecisionVectors) -> None:
    # 64 = 2^6 and 256 = 2^8: each exponent grows by a third.
    assert tile(vectors, small, [1, 1, 8, 8], "proportional") == [1, 1, 16, 16]


def test_random_differs_from_one_generator_to_another(
    small: DesignSpace, vectors: DecisionVectors
) -> None:
    program = programs_of(small, 1)[0]
    rows = [
        diffuse(program.decisions, vectors, "random", np.random.default_rng(seed))
        for seed in range(5)
    ]
    assert len(np.unique(np.stack(rows), axis=0)) > 1
