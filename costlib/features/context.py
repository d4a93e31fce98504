"""What describes a program as a whole: task, hardware, and its loop nests. Knows nothing of TVM."""

from __future__ import annotations

import numpy as np

from costlib.arrays import Float32s
from costlib.hardware import Hardware

TASK_FEATURES = 4
"""log2 of the task's FLOPs, cores, log2 of the vector width, log2 of the last-level cache."""


def task_features(flops: float, hardware: Hardware) -> Float32s:
    """Describe task and hardware as a float32 vector of length :data:`TASK_FEATURES`."""
    last_cache = hardware.cache_bytes[-1] if hardware.cache_bytes else 1
    log_flops, log_vector, log_cache = np.log2(
        np.asarray((flops + 1, hardware.vector_bits, last_cache), "float64")
    )
    return np.asarray((log_flops, hardware.num_cores, log_vector, log_cache), "float32")


def lowered_context(flops: float, hardware: Hardware, nests: Float32s) -> Float32s:
    """Put the description of task and hardware before that of each program's nests, `n x k`."""
    task = np.tile(task_features(flops, hardware), (len(nests), 1))
    return np.hstack([task, nests])
