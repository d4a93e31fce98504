"""Features of lowered programs: MetaSchedule's ``PerStoreFeature``, a row for each buffer store."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from costlib.features.batch import FeatureBatch, concatenate
from costlib.hardware import Hardware
from costlib.tvm_compat import ms

STORE_FEATURES = 164
CONTEXT_FEATURES = 4
"""log2 of the task's FLOPs, cores, log2 of the vector width, log2 of the last-level cache."""

Stores = np.ndarray[Any, np.dtype[np.float32]]


def extract_stores(context: Any, schedules: Sequence[Any]) -> list[Stores]:
    """Extract the features of scheduled programs.

    Parameters
    ----------
    context
        The ``TuneContext`` of their task.
    schedules
        ``tvm.s_tir.Schedule`` objects, postprocessed.

    Returns
    -------
    list of ndarray
        For each program a float32 array `n_stores x 164`.
    """
    candidates = [ms.MeasureCandidate(schedule, []) for schedule in schedules]
    return extract_candidates(context, candidates)


def extract_candidates(context: Any, candidates: Sequence[Any]) -> list[Stores]:
    """Like :func:`extract_stores`, from MetaSchedule's ``MeasureCandidate`` objects."""
    extractor = ms.feature_extractor.PerStoreFeature()
    arrays = extractor.extract_from(context, list(candidates))
    return [array.numpy().astype("float32") for array in arrays]


def context_features(flops: float, hardware: Hardware) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Describe task and hardware as a float32 vector of length :data:`CONTEXT_FEATURES`."""
    last_cache = hardware.cache_bytes[-1] if hardware.cache_bytes else 1
    log_flops, log_vector, log_cache = np.log2(
        np.asarray((flops + 1, hardware.vector_bits, last_cache), "float64")
    )
    return np.asarray((log_flops, hardware.num_cores, log_vector, log_cache), "float32")


def to_batch(stores: Sequence[Stores], flops: float, hardware: Hardware) -> FeatureBatch:
    """Put the programs of one task on one hardware into a batch."""
    context = np.tile(context_features(flops, hardware), (len(stores), 1))
    return concatenate(stores, context)
