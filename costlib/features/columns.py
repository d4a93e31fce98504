"""The names of what describes a program beside its stores, by which models choose what they know.

A model keeps the names of the columns that it was trained with, and asks for these alone: a column
may be added here at any time, and none may change its meaning. Bundles of before models kept names
were trained with the columns of :data:`ORIGINAL`, which stay as they are.
"""

from __future__ import annotations

from collections.abc import Mapping

from costlib.features import tiled_programs

_TASK = ("task.flops", "hardware.cores", "hardware.vector", "hardware.last_cache")

_STEPS, _WORDS, _SIZES = (tuple(f"{what}{n}" for n in range(count)) for what, count in (
    ("step", 16), ("word", 24), ("size", 4)
))  # fmt: skip

_OUTLINE = (
    *("iterations", "arithmetic", "calls", "branches", "parallel.chunks", "vector"),
    *("vector.full", "vector.power", "vectorized"),
)
_RUN = (
    *("reduces", "size", "steps", "unrolled", "registers", "loaded", "store_lines"),
    *("most_lines", "second_lines", "third_lines"),
)
_LOOP = ("extent", "kind", "loads_standing", "loads_in_order", "store_jump", "load_jump")
_REGION = (
    *("swept", "iterations", "registers", "loaded", "moved_per_operation", "registers.linear"),
    *("reduction", "reuse", "written", "cycles"),
)
_CACHE = ("bytes", "lines", "iterations_per_line", "loops_inside", "crowding")

NESTS = (
    *_OUTLINE,
    *("parallel.cores_idle", "parallel.launches", "unroll_steps"),
    *(f"run{number}.{name}" for number in range(5) for name in _RUN),
    *(f"loop{depth}.{name}" for depth in range(1, 6) for name in _LOOP),
    *(f"region{number}.{name}" for number in range(3) for name in _REGION),
    *(f"cache{number}.{name}" for number in range(1, 4) for name in _CACHE),
    *(f"depth{depth}.{name}" for depth in range(1, 7) for name in ("bytes", "stored")),
    *(f"second.{name}" for name in _OUTLINE),
    *("nests", "cycles.longest", "cycles.others", "cycles"),
)
"""Of :func:`costlib.features.nest_features.nest_features`, in its order."""

_TILED_LEVEL = (
    *("size", "steps", "unrolled", "registers", "loaded", "store_lines", "bytes"),
    *("lines0", "lines1", "lines2"),
)
_TILED = (
    *("tiled", "vector", "vector.full", "vector.power", "chunks", "cores_idle", "unroll_steps"),
    *("moved_per_operation", "reduction", "computing", "fetching", "cycles"),
    *(f"level{level}.{name}" for level in range(6) for name in _TILED_LEVEL),
    *(f"cache{n}.{k}" for n in range(3) for k in ("bytes", "lines", "iterations_per_line",
                                                  "crowding")),
    *(f"region{n}.{k}" for n in range(3) for k in ("swept", "registers", "moved_per_operation",
                                                   "reduction", "cycles")),
)  # fmt: skip

ORIGINAL: Mapping[str, tuple[str, ...]] = {
    "statements": (*_TASK, *NESTS),
    "schedule": (*_TASK, *_STEPS, *_WORDS, *_SIZES, *_TILED),
}
"""By view: what models were trained with that do not name their columns. Never to be changed."""

INSTRUCTIONS = (
    *("avx2", "fma", "avx512f", "avx512vnni", "avxvnni", "avx512bf16", "avx512fp16"),
    *("amx-bf16", "amx-int8", "neon", "dotprod", "sve"),
)
"""What a processor may have, as LLVM calls it."""

CACHES = ("L1", "L2", "L3")

PRECISION = ("input_bits", "input_float", "weight_bits", "weight_float", "sum_bits", "sum_float")
"""Of :func:`costlib.features.precision.precision`, in its order."""

TASK = (
    *_TASK,
    *(f"hardware.{name}" for name in INSTRUCTIONS),
    "hardware.sve_bits",
    *(f"hardware.{name}" for name in CACHES),
    *("hardware.last_cache_cores", "hardware.arithmetic", "hardware.bandwidth"),
    *(f"task.{name}" for name in PRECISION),
    "task.cold_weights",
)
"""Of :func:`costlib.features.task_context.task_features`, in its order."""

CONTEXT: Mapping[str, tuple[str, ...]] = {
    "statements": (*TASK, *NESTS),
    "schedule": (*TASK, *_STEPS, *_WORDS, *_SIZES, *tiled_programs.COLUMNS),
}
"""By view: all that there are now, in the order of a batch's context."""

_LAUNCH = (
    *("kernels", "threads", "threads.idle", "blocks", "virtual_threads", "shared_bytes"),
    *("local_bytes", "registers", "spilled", "tensor_cores", "occupancy", "wave.last"),
    "multiprocessors.busy",
)
_TRAFFIC = (
    *("global.fetched", "global.stored", "global.wanted", "global.per_operation"),
    *("shared.accesses", "shared.per_operation", "shared.conflicts", "shared.conflicts.worst"),
    *("copied.widest", "copied.narrowest", "unroll_steps"),
)

KERNELS = (
    *("threads", "threads.idle", "blocks", "virtual_threads", "work", "depth", "copied", "copies"),
    *("shared_bytes", "registers", "spilled", "occupancy", "wave.last", "multiprocessors.busy"),
    *("fetched", "fetched_per_operation", "shared_per_operation", "unroll_steps"),
    *(f"load{number}.{name}" for number in range(2) for name in ("bytes", "row_bytes")),
)
"""Of :class:`costlib.features.tiled_kernels.TiledKernels`, in its order."""

GPU: Mapping[str, tuple[str, ...]] = {
    "statements": tuple(f"gpu.{name}" for name in (*_LAUNCH, *_TRAFFIC)),
    "schedule": tuple(f"gpu.{name}" for name in KERNELS),
}
"""By view: what follows these for programs of a GPU, see :mod:`costlib.features.gpu_features`."""


def columns_of(view: str, kind: str) -> tuple[str, ...]:
    """Return the names of what programs for a kind of hardware are described by."""
    return CONTEXT[view] if kind == "cpu" else CONTEXT[view] + GPU[view]
