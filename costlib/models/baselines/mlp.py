"""A small neural network over a program's statements, as in TenSet (NeurIPS'21 datasets track).

Every buffer store is encoded by itself, the encodings of a program are added up, and the sum is
decoded to a score. Trained in torch by LambdaRank; scored in numpy, so that a loaded model needs no
torch.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, Self

import numpy as np

from costlib.arrays import Float32s, Floats, Integers
from costlib.features.batch import FeatureBatch
from costlib.models.base import check_training_data
from costlib.models.baselines.neural import (
    NeuralConfig,
    NeuralModel,
    Shapes,
    load_weights,
    train_to_rank,
)
from costlib.models.baselines.normalisation import Normalisation

_LAYERS = ("encoder0", "encoder1", "decoder0", "decoder1", "decoder2")


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


class MlpModel(NeuralModel):
    """Scores a program by a network over its stores; the normalisation is part of the model."""

    kind = "mlp"
    config: MlpConfig

    def __init__(self, config: MlpConfig | None = None) -> None:
        self.config = config or MlpConfig()
        self._weights: dict[str, Float32s] = {}

    def fit(
        self,
        batch: FeatureBatch,
        labels: Floats,
        groups: Integers,
        *,
        seed: int = 0,
    ) -> None:
        """Train from scratch; see :meth:`CostModel.fit`."""
        import torch

        check_training_data(batch, labels, groups)
        norm = Normalisation.of(batch)
        stores = torch.from_numpy(norm.stores(batch.stores))
        context = torch.from_numpy(norm.context(batch.context))
        generator = torch.Generator().manual_seed(seed)
        network = _network(_shapes(stores.shape[1], context.shape[1], self.config), generator)

        def score(rows: Integers) -> Any:
            taken, owners = _stores_of(batch.offsets, rows)
            return _forward(network, stores[taken], torch.from_numpy(owners), context[rows])

        across_tasks = self.config.pairs == "batch"
        self._weights = norm.arrays() | train_to_rank(
            network,
            score,
            labels,
            groups,
            self.config,
            seed,
            name=self.kind,
            across_tasks=across_tasks,
        )

    def predict(self, batch: FeatureBatch) -> Floats:
        """Score programs; float64 `n`."""
        assert self._weights, "fit or load the model first"
        if len(batch) == 0:
            return np.zeros(0)
        norm = Normalisation.from_arrays(self._weights)
        hidden = norm.stores(batch.stores)
        for layer in ("encoder0", "encoder1"):
            hidden = np.maximum(self._linear(layer, hidden), 0)
        summed = np.add.reduceat(hidden, batch.offsets[:-1])
        hidden = np.hstack([summed, norm.context(batch.context)])
        for layer in ("decoder0", "decoder1"):
            hidden = np.maximum(self._linear(layer, hidden), 0)
        return np.asarray(self._linear("decoder2", hidden)[:, 0], "float64")

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Read what :meth:`save` wrote."""
        weights, config = load_weights(folder, cls.kind, MlpConfig, _shapes)
        model = cls(config)
        model._weights = weights
        return model

    def _linear(self, layer: str, x: Float32s) -> Float32s:
        return np.asarray(x @ self._weights[f"{layer}.weight"] + self._weights[f"{layer}.bias"])


def _stores_of(offsets: Integers, programs: Integers) -> tuple[Integers, Integers]:
    """Return the stores of some programs, one program after the other, and each one's program."""
    starts = offsets[programs]
    counts = offsets[programs + 1] - starts
    ends = np.cumsum(counts)
    rows = np.arange(ends[-1]) + np.repeat(starts - ends + counts, counts)
    return rows, np.repeat(np.arange(len(programs)), counts)


def _shapes(stores: int, context: int, config: MlpConfig) -> Shapes:
    width = config.width
    inputs = (stores, width, width + context, width, width)
    outputs = (width, width, width, width, 1)
    shapes: Shapes = {}
    for layer, fan_in, fan_out in zip(_LAYERS, inputs, outputs, strict=True):
        shapes |= {f"{layer}.weight": (fan_in, fan_out), f"{layer}.bias": (fan_out,)}
    return shapes


def _network(shapes: Shapes, generator: Any) -> dict[str, Any]:
    """Make the layers' weights, `inputs x outputs`, at random."""
    import torch

    network = {}
    for name, shape in shapes.items():
        if len(shape) > 1:
            weight = torch.randn(*shape, generator=generator) * (2 / shape[0]) ** 0.5
            network[name] = weight.requires_grad_()
        else:
            network[name] = torch.zeros(*shape, requires_grad=True)
    return network


def _forward(network: dict[str, Any], stores: Any, index: Any, context: Any) -> Any:
    """Score programs from their stores; ``index`` says which program a store belongs to."""
    import torch

    def linear(layer: str, x: Any) -> Any:
        return x @ network[f"{layer}.weight"] + network[f"{layer}.bias"]

    hidden = stores
    for layer in ("encoder0", "encoder1"):
        hidden = torch.relu(linear(layer, hidden))
    summed = hidden.new_zeros(len(context), hidden.shape[1]).index_add(0, index, hidden)
    hidden = torch.cat([summed, context], 1)
    for layer in ("decoder0", "decoder1"):
        hidden = torch.relu(linear(layer, hidden))
    return linear("decoder2", hidden)[:, 0]
