"""Features of lowered programs: MetaSchedule's ``PerStoreFeature``, a row for each buffer store."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from costlib.arrays import Float32s
from costlib.tvm_compat import ms

STORE_FEATURES = 164


def extract_stores(context: Any, schedules: Sequence[Any]) -> list[Float32s]:
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
    arrays = ms.feature_extractor.PerStoreFeature().extract_from(context, candidates)
    return [array.numpy().astype("float32") for array in arrays]
