from __future__ import annotations

from pathlib import Path

import pytest
from cuda_compiler import needs_cuda_compiler

from costlib.canary_times import CanaryTimes
from costlib.hardware import Hardware, make_target
from costlib.measure.canary import Canary, build_canary
from costlib.measure.canary_kernels import EXTENT
from costlib.processor import X86_LEVELS


def test_better_of_takes_each_canary_apart() -> None:
    one = CanaryTimes(compute_s=1e-3, memory_s=2e-3)
    other = CanaryTimes(compute_s=5e-4, memory_s=5e-3)
    assert one.better_of(other) == CanaryTimes(compute_s=5e-4, memory_s=2e-3)


def test_kernels_compute_what_they_should(hardware: Hardware, tmp_path: Path) -> None:
    target = hardware.tvm_target()
    build_canary(tmp_path / "canary.so", target, hardware.num_cores)
    canary = Canary(tmp_path / "canary.so", target, hardware.num_cores)
    canary.start_device()
    times = canary.measure()
    assert times.compute_s > 0
    sums = canary._sums.numpy()
    assert sums.min() == pytest.approx(sums.max())
    assert sums.min() > 0
    product = canary._matrices[2].numpy()
    assert (product > EXTENT * 0.01 * 0.01).all()


@pytest.mark.parametrize("mcpu", X86_LEVELS)
def test_kernels_compile_for_every_vector_width(mcpu: str, tmp_path: Path) -> None:
    build_canary(tmp_path / "canary.so", make_target({"kind": "llvm", "mcpu": mcpu}), 2)
    assert (tmp_path / "canary.so").exists()


@needs_cuda_compiler
def test_kernels_compile_for_a_gpu(tmp_path: Path) -> None:
    build_canary(tmp_path / "canary.so", Hardware.cuda("sm_80").tvm_target(), 1)
    assert (tmp_path / "canary.so").exists()
