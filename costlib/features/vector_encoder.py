"""Vectors of decisions as tokens, by table look-up: no Python for each program."""

from __future__ import annotations

import numpy as np

from costlib.arrays import Float32s, Integers
from costlib.features.batch import FeatureBatch
from costlib.features.schedule import TOKEN_FEATURES, ScheduleEncoder
from costlib.space.vectors import DecisionVectors


class VectorEncoder:
    """Encodes vectors of :class:`costlib.space.vectors.DecisionVectors` for models of schedules.

    The result is what :func:`costlib.features.schedule.schedule_batch` gives for the programs,
    by their encoder; ``context`` is that function's.
    """

    def __init__(
        self, vectors: DecisionVectors, encoder: ScheduleEncoder, context: Float32s
    ) -> None:
        self._tables = []
        for place, values in enumerate(vectors.values):
            rows = np.zeros((len(values), len(vectors.values)), "int64")
            rows[:, place] = np.arange(len(values))
            programs = [program.decisions for program in vectors.decode(rows)]
            self._tables.append(encoder.tokens(programs)[:, place])
        needed = encoder.nest.needed if encoder.nest is not None else ()
        self._decided = {
            index: (place, np.array(vectors.values[place]))
            for place, index in enumerate(vectors.positions)
            if index in needed
        }
        self._encoder = encoder
        self._context = context

    def __call__(self, vectors: Integers) -> FeatureBatch:
        """Encode int64 `n x d` as a batch with `d` tokens for each program, one if `d` is 0."""
        count = len(vectors)
        tokens = [table[vectors[:, place]] for place, table in enumerate(self._tables)]
        tokens = tokens or [np.zeros((count, TOKEN_FEATURES), "float32")]
        places = len(tokens)
        stores = np.stack(tokens, axis=1).reshape(count * places, TOKEN_FEATURES)
        offsets = np.arange(0, count * places + 1, places, dtype="int64")
        decided = {i: values[vectors[:, place]] for i, (place, values) in self._decided.items()}
        context = np.tile(self._context, (count, 1))
        context = np.hstack([context, self._encoder.context(decided, count)])
        return FeatureBatch(stores, offsets, context, self._encoder.columns)
