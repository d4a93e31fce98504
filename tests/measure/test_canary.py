from __future__ import annotations

from pathlib import Path

import pytest
from cuda_compiler import needs_cuda_compiler
from hypothesis import given
from hypothesis import strategies as st

from costlib.hardware import X86_LEVELS, Hardware, make_target
from costlib.measure.canary import Canary, build_canary
from costlib.measure.canary_kernels import EXTENT
from costlib.measure.correction import DEAD_BAND, corrected_latency, slow_down
from costlib.schema import CanaryTimes

REFERENCE = CanaryTimes(compute_s=1e-3, memory_s=2e-3)
SECONDS = st.floats(1e-6, 1.0)


@given(SECONDS)
def test_the_reference_state_changes_nothing(secs: float) -> None:
    found = corrected_latency([secs], [REFERENCE.compute_s], [REFERENCE.memory_s], REFERENCE)
    assert found == secs


@given(SECONDS, st.floats(1.0, 4.0))
def test_a_slow_state_is_taken_out(secs: float, factor: float) -> None:
    now = (REFERENCE.compute_s * factor, REFERENCE.memory_s)
    found = corrected_latency([secs * factor], [now[0]], [now[1]], REFERENCE)
    assert secs <= found * (1 + 1e-9)
    assert found <= secs * (1 + DEAD_BAND) * (1 + 1e-9)


@given(st.floats(0.1, 1.0), st.floats(0.1, 1.0))
def test_a_state_is_never_faster_than_the_reference(compute: float, memory: float) -> None:
    now = CanaryTimes(compute_s=REFERENCE.compute_s * compute, memory_s=REFERENCE.memory_s * memory)
    assert slow_down(now, REFERENCE) == 1


def test_the_best_repeat_counts() -> None:
    found = corrected_latency([3.0, 1.0, 2.0], [1e-3] * 3, [2e-3] * 3, REFERENCE)
    assert found == 1.0


def test_better_of_takes_each_canary_apart() -> None:
    other = CanaryTimes(compute_s=5e-4, memory_s=5e-3)
    assert REFERENCE.better_of(other) == CanaryTimes(compute_s=5e-4, memory_s=2e-3)


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
