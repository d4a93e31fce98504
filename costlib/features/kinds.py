"""What each column of the pooled features describes, in a few kinds that people can read."""

from __future__ import annotations

from collections.abc import Sequence

from costlib.features.columns import TASK
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


def pooled_kinds(context: Sequence[str]) -> list[str]:
    """Return the kind of each pooled column of lowered programs: what it describes.

    Parameters
    ----------
    context
        The names of the context's columns.
    """
    store = [kind for kind, count in _OF_A_STORE for _ in range(count)]
    assert len(store) == STORE_FEATURES
    task = frozenset(TASK)
    whole = [
        "task and hardware" if name in task else "loop nest by its estimated cycles"
        for name in context
    ]
    return store * _POOLS + ["number of statements"] + whole
