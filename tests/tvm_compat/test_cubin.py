"""What compiled kernels take is read from their binary, and vetoed before it runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from cuda_compiler import needs_cuda_compiler

from costlib.hardware import Hardware
from costlib.measure.launch import why_not_run
from costlib.tvm_compat import tvm
from costlib.tvm_compat.cubin import CompiledKernel, compiled_kernels
from costlib.tvm_compat.cuda import find_compiler

TARGET = Hardware.cuda("sm_90").target

SPILLS = """
extern "C" __global__ void __launch_bounds__(64) spills(float* out, int where) {
  float kept[1024];
  for (int i = 0; i < 1024; ++i) kept[i] = out[i] * i;
  out[threadIdx.x] = kept[(where + threadIdx.x) % 1024];
}
extern "C" __global__ void __launch_bounds__(128) shares(float* out) {
  __shared__ float tile[512];
  tile[threadIdx.x] = out[threadIdx.x];
  __syncthreads();
  out[threadIdx.x] = tile[127 - threadIdx.x];
}
"""


def compiled() -> dict[str, CompiledKernel]:
    compiler = find_compiler()
    with tvm.target.Target(TARGET):
        binary = tvm.support.nvcc.compile_cuda(SPILLS, target_format="cubin", compiler=compiler)
    return {kernel.name: kernel for kernel in compiled_kernels(bytes(binary))}


@needs_cuda_compiler
def test_registers_and_memory_of_two_kernels() -> None:
    found = compiled()
    assert found.keys() == {"spills", "shares"}
    assert (found["spills"].threads, found["shares"].threads) == (64, 128)
    assert found["spills"].local_bytes == 4096 and found["shares"].local_bytes == 0
    assert found["shares"].shared_bytes >= 2048
    assert all(0 < kernel.registers < 255 for kernel in found.values())


def kernel(registers: int = 64, local_bytes: int = 0, threads: int = 256) -> CompiledKernel:
    return CompiledKernel(
        name="k",
        registers=registers,
        local_bytes=local_bytes,
        shared_bytes=0,
        threads=threads,
    )


def test_vetoes() -> None:
    assert why_not_run([], TARGET) is None
    assert why_not_run([kernel(), kernel(255, 2040, 256)], TARGET) is None
    line = why_not_run([kernel(), kernel(70, threads=1024)], TARGET)
    assert line == (
        "k cannot be launched: 1024 threads take 73728 registers, and a block may have 65536"
    )
    assert "each thread keeps 4096 bytes in memory" in str(
        why_not_run([kernel(local_bytes=4096)], TARGET)
    )


@pytest.mark.parametrize("damaged", [b"", b"\x7fELF", b"no binary" * 10])
def test_what_is_no_cubin(damaged: bytes, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no cubin"):
        compiled_kernels(damaged)
