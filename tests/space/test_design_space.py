from __future__ import annotations

import itertools

import pytest

from costlib.hardware import Hardware
from costlib.space.design_space import DesignSpace
from costlib.space.program import Program, Sketch
from costlib.tvm_compat.api import structural_key
from costlib.workloads import Task, extract_tasks


@pytest.fixture(scope="module")
def space(matmul: Task) -> DesignSpace:
    return DesignSpace(matmul)


def draw(space: DesignSpace, count: int, seed: int = 0) -> list[tuple[Program, object]]:
    return list(itertools.islice(space.sample(seed), count))


def test_look_alikes_share_their_sketches(space: DesignSpace, hardware: Hardware) -> None:
    other = DesignSpace(extract_tasks("matmul 128 32 64", hardware)[0])
    ids = [sketch.sketch_id for sketch in space.sketches]
    assert ids == [sketch.sketch_id for sketch in other.sketches]
    assert len(set(ids)) == len(ids) > 1


def test_sketches_do_not_depend_on_the_number_of_cores(space: DesignSpace) -> None:
    single = extract_tasks("matmul 64 64 64", Hardware.local(num_cores=1))[0]
    ids = {sketch.sketch_id for sketch in DesignSpace(single).sketches}
    assert ids == {sketch.sketch_id for sketch in space.sketches}


def test_the_same_seed_draws_the_same_programs(space: DesignSpace) -> None:
    first = [program.program_id for program, _ in draw(space, 6)]
    assert first == [program.program_id for program, _ in draw(space, 6)]
    assert first != [program.program_id for program, _ in draw(space, 6, seed=1)]


def test_a_program_replays_to_the_same_code(space: DesignSpace) -> None:
    for program, schedule in draw(space, 8):
        again = space.lower(program)
        assert (again is None) == (schedule is None)
        if schedule is not None:
            assert structural_key(again.mod) == structural_key(schedule.mod)  # type: ignore[attr-defined]


def test_programs_are_lowered_together_as_alone(space: DesignSpace, matmul: Task) -> None:
    drawn = draw(space, 12)
    drawn.insert(5, (Program(space.task.workload_id, "no-such-sketch", []), None))
    together = DesignSpace(matmul, num_threads=4).lower_all([program for program, _ in drawn])
    for (_, alone), schedule in zip(drawn, together, strict=True):
        assert (alone is None) == (schedule is None)
        if schedule is not None:
            assert structural_key(schedule.mod) == structural_key(alone.mod)  # type: ignore[attr-defined]
    assert space.lower_all([]) == []


def test_a_program_of_another_sketch_does_not_apply(space: DesignSpace) -> None:
    assert space.lower(Program(space.task.workload_id, "no-such-sketch", [])) is None


def test_a_sketch_of_another_task_does_not_apply(space: DesignSpace) -> None:
    sketch = Sketch([["GetSBlock", [], ["no_such_block", "main"], ["b0"]]])
    program = Program(space.task.workload_id, sketch.sketch_id, [])
    assert space.lower(program, sketch) is None


def test_mutations_change_decisions_in_their_direction(space: DesignSpace) -> None:
    program = draw(space, 1)[0][0]
    directions = set()
    for seed in range(150):
        mutation = space.mutate(program, seed)
        assert mutation == space.mutate(program, seed)
        if mutation is None:
            continue
        changed, direction = mutation
        directions.add(direction)
        assert changed.sketch_id == program.sketch_id
        assert [d[0] for d in changed.decisions] == [d[0] for d in program.decisions]
    assert {"tile_spatial", "tile_reduction", "unroll", "parallel"} <= directions


def test_a_mutation_in_a_chosen_direction(space: DesignSpace) -> None:
    for program, _ in draw(space, 5):
        assert space.directions(program) == [
            "tile_spatial",
            "tile_reduction",
            "unroll",
            "parallel",
        ]
        for direction in space.directions(program):
            mutation = space.mutate(program, 3, direction)
            if mutation is not None:
                child, found = mutation
                assert found == direction
                assert child.program_id != program.program_id


def test_tunable_or_not(space: DesignSpace) -> None:
    assert space.is_tunable
