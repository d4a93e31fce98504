"""What describes a task and the hardware that it is for: the first columns of every context."""

from __future__ import annotations

import functools
import json
import math

import numpy as np

from costlib.arrays import Float32s
from costlib.canary_times import CanaryTimes
from costlib.features.columns import CACHES, INSTRUCTIONS, TASK
from costlib.features.precision import precision
from costlib.hardware import Hardware
from costlib.measure.canary_kernels import rates
from costlib.processor import instructions_of
from costlib.schema import CacheState
from costlib.workloads.task import Task


def task_features(
    flops: float,
    types: Float32s,
    hardware: Hardware,
    canary: CanaryTimes | None = None,
    cache: CacheState = CacheState.WARM,
) -> Float32s:
    """Describe task and hardware by the columns of :data:`costlib.features.columns.TASK`.

    Parameters
    ----------
    flops
        Floating-point operations of the task.
    types
        What :func:`costlib.features.precision.precision` says of it.
    hardware
        What it is for.
    canary
        What the hardware's canaries take, from which its arithmetic and its bandwidth follow.
    cache
        What a call of the task finds in the caches.

    Returns
    -------
    ndarray
        float32; sizes and rates are base-2 logarithms, what is unknown is NaN.
    """
    last_cache = hardware.cache_bytes[-1] if hardware.cache_bytes else 1
    sizes = (flops + 1, hardware.vector_bits, last_cache)
    log_flops, log_vector, log_cache = np.log2(np.asarray(sizes, "float64"))
    caches = [*hardware.cache_bytes[: len(CACHES)], *(math.nan,) * len(CACHES)][: len(CACHES)]
    speeds: tuple[float, float] = (math.nan, math.nan)
    if canary is not None:
        speeds = rates(canary, hardware.num_cores if hardware.kind == "cpu" else None)
    values = [
        *(log_flops, hardware.num_cores, log_vector, log_cache),
        *_instructions(json.dumps(hardware.target, sort_keys=True)),
        *np.log2(np.asarray([*caches, hardware.last_cache_cores or math.nan, *speeds], "float64")),
        *types,
        float(cache is CacheState.COLD_WEIGHTS),
    ]
    assert len(values) == len(TASK)
    return np.asarray(values, "float32")


def describe_task(task: Task, hardware: Hardware, canary: CanaryTimes | None = None) -> Float32s:
    """Return the :func:`task_features` of a task."""
    types = precision(task.arguments, task.mod)
    return task_features(task.flops, types, hardware, canary, task.cache)


@functools.cache
def _instructions(target: str) -> tuple[float, ...]:
    """Return which instructions code for a target may use, and the width of SVE's vectors."""
    described = json.loads(target)
    found = instructions_of(described) if described.get("kind") == "llvm" else set()
    if found is None:
        return (math.nan,) * (len(INSTRUCTIONS) + 1)
    sve_bits = math.nan if "sve" in found else 0.0  # Only the processor itself knows it.
    return *(float(name in found) for name in INSTRUCTIONS), sve_bits
