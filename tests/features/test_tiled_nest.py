from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import spearmanr

from costlib.features.loop_nest import loop_nests
from costlib.features.nest_features import nest_features
from costlib.features.tiled_nest import TiledNest
from costlib.features.tiled_programs import COLUMNS
from costlib.hardware import Hardware
from costlib.space.design_space import DesignSpace
from costlib.space.program import Program
from costlib.workloads import extract_tasks

OPERATORS = ("matmul 64 96 128", "conv2d 1 16 28 28 32 3 pad=1")
HARDWARE = Hardware.local().model_copy(
    update={"num_cores": 2, "vector_bits": 256, "cache_bytes": (32768, 1 << 20, 1 << 25)}
)


class Described:
    """Random programs of one sketch of an operator, both ways."""

    def __init__(self, operator: str) -> None:
        task = extract_tasks(operator)[0]
        space = DesignSpace(task)
        nests = {nest.block: nest for nest in loop_nests(task.mod)}
        drawn = [(p, s) for p, s in itertools.islice(space.sample(0), 120) if s is not None]
        sketch_id = max(space.sketches, key=lambda s: len(s.instructions)).sketch_id
        self.programs = [p for p, _ in drawn if p.sketch_id == sketch_id]
        self.schedules = [s for p, s in drawn if p.sketch_id == sketch_id]
        sketch = next(s for s in space.sketches if s.sketch_id == sketch_id)
        self.instructions = sketch.instructions
        self.nest = TiledNest(nests, sketch.instructions, HARDWARE)
        self.columns = self.describe(self.programs)

    def describe(self, programs: list[Program]) -> dict[str, np.ndarray]:
        decided = {
            index: [program.decisions[place][1] for program in programs]
            for place, (index, _) in enumerate(programs[0].decisions)
        }
        rows = self.nest.describe(decided, len(programs))
        return dict(zip(COLUMNS, rows.T, strict=True))


@pytest.fixture(scope="module", params=OPERATORS)
def described(request: pytest.FixtureRequest) -> Described:
    return Described(request.param)


def test_all_is_finite_and_told(described: Described) -> None:
    assert len(described.programs) > 5
    assert (described.columns["tiled"] == 1).all()
    assert np.isfinite(list(described.columns.values())).all()


def test_it_agrees_with_what_lowering_tells(described: Described) -> None:
    lowered = [nest_features(schedule.mod, HARDWARE) for schedule in described.schedules]
    for mine, theirs, least in (
        ("cycles", "cycles.longest", 0.7),
        ("vector", "vector", 0.95),
        ("level0.registers", "run0.registers", 0.95),
        ("chunks", "parallel.chunks", 0.5),
        ("unroll_steps", "unroll_steps", 0.99),
        ("region0.swept", "region0.swept", 0.8),
        ("region0.registers", "region0.registers", 0.7),
        ("cache0.crowding", "cache1.crowding", 0.4),
    ):
        expected = [columns[theirs] for columns in lowered]
        if len(set(expected)) > 1:
            assert spearmanr(described.columns[mine], expected).statistic > least, mine


def test_sizes_of_the_levels_make_up_the_whole(described: Described) -> None:
    tiles = [
        np.prod([np.prod(value) for _, value in p.decisions if isinstance(value, list)])
        for p in described.programs
    ]
    sizes = [described.columns[f"level{level}.size"] for level in range(6)]
    vector = 2 ** described.columns["vector"] - 1
    product = np.prod([2**size - 1 for size in sizes], axis=0) * vector
    np.testing.assert_allclose(product, tiles, rtol=1e-3)


def test_each_program_is_described_by_itself(described: Described) -> None:
    alone = described.describe(described.programs[3:4])
    for name, values in described.columns.items():
        assert alone[name][0] == values[3]


@settings(max_examples=30, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["GetSBlock", "GetLoops", "Annotate", "Split", "Reorder", "step"]),
            st.lists(st.sampled_from(["b0", "l1", '"SSRSRS"', None])),
            st.sampled_from([[], ["meta_schedule.tiling_structure"], ["matmul", "main"]]),
            st.lists(st.sampled_from(["b0", "l1"])),
        ).map(list)
        | st.text()
        | st.lists(st.integers()),
        max_size=8,
    )
)
def test_other_instructions_are_not_described(instructions: list[Any]) -> None:
    nest = TiledNest({}, instructions, HARDWARE)
    assert not nest.needed
    assert not nest.describe({}, 4).any()
