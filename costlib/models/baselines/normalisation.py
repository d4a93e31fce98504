"""Shift and scale of each input column: part of a neural model, and saved with it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from costlib.arrays import Float32s
from costlib.features.batch import FeatureBatch
from costlib.models import process_group

_LEAST = 1e-6
"""A column that deviates less from its mean is constant and says nothing."""


class Normalisation:
    """Brings each column of the training data to mean 0 and deviation 1; constant ones to 0.

    Parameters
    ----------
    store_mean, store_scale, context_mean, context_scale
        float32, one for each column.
    """

    NAMES = ("stores.mean", "stores.scale", "context.mean", "context.scale")

    def __init__(
        self,
        store_mean: Float32s,
        store_scale: Float32s,
        context_mean: Float32s,
        context_scale: Float32s,
    ) -> None:
        self._values = (store_mean, store_scale, context_mean, context_scale)

    @classmethod
    def of(cls, batch: FeatureBatch) -> Normalisation:
        """Measure the columns of a batch, and of those of the processes that train with this."""
        values = []
        for columns in (batch.stores, batch.context):
            count = process_group.summed(len(columns))
            mean = process_group.summed(columns.sum(0, dtype="float64")) / count
            own = columns.mean(0, dtype="float64")
            squares = columns.var(0, dtype="float64") + (own - mean) ** 2
            deviation = np.sqrt(process_group.summed(len(columns) * squares) / count)
            scale = np.where(deviation > _LEAST, 1 / np.maximum(deviation, _LEAST), 0)
            values += [mean.astype("float32"), scale.astype("float32")]
        return cls(*values)

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Float32s]) -> Normalisation:
        """Take what :meth:`arrays` gave."""
        return cls(*(arrays[name] for name in cls.NAMES))

    def arrays(self) -> dict[str, Float32s]:
        """Return the values by name, for saving."""
        return dict(zip(self.NAMES, self._values, strict=True))

    def stores(self, stores: Float32s) -> Float32s:
        """Normalise `s x d`."""
        return (stores - self._values[0]) * self._values[1]

    def context(self, context: Float32s) -> Float32s:
        """Normalise `n x c`."""
        return (context - self._values[2]) * self._values[3]
