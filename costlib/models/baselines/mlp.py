"""A small neural network over a program's statements, as in TenSet (NeurIPS'21 datasets track).

Every buffer store is encoded by itself, the encodings of a program are added up, and the sum is
decoded to a score.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

import numpy as np

from costlib.arrays import Integers
from costlib.features.batch import FeatureBatch, select
from costlib.models.baselines.neural import NeuralConfig, NeuralModel, Shapes, layers, linear, relu


class MlpConfig(NeuralConfig):
    """Settings of :class:`MlpModel`.

    Attributes
    ----------
    width
        Width of all hidden layers.
    pairs
        Which programs of a batch are compared: those of one ``"task"``, or, as TenSet and TLP
        do, all of the ``"batch"``.
    """

    width: int = 256
    pairs: Literal["task", "batch"] = "task"


class MlpModel(NeuralModel[MlpConfig]):
    """Scores a program by a network over its stores; the normalisation is part of the model."""

    kind = "mlp"
    config_type = MlpConfig
    gain = 2.0

    @property
    def across_tasks(self) -> bool:
        """See :attr:`NeuralModel.across_tasks`."""
        return self.config.pairs == "batch"

    @staticmethod
    def shapes(stores: int, context: int, config: MlpConfig) -> Shapes:
        """See :meth:`NeuralModel.shapes`."""
        width = config.width
        return layers(
            encoder0=(stores, width),
            encoder1=(width, width),
            decoder0=(width + context, width),
            decoder1=(width, width),
            decoder2=(width, 1),
        )

    def scorer(
        self, xp: Any, weights: Mapping[str, Any], batch: FeatureBatch
    ) -> Callable[[Integers], Any]:
        """See :meth:`NeuralModel.scorer`."""

        def score(rows: Integers) -> Any:
            some = select(batch, rows)
            hidden = xp.asarray(some.stores)
            for layer in ("encoder0", "encoder1"):
                hidden = relu(linear(weights, layer, hidden))
            if xp is np:
                summed = np.add.reduceat(hidden, some.offsets[:-1])
            else:
                owners = np.repeat(np.arange(len(some)), np.diff(some.offsets))
                summed = xp.zeros(len(some), hidden.shape[1])
                summed = summed.index_add(0, xp.asarray(owners), hidden)
            hidden = xp.concatenate([summed, xp.asarray(some.context)], 1)
            for layer in ("decoder0", "decoder1"):
                hidden = relu(linear(weights, layer, hidden))
            return linear(weights, "decoder2", hidden)[:, 0]

        return score
