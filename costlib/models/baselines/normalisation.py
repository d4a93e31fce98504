"""Shift and scale of each input column: part of a neural model, and saved with it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from costlib.arrays import Float32s
from costlib.features.batch import FeatureBatch
from costlib.models import process_group

STORES = ("stores.mean", "stores.scale")
CONTEXT = ("context.mean", "context.scale")
"""Names of what is measured; float32, one for each column."""

_LEAST = 1e-6
"""A column that deviates less from its mean is constant and says nothing."""


def measure_columns(batch: FeatureBatch) -> dict[str, Float32s]:
    """Measure the columns of a batch, and of those of the processes that train with this one."""
    values: dict[str, Float32s] = {}
    for names, columns in ((STORES, batch.stores), (CONTEXT, batch.context)):
        count = process_group.summed(len(columns))
        mean = process_group.summed(columns.sum(0, dtype="float64")) / count
        own = columns.mean(0, dtype="float64")
        squares = columns.var(0, dtype="float64") + (own - mean) ** 2
        deviation = np.sqrt(process_group.summed(len(columns) * squares) / count)
        scale = np.where(deviation > _LEAST, 1 / np.maximum(deviation, _LEAST), 0)
        values |= zip(names, (mean.astype("float32"), scale.astype("float32")), strict=True)
    return values


def normalised(batch: FeatureBatch, values: Mapping[str, Float32s]) -> FeatureBatch:
    """Bring each column to mean 0 and deviation 1 in what was measured; constant ones to 0."""
    stores, context = (
        (columns - values[mean]) * values[scale]
        for (mean, scale), columns in ((STORES, batch.stores), (CONTEXT, batch.context))
    )
    return FeatureBatch(stores, batch.offsets, context)
