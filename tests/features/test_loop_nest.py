from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from costlib.features.loop_nest import loop_nests
from costlib.features.nest import PARALLEL, VECTORIZED, LoopNest, crowding, vector_registers
from costlib.features.nest_features import _Nest, describe_nests, nest_features
from costlib.hardware import Hardware, find_hardware
from costlib.space.design_space import DesignSpace
from costlib.tvm_compat import tvm
from costlib.tvm_compat.api import module_to_json
from costlib.workloads import extract_tasks

OPERATORS = ("matmul 64 96 128", "conv2d 1 16 14 14 16 3 pad=1", "softmax 64 64")


@pytest.fixture(scope="module", params=OPERATORS)
def space(request: pytest.FixtureRequest) -> DesignSpace:
    return DesignSpace(extract_tasks(request.param)[0])


def schedules(space: DesignSpace, count: int) -> list[object]:
    drawn = (schedule for _, schedule in itertools.islice(space.sample(0), 100))
    return list(itertools.islice((s for s in drawn if s is not None), count))


def tiled_matmul() -> LoopNest:
    """64 x 96 x 128, rows in parallel chunks of 4, columns in vectors of 16."""
    mod = extract_tasks("matmul 64 96 128")[0].mod
    schedule = tvm.s_tir.Schedule(mod)
    block = next(b for b in schedule.get_child_blocks(schedule.get_sblock("root")))
    i, j, k = schedule.get_loops(block)[-3:]
    i0, i1 = schedule.split(i, [None, 4])
    j0, j1 = schedule.split(j, [None, 16])
    schedule.reorder(i0, j0, k, i1, j1)
    schedule.parallel(i0)
    schedule.vectorize(j1)
    schedule.decompose_reduction(block, k)
    return loop_nests(schedule.mod)[-1]


def test_a_tiled_matmul() -> None:
    nest = tiled_matmul()
    assert nest.extents.tolist() == [16, 6, 128, 4, 16]
    assert nest.kinds[0] == PARALLEL
    assert nest.kinds[-1] == VECTORIZED
    assert nest.arithmetic == 2
    assert nest.store.strides[2] == 0
    assert nest.store.strides[-1] == 1
    assert nest.store.elements.tolist()[-4:] == [64, 64, 16, 1]
    assert nest.store.lines.tolist()[-4:] == [4, 4, 1, 1]
    first, second = nest.loads[1:]
    assert first.strides[-2:].tolist() == [128, 0]
    assert second.strides[-2:].tolist() == [0, 1]
    assert first.elements[2] == 4 * 128
    assert second.elements[1] == 128 * 96
    assert second.elements[0] == second.elements[1]


def test_what_is_left_once_all_inside_is_unrolled_is_vectorized() -> None:
    mod = extract_tasks("matmul 64 96 128")[0].mod
    schedule = tvm.s_tir.Schedule(mod)
    block = next(b for b in schedule.get_child_blocks(schedule.get_sblock("root")))
    i, j, k = schedule.get_loops(block)[-3:]
    i0, i1 = schedule.split(i, [None, 4])
    k0, k1 = schedule.split(k, [None, 4])
    schedule.reorder(i0, k0, j, k1, i1)
    schedule.parallel(i0)
    schedule.decompose_reduction(block, k0)
    nest = loop_nests(schedule.mod)[-1]
    assert nest.extents.tolist() == [16, 32, 96, 4, 4]
    hardware = Hardware.local().model_copy(update={"vector_bits": 256})
    swept = {
        steps: _Nest(replace(nest, unroll_steps=steps), hardware).describe()["region0.swept"]
        for steps in (1, 4, 16, 2048)
    }
    assert swept[16] == pytest.approx(np.log2(1 + 8))
    assert swept[1] == swept[4] == swept[2048] == 1


@pytest.mark.parametrize(("columns", "crowded"), [(1024, True), (1040, False)])
def test_rows_a_power_of_two_apart_crowd_a_cache(columns: int, crowded: bool) -> None:
    lines, steps, extents = np.array([[64.0, 1, 1]]), np.array([[columns, 1]]), np.array([[64, 1]])
    in_a_set = crowding(lines, 4 * steps, extents, 4096)
    assert in_a_set.tolist() == [[64 if crowded else 1, 1, 1]]


