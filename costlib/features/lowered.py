"""Lowered programs as the exact models see them: stores, loop nests, task and hardware."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from costlib.arrays import Float32s
from costlib.features.batch import FeatureBatch, concatenate, lowered_context
from costlib.features.nest_features import describe_nests
from costlib.hardware import Hardware
from costlib.tvm_compat import ms

STORE_FEATURES = 164


def lowered_batch(
    context: Any, schedules: Sequence[Any], flops: float, hardware: Hardware
) -> FeatureBatch:
    """Describe programs of one task on one hardware.

    Parameters
    ----------
    context
        The ``TuneContext`` of their task.
    schedules
        `n` ``tvm.s_tir.Schedule`` objects, postprocessed; at least one.
    flops, hardware
        Of the task; what the programs are for.
    """
    with ThreadPoolExecutor(1) as thread:  # TVM extracts without holding Python's lock.
        stores = thread.submit(extract_stores, context, schedules)
        nests = describe_nests([schedule.mod for schedule in schedules], hardware)
    return concatenate(stores.result(), lowered_context(flops, hardware, nests))


def extract_stores(context: Any, schedules: Sequence[Any]) -> list[Float32s]:
    """Return MetaSchedule's ``PerStoreFeature`` of each program, float32 `n_stores x 164`.

    They are given as in :func:`lowered_batch`.
    """
    candidates = [ms.MeasureCandidate(schedule, []) for schedule in schedules]
    arrays = ms.feature_extractor.PerStoreFeature().extract_from(context, candidates)
    return [array.numpy().astype("float32") for array in arrays]
