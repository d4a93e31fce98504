from __future__ import annotations

import math

import numpy as np
import pytest

from costlib.canary_times import CanaryTimes
from costlib.features.columns import TASK
from costlib.features.lowered import lowered_context
from costlib.features.task_context import describe_task
from costlib.hardware import Hardware
from costlib.measure.canary_kernels import CPU_MEMORY_BYTES
from costlib.workloads import Task

AVX2 = Hardware(
    kind="cpu",
    model="made up",
    num_cores=2,
    target={"kind": "llvm", "mcpu": "x86-64-v3", "num-cores": 2, "mattr": ["+avxvnni"]},
    vector_bits=256,
    cache_bytes=(1 << 15, 1 << 20),
    last_cache_cores=8,
)


def told(task: Task, hardware: Hardware, canary: CanaryTimes | None = None) -> dict[str, float]:
    return dict(zip(TASK, describe_task(task, hardware, canary).tolist(), strict=True))


def test_what_is_told_of_a_processor(matmul: Task) -> None:
    found = told(matmul, AVX2, CanaryTimes(compute_s=1e-3, memory_s=2e-3))
    assert (found["hardware.cores"], found["hardware.vector"]) == (2, 8)
    has = ("avx2", "fma", "avxvnni")
    lacks = ("avx512f", "avx512vnni", "avx512bf16", "avx512fp16", "amx-int8", "neon", "sve_bits")
    assert [found[f"hardware.{name}"] for name in (*has, *lacks)] == [1] * 3 + [0] * 7
    assert [found[f"hardware.{name}"] for name in ("L1", "L2")] == [15, 20]
    assert found["hardware.last_cache"] == 20
    assert math.isnan(found["hardware.L3"])
    assert found["hardware.last_cache_cores"] == 3
    assert found["hardware.bandwidth"] == pytest.approx(math.log2(CPU_MEMORY_BYTES / 2e-3))
    slower = told(matmul, AVX2, CanaryTimes(compute_s=2e-3, memory_s=2e-3))
    assert slower["hardware.arithmetic"] == pytest.approx(found["hardware.arithmetic"] - 1)


def test_what_is_unknown(matmul: Task) -> None:
    unknown = AVX2.model_copy(
        update={"cache_bytes": (), "last_cache_cores": 0, "target": {"kind": "llvm", "mcpu": "z9"}}
    )
    found = told(matmul, unknown)
    names = ("avx2", "sve_bits", "L1", "L2", "L3", "last_cache_cores", "arithmetic", "bandwidth")
    assert all(math.isnan(found[f"hardware.{name}"]) for name in names)
    assert found["hardware.last_cache"] == 0


def test_what_is_told_of_a_board(matmul: Task) -> None:
    plain, wide = (told(matmul, Hardware.aarch64(has)) for has in (["dotprod"], ["sve"]))
    assert (plain["hardware.neon"], plain["hardware.dotprod"], plain["hardware.sve"]) == (1, 1, 0)
    assert plain["hardware.sve_bits"] == 0
    assert wide["hardware.sve"] == 1
    assert math.isnan(wide["hardware.sve_bits"])


@pytest.mark.parametrize("num_cores", [1, 132, 5000])
def test_what_is_told_of_a_gpu(matmul: Task, num_cores: int) -> None:
    gpu = Hardware.cuda("sm_90", num_cores=num_cores, l2_bytes=60 << 20)
    found = told(matmul, gpu, CanaryTimes(compute_s=1e-3, memory_s=1e-3))
    assert found.pop("hardware.cores") == num_cores
    nothing = {"hardware.L3", "hardware.last_cache_cores"}
    assert {name for name, value in found.items() if math.isnan(value)} == nothing
    assert found["hardware.avx2"] == 0


def test_this_machine_is_known(matmul: Task, hardware: Hardware) -> None:
    found = told(matmul, hardware, CanaryTimes(compute_s=1e-3, memory_s=1e-3))
    assert found["hardware.avx512f"] == (hardware.vector_bits == 512)
    assert all(math.isfinite(found[f"hardware.{name}"]) for name in ("arithmetic", "bandwidth"))


def test_context_tells_hardware_apart(matmul: Task) -> None:
    nests = np.ones((2, 5), "float32")
    context = lowered_context(describe_task(matmul, AVX2), nests)
    assert context.shape == (2, len(TASK) + 5)
    more = AVX2.model_copy(update={"num_cores": 3})
    other = lowered_context(describe_task(matmul, more), nests)
    assert ((other != context) & ~np.isnan(context)).any()
