"""What GPU programs ask of the device is known before they are compiled."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cuda_compiler import needs_cuda_compiler

from costlib.hardware import Hardware
from costlib.space.bindings import read_bindings
from costlib.space.design_space import DesignSpace
from costlib.space.kernels import kernels, why_not_launched
from costlib.space.multiprocessor import Multiprocessor
from costlib.space.program import Program
from costlib.space.vectors import sketch_vectors
from costlib.tvm_compat.api import build_library
from costlib.workloads import Task, extract_tasks

RESERVED_BYTES = 1024


@pytest.fixture(scope="module")
def task() -> Task:
    return extract_tasks("matmul 128 128 128", Hardware.cuda("sm_90"))[0]


@pytest.fixture(scope="module")
def programs(task: Task) -> list[tuple[Program, Any]]:
    drawn = itertools.islice(DesignSpace(task).sample(1), 40)
    return [(program, schedule) for program, schedule in drawn if schedule is not None]


@needs_cuda_compiler
def test_it_is_what_the_compiler_allocates(
    task: Task, programs: list[tuple[Program, Any]], tmp_path: Path
) -> None:
    pipelined = 0
    sketches = {sketch.sketch_id: sketch for sketch in DesignSpace(task).sketches}
    small = sorted(programs, key=lambda pair: kernels(pair[1].mod)[0].local_bytes)[:6]
    for program, schedule in small:
        (expected,) = kernels(schedule.mod)
        (found,) = build_library(schedule.mod, task.tvm_target(), tmp_path / "a.so")
        assert found.threads == expected.threads
        aligned = 256
        assert 0 <= found.shared_bytes - RESERVED_BYTES - expected.shared_bytes < aligned
        assert 16 <= found.registers <= 255
        pipelined += "software_pipeline_stage" in str(sketches[program.sketch_id].instructions)
    assert pipelined, "copies of buffers are counted"


def test_limits(programs: list[tuple[Program, Any]]) -> None:
    mod = programs[0][1].mod
    (kernel,) = kernels(mod)
    fine = {"max_threads_per_block": kernel.threads, "max_shared_memory_per_block": 1 << 20}
    assert why_not_launched(mod, fine | {"registers_per_block": 65536}) is None
    few = fine | {"max_threads_per_block": kernel.threads - 1}
    assert why_not_launched(mod, few) == (
        f"it takes {kernel.threads} threads a block, and may take {kernel.threads - 1}"
    )
    small = fine | {"max_shared_memory_per_block": 16}
    assert "bytes of shared memory a block, and may take 16" in str(why_not_launched(mod, small))
    assert "of local memory a thread" in str(why_not_launched(mod, {"registers_per_block": 0}))


def test_a_program_that_cannot_launch_is_refused_with_the_reason(task: Task) -> None:
    space = DesignSpace(task)
    reasons = {
        reason
        for program in itertools.islice(space.examples(0), 60)
        if (reason := space.refusal(program)) is not None
    }
    assert any("threads a block, and may take 1024" in reason for reason in reasons) or any(
        "bytes of shared memory a block" in reason for reason in reasons
    )
    assert all("\n" not in reason for reason in reasons)


def test_what_a_cpu_sketch_binds() -> None:
    here = extract_tasks("matmul 64 64 64", Hardware.local())[0]
    for sketch in DesignSpace(here).sketches:
        assert not read_bindings(sketch.instructions).binds_any


def test_niches_tell_threads_and_work_apart(task: Task) -> None:
    for vectors in sketch_vectors(DesignSpace(task), 0).values():
        rows = vectors.random(300, np.random.default_rng(0))
        niches = vectors.niches(rows)
        assert 10 < len(np.unique(niches)) < 100
        place = next(i for i, name in enumerate(vectors.directions) if name == "unroll")
        unrolled = rows.copy()
        unrolled[:, place] = 0
        assert (vectors.niches(unrolled) == niches).all(), "unrolling is no niche of a GPU's"


@pytest.mark.parametrize(
    ("threads", "shared_bytes", "registers", "blocks"),
    [(256, 0, 32, 8), (256, 0, 255, 1), (64, 100 << 10, 32, 2), (1024, 0, 65, 0), (32, 0, 16, 32)],
)
def test_blocks_that_run_at_once(
    threads: int, shared_bytes: int, registers: int, blocks: int
) -> None:
    processor = Multiprocessor.of_arch("sm_90")
    assert processor.fitting(threads, shared_bytes, registers) == blocks
