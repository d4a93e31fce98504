from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from costlib.errors import InputError
from costlib.generator.language import (
    QUALITIES,
    VOCABULARY,
    Grammar,
    prompt,
    quality_of,
    token,
)
from costlib.hardware import Hardware
from costlib.space.design_space import DesignSpace
from costlib.space.program import Program, Sketch
from costlib.space.vectors import DecisionVectors
from costlib.workloads import Task


def vectors_of(extents: list[int], levels: list[int], limit: int, choices: int) -> DecisionVectors:
    """A sketch with a tiled loop for each extent and one category."""
    instructions: list[list[object]] = [
        ["SamplePerfectTile", [f"l{i}"], [level, limit], [f"v{i}"]]
        for i, level in enumerate(levels)
    ]
    instructions.append(["SampleCategorical", [], [list(range(choices)), [1.0] * choices], ["c"]])
    decisions: list[list[object]] = [
        [i, [extent, *[1] * (level - 1)]]
        for i, (extent, level) in enumerate(zip(extents, levels, strict=True))
    ]
    decisions.append([len(extents), 0])
    sketch = Sketch(instructions)
    return DecisionVectors(sketch, [Program("w", sketch.sketch_id, decisions)])


SKETCHES = st.integers(1, 3).flatmap(
    lambda loops: st.builds(
        vectors_of,
        st.lists(st.integers(1, 2100), min_size=loops, max_size=loops),
        st.lists(st.integers(2, 4), min_size=loops, max_size=loops),
        st.sampled_from([-1, 4, 64]),
        st.integers(1, 6),
    )
)


@settings(max_examples=60, deadline=None)
@given(SKETCHES, st.integers(0, 2**32 - 1))
def test_written_and_read_without_loss(vectors: DecisionVectors, seed: int) -> None:
    grammar = Grammar(vectors)
    rows = vectors.random(20, np.random.default_rng(seed))
    tokens = grammar.encode(rows)
    assert ((tokens > 0) & (tokens < VOCABULARY)).all()
    np.testing.assert_array_equal(grammar.decode(tokens), rows)


@settings(max_examples=60, deadline=None)
@given(SKETCHES, st.integers(0, 2**32 - 1))
def test_whatever_is_allowed_is_a_program(vectors: DecisionVectors, seed: int) -> None:
    grammar = Grammar(vectors)
    rng = np.random.default_rng(seed)
    tokens = np.zeros((10, 0), "int64")
    for position, entry in enumerate(grammar.layout):
        if isinstance(entry, int):
            column = np.full(len(tokens), entry)
        else:
            mask = grammar.allowed(position, tokens)
            assert mask.any(1).all()
            column = np.array([rng.choice(np.flatnonzero(row)) for row in mask])
        tokens = np.hstack([tokens, column[:, None]])
    rows = grammar.decode(tokens)
    assert ((rows >= 0) & (rows < vectors.sizes)).all()
    np.testing.assert_array_equal(grammar.encode(rows), tokens)


@settings(max_examples=30, deadline=None)
@given(SKETCHES, st.integers(0, 2**32 - 1))
def test_every_program_is_allowed(vectors: DecisionVectors, seed: int) -> None:
    grammar = Grammar(vectors)
    tokens = grammar.encode(vectors.random(20, np.random.default_rng(seed)))
    for position, entry in enumerate(grammar.layout):
        if not isinstance(entry, int):
            mask = grammar.allowed(position, tokens[:, :position])
            assert mask[np.arange(len(tokens)), tokens[:, position]].all()


def test_real_programs(matmul: Task, hardware: Hardware) -> None:
    space = DesignSpace(matmul)
    drawn = [program for program, _ in itertools.islice(space.sample(0), 40)]
    for sketch in space.sketches:
        programs = [program for program in drawn if program.sketch_id == sketch.sketch_id]
        vectors = DecisionVectors(sketch, programs)
        grammar = Grammar(vectors)
        tokens = grammar.encode(vectors.encode(programs))
        assert vectors.decode(grammar.decode(tokens)) == programs
        header = prompt(matmul.name, matmul.flops, hardware, sketch, 1.0)
        assert all(0 < number < VOCABULARY for number in header)
        assert len(header) < 60


def test_a_compute_location_is_written_as_itself() -> None:
    """Whatever other locations were seen beside it."""
    instructions: list[list[object]] = [["SampleComputeLocation", ["b0"], [], ["v0"]]]
    sketch = Sketch(instructions)
    written = []
    for seen in ([-2, 3, 5], [-1, 3], [12, 3, 4]):
        programs = [Program("w", sketch.sketch_id, [[0, place]]) for place in seen]
        vectors = DecisionVectors(sketch, programs)
        grammar = Grammar(vectors)
        tokens = grammar.encode(vectors.encode(programs))
        assert vectors.decode(grammar.decode(tokens)) == programs
        assert grammar.allowed(len(grammar.layout) - 1, tokens[:, :-1])[0].sum() == len(seen)
        written.append(tokens[seen.index(3), -1])
    assert len(set(written)) == 1
    far = DecisionVectors(sketch, [Program("w", sketch.sketch_id, [[0, 500]])])
    with pytest.raises(InputError, match="cannot be written down"):
        Grammar(far)


def test_all_that_is_given_comes_before_what_is_chosen() -> None:
    grammar = Grammar(vectors_of([6, 10], [2, 2], -1, 3))
    spelled = [token("prime", 0), token("prime", 1), token("prime", 2)]
    first_choice = next(i for i, entry in enumerate(grammar.layout) if not isinstance(entry, int))
    places = [i for i, entry in enumerate(grammar.layout) if entry in spelled]
    assert len(places) == 4 and max(places) < first_choice


def test_quality() -> None:
    assert quality_of(1.0) == token("quality", QUALITIES - 1)
    assert quality_of(0.01) == token("quality", 0)
    assert quality_of(0.5) < quality_of(0.9)


@pytest.mark.parametrize("sort", ["number", "exponent", "index"])
def test_numbers_beyond_the_last_are_the_last(sort: str) -> None:
    assert token(sort, 10**6) < VOCABULARY
