from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from costlib.logs.importers.steps import erase_steps, fill_steps

TEXT = st.text("ab$019", max_size=6)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=12,
)


@given(st.lists(st.lists(VALUES, max_size=5), max_size=5))
def test_filling_gives_back_exactly_what_was_erased(steps: list[Any]) -> None:
    sketch, decisions = erase_steps(steps)
    stored = json.loads(json.dumps(decisions))
    assert json.dumps(fill_steps(sketch, stored), sort_keys=True) == json.dumps(
        steps, sort_keys=True
    )


def test_schedules_of_the_same_structure_share_a_sketch() -> None:
    def schedule(tile: int, unroll: int) -> list[Any]:
        return [["SP", 2, 0, 64, [1, tile], 1], ["PR", 2, 0, f"auto_unroll_max_step${unroll}"]]

    first, decisions = erase_steps(schedule(8, 512))
    second, _ = erase_steps(schedule(16, 64))
    assert first.sketch_id == second.sketch_id
    assert decisions == [[0, [2, 0, 64, 1, 8, 1]], [1, [2, 0, 512]]]
    other, _ = erase_steps([["SP", 2, 0, 64, [1, 8, 2], 1]])
    assert other.sketch_id != first.sketch_id
