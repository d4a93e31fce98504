"""What each column of the pooled features describes, in a few kinds that people can read."""

from __future__ import annotations

from costlib.features.batch import TASK_FEATURES
from costlib.features.lowered import STORE_FEATURES

_POOLS = 4
"""Sum, maximum, mean and minimum, see :meth:`costlib.features.batch.FeatureBatch.pooled`."""

_OF_A_STORE = (
    ("arithmetic", 16),
    ("vectorized loops", 11),
    ("unrolled loops", 11),
    ("parallel loops", 11),
    ("GPU threads", 8),
    ("memory accesses", 90),
    ("arithmetic intensity", 10),
    ("allocations", 4),
    ("outer loops", 3),
)
"""The parts of MetaSchedule's ``PerStoreFeature``, in order, and how many columns each has."""


def pooled_kinds(store_columns: int, context_columns: int) -> list[str]:
    """Return the kind of each pooled column: what it describes.

    Parameters
    ----------
    store_columns, context_columns
        `d` and `c` of the :class:`costlib.features.batch.FeatureBatch`.
    """
    if store_columns == STORE_FEATURES:
        store = [kind for kind, count in _OF_A_STORE for _ in range(count)]
        rest = "loop nest by its estimated cycles"
    else:
        store = ["steps of the schedule"] * store_columns
        rest = "the program as a whole"
    context = ["task and hardware"] * TASK_FEATURES
    context += [rest] * (context_columns - TASK_FEATURES)
    return store * _POOLS + ["number of statements"] + context[:context_columns]
