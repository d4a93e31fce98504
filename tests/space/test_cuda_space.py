"""Design spaces, programs and features of CUDA tasks, without a GPU."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

import numpy as np
import pytest

from costlib.features.lowered import STORE_FEATURES, lowered_batch
from costlib.features.task_context import describe_task
from costlib.hardware import Hardware
from costlib.space.design_space import DesignSpace
from costlib.tvm_compat import tvm
from costlib.tvm_compat.api import structural_key
from costlib.workloads import extract_tasks

ARCHS = ("sm_80", "sm_90")
OPERATORS = ("matmul 64 64 64", "conv2d 1 16 14 14 16 3 pad=1", "softmax 64 64")
UNKNOWN = {
    *("hardware.L3", "hardware.last_cache_cores", "hardware.arithmetic", "hardware.bandwidth"),
    "hardware.L2",
}
CASES = list(itertools.product(ARCHS, OPERATORS))


@pytest.fixture(scope="module", params=CASES, ids=str)
def space(request: pytest.FixtureRequest) -> DesignSpace:
    arch, operator = request.param
    return DesignSpace(extract_tasks(operator, Hardware.cuda(arch))[0])


HALVES = """
@I.ir_module
class Module:
    @R.function
    def main(a: R.Tensor((64, 64), "{dtype}"), b: R.Tensor((64, 64), "{dtype}")):
        with R.dataflow():
            c = R.matmul(a, b, out_dtype="float32")
            R.output(c)
        return c
"""


def valid(space: DesignSpace, count: int) -> list[tuple[Any, Any]]:
    drawn = ((p, s) for p, s in itertools.islice(space.sample(0), 400) if s is not None)
    return list(itertools.islice(drawn, count))


def test_programs_replay(space: DesignSpace) -> None:
    assert space.is_tunable
    drawn = valid(space, 3)
    assert len(drawn) == 3
    for program, schedule in drawn:
        again = space.lower(program)
        assert again is not None
        assert structural_key(again.mod) == structural_key(schedule.mod)
        assert "threadIdx.x" in schedule.mod.script()


def test_programs_mutate(space: DesignSpace) -> None:
    program, _ = valid(space, 1)[0]
    mutations = [m for seed in range(60) if (m := space.mutate(program, seed)) is not None]
    assert "parallel" not in {direction for _, direction in mutations}
    assert any(child.program_id != program.program_id for child, _ in mutations)
    assert {child.sketch_id for child, _ in mutations} == {program.sketch_id}


def test_features(space: DesignSpace) -> None:
    schedules = [schedule for _, schedule in valid(space, 2)]
    hardware = Hardware.cuda("sm_90")
    described = describe_task(space.task, hardware)
    batch = lowered_batch(space.context, schedules, described, hardware)
    assert batch.stores.shape[1] == STORE_FEATURES
    assert (np.diff(batch.offsets) > 0).all()
    assert np.isfinite(batch.stores).all()
    known = [name not in UNKNOWN for name in batch.names]
    assert np.isfinite(batch.context[:, known]).all()


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_products_of_halves_use_tensor_cores_and_sum_in_float32(arch: str, dtype: str) -> None:
    script = HALVES.format(dtype=dtype)
    (task,) = extract_tasks(tvm.script.from_source(script), Hardware.cuda(arch))
    space = DesignSpace(task)
    assert space.left is None
    mods = [schedule.mod.script() for _, schedule in valid(space, 3)]
    assert len(mods) == 3
    for text in mods:
        assert ("wmma.accumulator" in text) == (dtype == "float16")
        assert "threadIdx" in text


def test_what_needs_too_many_threads_or_too_much_memory_is_never_built() -> None:
    task = extract_tasks("matmul 256 256 256", Hardware.cuda("sm_80"))[0]
    small = dataclasses.replace(
        task,
        target=task.target | {"max_threads_per_block": 64, "max_shared_memory_per_block": 2048},
    )
    drawn = [schedule for _, schedule in itertools.islice(DesignSpace(task).sample(0), 60)]
    fewer = [schedule for _, schedule in itertools.islice(DesignSpace(small).sample(0), 60)]
    assert 0 < sum(one is not None for one in drawn) < 60
    assert sum(one is not None for one in fewer) < sum(one is not None for one in drawn)
