"""Products for tensor cores: they build for a GPU, and as loops compute the right thing on the CPU.

Nothing here executes an instruction of a tensor core. What is run is the same program with the
block that an instruction takes the place of left as it is, by one thread after the other.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cuda_compiler import needs_cuda_compiler

from costlib.errors import TargetError
from costlib.hardware import Hardware
from costlib.measure.jobs import allocate
from costlib.space.design_space import DesignSpace
from costlib.space.kernels import kernels
from costlib.space.program import fill_sketch
from costlib.tvm_compat import tvm
from costlib.tvm_compat.api import argument_shapes, build_library, trace_from_json
from costlib.workloads import Task, extract_tasks
from costlib.workloads.half_precision import TF32

TYPES = ("f16", "bf16", "tf32")
LEFT_OUT = ("RewriteTensorize", "VerifyGPUCode")


def product(dtype: str, arch: str = "sm_80", operator: str = "dense 32 48 64 bias=1") -> Task:
    tasks = extract_tasks(f"{operator}+{dtype}", Hardware.cuda(arch))
    return next(task for task in tasks if "matmul" in task.name or "conv" in task.name)


def unrolled(mod: Any) -> int:
    """Return how much is unrolled, which is what compiling takes long for."""
    return max(map(int, re.findall(r"auto_unroll_max_step\": (\d+)", mod.script())), default=0)


def valid(space: DesignSpace) -> Iterator[tuple[Any, Any]]:
    return ((program, schedule) for program, schedule in space.sample(0) if schedule is not None)


@needs_cuda_compiler
@pytest.mark.parametrize(
    ("dtype", "arch"), [*((dtype, "sm_80") for dtype in TYPES), ("bf16", "sm_90")]
)
def test_they_build(dtype: str, arch: str, tmp_path: Path) -> None:
    task = product(dtype, arch)
    some = [schedule for _, schedule in itertools.islice(valid(DesignSpace(task)), 12)]
    schedule = min(some, key=lambda one: unrolled(one.mod))
    assert kernels(schedule.mod)[0].on_tensor_cores
    (found,) = build_library(schedule.mod, task.tvm_target(), tmp_path / "a.so")
    assert found.registers > 16


def as_loops(space: DesignSpace, program: Any) -> Any:
    """Replay a program without its instructions, its threads one after the other."""
    (sketch,) = (one for one in space.sketches if one.sketch_id == program.sketch_id)
    schedule = tvm.s_tir.Schedule(space.task.mod, seed=1)
    trace_from_json(*fill_sketch(sketch, program.decisions), schedule)
    schedule.enter_postproc()
    for one in space.context.space_generator.postprocs:
        assert type(one).__name__ in LEFT_OUT or one.apply(schedule)
    text = schedule.mod.script(show_meta=False)
    text = re.sub(r"T\.thread_binding\(([^,]*), thread=\"[^\"]*\"", r"T.serial(\1", text)
    return tvm.script.from_source(re.sub(r", scope=\"[^\"]*\"", "", text))


@pytest.mark.parametrize(
    ("operator", "dtype"),
    [
        *(("matmul 48 16 32", dtype) for dtype in TYPES),
        ("dense 32 48 64 bias=1", "bf16"),
        ("conv2d 1 16 6 6 16 3 pad=1", "f16"),
    ],
)
def test_as_loops_they_compute_what_the_unscheduled_product_does(
    operator: str, dtype: str, tmp_path: Path
) -> None:
    task = product(dtype, operator=operator)
    space = DesignSpace(task)
    here = Hardware.local().tvm_target()
    drawn = valid(space)
    outputs = []
    for name, mod in (
        ("unscheduled", task.mod),
        *(("scheduled", as_loops(space, next(drawn)[0])) for _ in range(2)),
    ):
        path = tmp_path / f"{name}{len(outputs)}.so"
        build_library(mod, here, path, keep_layout=True)
        arguments = allocate(argument_shapes(task.mod), tvm.cpu())
        rng = np.random.default_rng(0)
        for argument in arguments[:-1]:
            values = rng.standard_normal(argument.shape)
            argument.copyfrom(values.astype(argument.numpy().dtype))
        arguments[-1].copyfrom(np.zeros_like(arguments[-1].numpy()))
        tvm.runtime.load_module(str(path))["main"](*arguments)
        outputs.append(arguments[-1].numpy().astype("float64"))
    assert np.abs(outputs[0]).max() > 1
    for output in outputs[1:]:
        np.testing.assert_allclose(output, outputs[0], atol=2e-5 * np.abs(outputs[0]).max())


def test_tf32_only_where_it_is_asked_for() -> None:
    assert TF32 in product("tf32").mod["main"].attrs
    (plain,) = extract_tasks("matmul 64 64 64", Hardware.cuda("sm_80"))
    assert not any("wmma" in str(sketch.instructions) for sketch in DesignSpace(plain).sketches)
    for hardware in (Hardware.local(), Hardware.cuda("sm_75")):
        with pytest.raises(TargetError, match="TF32 is for tensor cores"):
            extract_tasks("matmul 64 64 64+tf32", hardware)
    old = extract_tasks("matmul 64 64 64+bf16", Hardware.cuda("sm_75"))[0]
    assert not any("bf16_a" in str(sketch.instructions) for sketch in DesignSpace(old).sketches)