def test_an_accumulator_that_seems_smaller_than_what_is_stored() -> None:
    nest = tiled_matmul()
    store = nest.store
    small = replace(store, elements=np.ones_like(store.elements))
    columns = _Nest(replace(nest, loads=(small,)), Hardware.local()).describe()
    assert np.isfinite(list(columns.values())).all()


def test_deeper_loops_touch_less(space: DesignSpace) -> None:
    for schedule in schedules(space, 6):
        for nest in loop_nests(schedule.mod):  # type: ignore[attr-defined]
            most = np.append(np.cumprod(nest.extents[::-1])[::-1], 1)
            for access in nest.accesses:
                assert (np.diff(access.elements) <= 0).all()
                assert (access.elements <= most).all()
                assert (access.lines <= access.elements).all()
                assert access.elements[-1] == access.lines[-1] == 1


def test_all_programs_have_the_same_columns(space: DesignSpace) -> None:
    hardware = Hardware.local()
    found = [nest_features(s.mod, hardware) for s in schedules(space, 6)]  # type: ignore[attr-defined]
    assert len({tuple(columns) for columns in found}) == 1
    assert np.isfinite([list(columns.values()) for columns in found]).all()
    expected = extract_tasks(OPERATORS[0])[0].mod
    assert tuple(nest_features(expected, hardware)) == tuple(found[0])


def test_describing_changes_nothing(space: DesignSpace) -> None:
    schedule = schedules(space, 1)[0]
    before = module_to_json(schedule.mod)  # type: ignore[attr-defined]
    rows = describe_nests([schedule.mod] * 2, Hardware.local())  # type: ignore[attr-defined]
    np.testing.assert_array_equal(rows[0], rows[1])
    assert module_to_json(schedule.mod) == before  # type: ignore[attr-defined]


@settings(max_examples=20, deadline=None)
@given(
    rows=st.integers(2, 40),
    columns=st.integers(2, 40),
    step=st.integers(1, 3),
    cores=st.integers(1, 8),
)
def test_an_elementwise_nest(rows: int, columns: int, step: int, cores: int) -> None:
    te = tvm.te
    source = te.placeholder((rows * step, columns), name="A")
    result = te.compute((rows, columns), lambda i, j: source[i * step, j] * 2.0 + 1.0, name="B")
    mod = tvm.IRModule({"main": te.create_prim_func([source, result])})
    (nest,) = loop_nests(mod)
    assert nest.extents.tolist() == [rows, columns]
    assert nest.arithmetic == 2
    (load,) = nest.loads
    assert load.strides.tolist() == [columns * step, 1]
    assert nest.store.elements.tolist() == [rows * columns, columns, 1]
    hardware = Hardware.local().model_copy(update={"num_cores": cores})
    described = nest_features(mod, hardware)
    assert described["iterations"] == pytest.approx(np.log2(1 + rows * columns))
    assert described["parallel.cores_idle"] == cores


def test_what_spills_on_sixteen_registers_stays_in_neons() -> None:
    """Tiles of 20 vectors of sums, on processors that differ in nothing else."""
    neon = find_hardware("aarch64", num_cores=1)
    x86 = neon.model_copy(update={"target": {"kind": "llvm", "mcpu": "x86-64", "num-cores": 1}})
    assert (vector_registers(neon), vector_registers(x86)) == (32, 16)
    task = extract_tasks("matmul 40 64 16", neon)[0]
    drawn = itertools.islice(DesignSpace(task).sample(0), 60)
    mods = [schedule.mod for _, schedule in drawn if schedule is not None]
    here, there = (
        [nest_features(mod, hardware)["region1.moved_per_operation"] for mod in mods]
        for hardware in (neon, x86)
    )
    assert all(a <= b for a, b in zip(here, there, strict=True))
    assert any(a < b for a, b in zip(here, there, strict=True))
