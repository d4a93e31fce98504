from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from costlib.data.dataset import Dataset
from costlib.features.columns import TASK
from costlib.features.schedule import (
    CONTEXT_FEATURES,
    TOKEN_FEATURES,
    ScheduleEncoder,
    schedule_batch,
)
from costlib.logs.importers.steps import erase_steps
from costlib.training.batches import assemble

INSTRUCTIONS = [
    ["GetSBlock", [], ["matmul", "main"], ["b0"]],
    ["SamplePerfectTile", ["l1"], [4, 64], ["v1", "v2", "v3", "v4"]],
    ["SampleCategorical", [], [[0, 16, 64, 512], [0.25] * 4], ["v5"]],
    ["SampleComputeLocation", ["b0"], [], ["l9"]],
]
SHAPES = [(64, 32), (32, 16), (64, 16)]


def encoder() -> ScheduleEncoder:
    return ScheduleEncoder(INSTRUCTIONS, "matmul_add", SHAPES)


def program(tiles: list[int], choice: int = 0, location: int = -1) -> list[list[object]]:
    return [[1, tiles], [2, choice], [3, location]]


def test_a_token_for_each_decision() -> None:
    tokens = encoder().tokens([program([1, 2, 4, 8]), program([8, 4, 2, 1], 3)])
    assert tokens.shape == (2, 3, TOKEN_FEATURES)
    assert tokens.dtype == np.float32
    assert encoder().context({}, 3).shape == (3, CONTEXT_FEATURES)
    assert np.isfinite(tokens).all()


def test_every_decision_shows() -> None:
    base = encoder().tokens([program([1, 2, 4, 8])])
    for other in (
        program([2, 1, 4, 8]),
        program([1, 2, 8, 4]),
        program([1, 2, 4, 8], 1),
        program([1, 2, 4, 8], 0, 2),
    ):
        assert not np.array_equal(encoder().tokens([other]), base)


def test_a_category_stands_for_what_it_chooses() -> None:
    tokens = encoder().tokens([program([1, 1, 1, 1], choice) for choice in range(4)])
    values = tokens[:, 1].max(1)
    assert (np.diff(values) > 0).all()
    assert values[3] == pytest.approx(9, abs=0.1)


@given(st.lists(st.lists(st.integers(1, 64), min_size=4, max_size=4), min_size=1, max_size=9))
def test_programs_are_encoded_alike_alone_and_together(tiles: list[list[int]]) -> None:
    programs = [program(tile) for tile in tiles]
    together = encoder().tokens(programs)
    for row, one in zip(together, programs, strict=True):
        np.testing.assert_array_equal(encoder().tokens([one])[0], row)


def test_the_steps_of_ansor() -> None:
    steps = [["SP", 2, 0, 512, [8, 4, 16], 1], ["PR", 2, 0, "auto_unroll_max_step$64"]]
    sketch, decisions = erase_steps(steps)
    tokens = ScheduleEncoder(sketch.instructions, "matmul", SHAPES).tokens([decisions])
    assert tokens.shape == (1, 2, TOKEN_FEATURES)
    assert np.isfinite(tokens).all()


def test_programs_of_several_sketches() -> None:
    short = ScheduleEncoder(INSTRUCTIONS[:2], "matmul_add", SHAPES)
    decisions = [program([1, 2, 4, 8]), program([1, 2, 4, 8])[:1], program([2, 2, 2, 8])]
    batch = schedule_batch(
        {"a": encoder(), "b": short}, ["a", "b", "a"], decisions, np.ones(len(TASK), "float32")
    )
    assert batch.offsets.tolist() == [0, 3, 4, 7]
    assert len(batch.names) == batch.context.shape[1]
    assert batch.context.shape == (3, len(TASK) + CONTEXT_FEATURES)
    np.testing.assert_array_equal(batch.stores[3:4], short.tokens([decisions[1]])[0])


def test_no_decision_is_one_empty_token() -> None:
    batch = schedule_batch({"a": encoder()}, ["a"], [[]], np.zeros(len(TASK), "float32"))
    assert batch.stores.shape == (1, TOKEN_FEATURES)
    assert not batch.stores.any()


def test_a_dataset_in_both_views(measured_dataset: Dataset) -> None:
    statements = assemble(measured_dataset)
    schedules = assemble(measured_dataset, view="schedule")
    assert schedules.tasks == statements.tasks
    np.testing.assert_array_equal(schedules.latency_s, statements.latency_s)
    row = measured_dataset.scan().filter(status="ok").sort("workload_id", "program_id").collect()
    assert len(schedules.batch) == len(row)
    first = json.loads(row["decisions"][0])
    assert schedules.batch.offsets[1] == len(first)
