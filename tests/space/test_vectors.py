from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

from costlib.errors import InputError
from costlib.hardware import Hardware
from costlib.space.design_space import DesignSpace
from costlib.space.program import Program
from costlib.space.vectors import DecisionVectors
from costlib.workloads import Task, extract_tasks


@pytest.fixture(scope="module")
def conv(hardware: Hardware) -> DesignSpace:
    return DesignSpace(extract_tasks("conv2d 1 16 14 14 32 3 pad=1", hardware)[0])


@pytest.fixture(scope="module")
def examples(conv: DesignSpace) -> list[Program]:
    drawn = [program for program, _ in itertools.islice(conv.sample(0), 60)]
    sketch = conv.sketches[0].sketch_id
    return [program for program in drawn if program.sketch_id == sketch]


@pytest.fixture(scope="module")
def vectors(conv: DesignSpace, examples: list[Program]) -> DecisionVectors:
    return DecisionVectors(conv.sketches[0], examples)


def test_encoded_and_decoded(vectors: DecisionVectors, examples: list[Program]) -> None:
    encoded = vectors.encode(examples)
    assert encoded.shape == (len(examples), len(vectors.values))
    assert (encoded >= 0).all()
    assert vectors.decode(encoded) == examples


def test_random_vectors_are_programs(conv: DesignSpace, vectors: DecisionVectors) -> None:
    drawn = vectors.random(40, np.random.default_rng(0))
    programs = vectors.decode(drawn)
    assert (vectors.encode(programs) == drawn).all()
    lowered = [program for program in programs if conv.lower(program) is not None]
    assert len(lowered) >= len(programs) / 2


def test_a_mutation_keeps_to_its_direction(
    conv: DesignSpace, vectors: DecisionVectors, examples: list[Program]
) -> None:
    encoded = np.repeat(vectors.encode(examples), 5, axis=0)
    rng = np.random.default_rng(0)
    for direction in conv.directions(examples[0]):
        changed = vectors.mutate(encoded, [direction] * len(encoded), rng)
        places = np.array([name == direction for name in vectors.directions])
        assert (changed[:, ~places] == encoded[:, ~places]).all()
        assert ((changed != encoded).sum(1) <= 1).all()
        if (vectors.sizes[places] > 1).any():
            assert (changed != encoded).any()


def test_an_unknown_direction_changes_nothing(
    vectors: DecisionVectors, examples: list[Program]
) -> None:
    encoded = vectors.encode(examples)
    same = vectors.mutate(encoded, ["sideways"] * len(encoded), np.random.default_rng(0))
    np.testing.assert_array_equal(same, encoded)


def test_a_child_takes_each_decision_from_a_parent(vectors: DecisionVectors) -> None:
    rng = np.random.default_rng(0)
    one, other = vectors.random(50, rng), vectors.random(50, rng)
    child = vectors.crossover(one, other, rng)
    assert ((child == one) | (child == other)).all()
    assert (child != one).any() and (child != other).any()


def test_niches_tell_kinds_of_programs(vectors: DecisionVectors) -> None:
    drawn = vectors.random(3000, np.random.default_rng(0))
    decided = [program.decisions for program in vectors.decode(drawn)]
    places: dict[str, list[int]] = {}
    for place, name in enumerate(vectors.directions):
        places.setdefault(name, []).append(place)

    def kind(decisions: tuple[tuple[int, Any], ...]) -> tuple[Any, ...]:
        inner = math.prod(decisions[place][1][-1] for place in places["tile_reduction"])
        ones = [decisions[place][1][-1] == 1 for place in places["tile_spatial"]]
        unroll = [decisions[place][1] for place in places["unroll"]]
        return (*ones, *unroll, "one" if inner == 1 else "few" if inner < 16 else "many")

    kinds = list(map(kind, decided))
    numbers = vectors.niches(drawn).tolist()
    pairs = set(zip(numbers, kinds, strict=True))
    assert len(pairs) == len(set(numbers)) == len(set(kinds)) > 60


def test_the_same_seed_does_the_same(vectors: DecisionVectors) -> None:
    runs = []
    for _ in range(2):
        rng = np.random.default_rng(3)
        drawn = vectors.random(20, rng)
        runs.append(vectors.mutate(drawn, ["tile_spatial", "unroll"] * 10, rng))
    np.testing.assert_array_equal(*runs)


def test_no_examples(matmul: Task) -> None:
    with pytest.raises(InputError, match="no example"):
        DecisionVectors(DesignSpace(matmul).sketches[0], [])
