from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from costlib.space.program import Program, Sketch, fill_sketch, split_trace

INSTRUCTIONS = [
    ["GetSBlock", [], ["C", "main"], ["b0"]],
    ["SamplePerfectTile", ["l1"], [2, 64], ["v1", "v2"]],
    ["Annotate", ["b0", 32], ["meta_schedule.parallel"], []],
    ["Annotate", ["b0", 64], ["meta_schedule.vectorize"], []],
    ["SampleCategorical", [], [[0, 16], [0.5, 0.5]], ["v3"]],
]


@given(st.lists(st.integers(1, 64), min_size=2, max_size=2), st.integers(1, 512), st.integers(0, 1))
def test_split_and_fill_are_inverse(tile: list[int], parallel: int, unroll: int) -> None:
    instructions = json.loads(json.dumps(INSTRUCTIONS))
    instructions[2][1][1] = parallel
    decisions = [[1, tile], [4, unroll]]
    sketch, decided = split_trace(instructions, decisions)
    assert decided == [[1, tile], [2, parallel], [4, unroll]]
    assert fill_sketch(sketch, decided) == (instructions, decisions)


@given(st.integers(1, 512))
def test_what_mutations_change_is_not_part_of_the_sketch(parallel: int) -> None:
    instructions = json.loads(json.dumps(INSTRUCTIONS))
    instructions[2][1][1] = parallel
    assert split_trace(instructions, [])[0].sketch_id == split_trace(INSTRUCTIONS, [])[0].sketch_id


def test_other_instructions_are_another_sketch() -> None:
    assert Sketch(INSTRUCTIONS).sketch_id != Sketch(INSTRUCTIONS[:-1]).sketch_id


def test_sketch_survives_json() -> None:
    sketch = Sketch(INSTRUCTIONS)
    assert Sketch.from_json(sketch.to_json()).sketch_id == sketch.sketch_id


def test_program_survives_a_row() -> None:
    program = Program("w", "s", [[1, [2, 32]], [4, 0]])
    again = Program.from_row("w", "s", program.decisions_json())
    assert again == program
    assert again.program_id == program.program_id


def test_decisions_tell_programs_apart() -> None:
    assert Program("w", "s", [[1, 0]]).program_id != Program("w", "s", [[1, 1]]).program_id
