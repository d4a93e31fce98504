"""Lowered programs as the exact models see them: stores, loop nests, task and hardware."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from costlib.arrays import Float32s
from costlib.features.batch import FeatureBatch, concatenate
from costlib.features.columns import columns_of
from costlib.features.nest_features import describe_nests
from costlib.hardware import Hardware
from costlib.tvm_compat import ms

STORE_FEATURES = 164

_NOTHING_KNOWN = np.zeros((1, STORE_FEATURES), "float32")


def lowered_batch(
    context: Any, schedules: Sequence[Any], task: Float32s, hardware: Hardware
) -> FeatureBatch:
    """Describe programs of one task on one hardware.

    Parameters
    ----------
    context
        The ``TuneContext`` of their task.
    schedules
        `n` ``tvm.s_tir.Schedule`` objects, postprocessed; at least one.
    task
        What :func:`costlib.features.task_context.task_features` says of their task.
    hardware
        What they are for.
    """
    with ThreadPoolExecutor(1) as thread:  # TVM extracts without holding Python's lock.
        stores = thread.submit(extract_stores, context, schedules)
        nests = describe_nests([schedule.mod for schedule in schedules], hardware)
    names = columns_of("statements", hardware.kind)
    return concatenate(stores.result(), lowered_context(task, nests), names)


def lowered_context(task: Float32s, nests: Float32s) -> Float32s:
    """Put the description of task and hardware before that of each program's nests, `n x k`."""
    return np.hstack([np.tile(task, (len(nests), 1)), nests])


def extract_stores(context: Any, schedules: Sequence[Any]) -> list[Float32s]:
    """Return MetaSchedule's ``PerStoreFeature`` of each program, float32 `n_stores x 164`.

    They are given as in :func:`lowered_batch`. A program that TVM cannot describe has one row of
    zeros.
    """
    candidates = [ms.MeasureCandidate(schedule, []) for schedule in schedules]
    extractor = ms.feature_extractor.PerStoreFeature()
    try:
        arrays = extractor.extract_from(context, candidates)
    except RuntimeError:
        if len(schedules) == 1:
            return [_NOTHING_KNOWN]
        return [extract_stores(context, [schedule])[0] for schedule in schedules]
    found = (array.numpy().astype("float32") for array in arrays)
    return [stores if stores.size else _NOTHING_KNOWN for stores in found]
