"""The canaries' kernels as TVMScript, and the shapes of their arguments, for CPUs and for GPUs.

Both have a *compute* kernel, products of small matrices that stay in the nearest cache, and a
*memory* kernel, sums over more memory than the caches hold. A CPU's cores and vector lanes become
a GPU's blocks and threads; what each of them does is the same.
"""

from __future__ import annotations

from dataclasses import dataclass

from costlib.canary_times import CanaryTimes

EXTENT = 64
"""Extent of the matrix product: three matrices of 16 KiB."""

_CPU_LANES = 8
"""Elements of an innermost loop; float32, so 256 bits."""

_CPU_PRODUCTS = 64
CPU_MEMORY_BYTES = 32 << 20
"""More than the caches that a virtual machine can count on."""

_GPU_BLOCKS = 512
"""Enough to fill any GPU; not the number of multiprocessors, so that one build fits all."""

_GPU_THREADS = 256
_GPU_PRODUCTS = 16
_GPU_MEMORY_BYTES = 256 << 20


@dataclass(frozen=True)
class CanaryKernels:
    """What to compile, and what to call it with.

    Attributes
    ----------
    compute, memory
        TVMScript source of the two kernels.
    matrices
        Shapes of the arguments of ``compute``: two factors and their product.
    data, sums
        Shapes of the arguments of ``memory``.
    """

    compute: str
    memory: str
    matrices: tuple[tuple[int, ...], ...]
    data: tuple[int, ...]
    sums: tuple[int, ...]


def rates(times: CanaryTimes, num_cores: int | None) -> tuple[float, float]:
    """Return what a machine does: floating-point operations and bytes read, both a second.

    Parameters
    ----------
    times
        What its canaries take.
    num_cores
        Those of the CPU that they were made for; ``None`` for a GPU's.
    """
    if num_cores is None:
        products, nbytes = _GPU_BLOCKS * _GPU_PRODUCTS, _GPU_MEMORY_BYTES
    else:
        products, nbytes = num_cores * _CPU_PRODUCTS, CPU_MEMORY_BYTES
    return 2 * products * EXTENT**3 / times.compute_s, nbytes / times.memory_s


def cpu_kernels(num_cores: int) -> CanaryKernels:
    """Return kernels that keep so many cores busy."""
    columns = EXTENT // _CPU_LANES
    blocked = (num_cores, EXTENT, columns, _CPU_LANES)
    matrices = ((num_cores, EXTENT, EXTENT), blocked, blocked)
    lines = CPU_MEMORY_BYTES // 4 // num_cores // _CPU_LANES
    data, sums = (num_cores, lines, _CPU_LANES), (num_cores, _CPU_LANES)
    compute = f"""
@T.prim_func(s_tir=True)
def compute(
    a: T.Buffer({matrices[0]}, "float32"),
    b: T.Buffer({blocked}, "float32"),
    c: T.Buffer({blocked}, "float32"),
):
    T.func_attr({{"global_symbol": "compute", "tirx.noalias": True}})
    for core in T.parallel({num_cores}):
        for product in range({_CPU_PRODUCTS}):
            for i in range({EXTENT}):
                for k in range({EXTENT}):
                    for j in T.unroll({columns}):
                        for lane in T.vectorized({_CPU_LANES}):
                            c[core, i, j, lane] = (
                                c[core, i, j, lane] + a[core, i, k] * b[core, k, j, lane]
                            )
"""
    memory = f"""
@T.prim_func(s_tir=True)
def memory(data: T.Buffer({data}, "float32"), sums: T.Buffer({sums}, "float32")):
    T.func_attr({{"global_symbol": "memory", "tirx.noalias": True}})
    for core in T.parallel({num_cores}):
        for line in range({lines}):
            for lane in T.vectorized({_CPU_LANES}):
                sums[core, lane] = sums[core, lane] + data[core, line, lane]
"""
    return CanaryKernels(compute, memory, matrices, data, sums)


def gpu_kernels() -> CanaryKernels:
    """Return kernels that keep a whole GPU busy."""
    matrix = (_GPU_BLOCKS, EXTENT, EXTENT)
    rows = _GPU_THREADS // EXTENT
    lines = _GPU_MEMORY_BYTES // 4 // _GPU_BLOCKS // _GPU_THREADS
    data, sums = (_GPU_BLOCKS, lines, _GPU_THREADS), (_GPU_BLOCKS, _GPU_THREADS)
    compute = f"""
@T.prim_func(s_tir=True)
def compute(
    a: T.Buffer({matrix}, "float32"),
    b: T.Buffer({matrix}, "float32"),
    c: T.Buffer({matrix}, "float32"),
):
    T.func_attr({{"global_symbol": "compute", "tirx.noalias": True}})
    for block in T.thread_binding({_GPU_BLOCKS}, thread="blockIdx.x"):
        for row in T.thread_binding({rows}, thread="threadIdx.y"):
            for j in T.thread_binding({EXTENT}, thread="threadIdx.x"):
                for product in range({_GPU_PRODUCTS}):
                    for i in range({EXTENT // rows}):
                        for k in range({EXTENT}):
                            c[block, i * {rows} + row, j] = (
                                c[block, i * {rows} + row, j]
                                + a[block, i * {rows} + row, k] * b[block, k, j]
                            )
"""
    memory = f"""
@T.prim_func(s_tir=True)
def memory(data: T.Buffer({data}, "float32"), sums: T.Buffer({sums}, "float32")):
    T.func_attr({{"global_symbol": "memory", "tirx.noalias": True}})
    for block in T.thread_binding({_GPU_BLOCKS}, thread="blockIdx.x"):
        for lane in T.thread_binding({_GPU_THREADS}, thread="threadIdx.x"):
            for line in range({lines}):
                sums[block, lane] = sums[block, lane] + data[block, line, lane]
"""
    return CanaryKernels(compute, memory, (matrix, matrix, matrix), data, sums)
