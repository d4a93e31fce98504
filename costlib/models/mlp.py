"""A small neural network over a program's statements, as in TenSet (NeurIPS'21 datasets track).

Every buffer store is encoded by itself, the encodings of a program are added up, and the sum is
decoded to a score. Trained in torch by LambdaRank; scored in numpy, so that a loaded model needs no
torch.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from pydantic import BaseModel, ConfigDict

from costlib.errors import BundleError
from costlib.features.batch import FeatureBatch, Floats
from costlib.models.base import CostModel, Scores, check_training_data
from costlib.models.normalisation import Normalisation
from costlib.models.task_batches import Rows, TaskBatches

_LAYERS = ("encoder0", "encoder1", "decoder0", "decoder1", "decoder2")


class MlpConfig(BaseModel):
    """Settings of :class:`MlpModel`.

    Attributes
    ----------
    width
        Width of all hidden layers.
    epochs
        Passes over the training data.
    learning_rate, weight_decay
        Of AdamW; the rate falls to zero along a cosine.
    programs_per_task, tasks_per_batch
        A step takes so many programs of so many tasks.
    pairs
        Which programs of a batch are compared: those of one ``"task"``, or, as TenSet and TLP
        do, all of the ``"batch"``.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    width: int = 256
    epochs: int = 60
    learning_rate: float = 1e-3
    weight_decay: float = 1e-2
    programs_per_task: int = 32
    tasks_per_batch: int = 16
    pairs: Literal["task", "batch"] = "task"


class MlpModel(CostModel):
    """Scores a program by a network over its stores; the normalisation is part of the model."""

    kind = "mlp"

    def __init__(self, config: MlpConfig | None = None) -> None:
        self.config = config or MlpConfig()
        self._weights: dict[str, Floats] = {}

    def fit(
        self,
        batch: FeatureBatch,
        labels: Scores,
        groups: np.ndarray[Any, np.dtype[np.int64]],
        *,
        seed: int = 0,
    ) -> None:
        """Train from scratch; see :meth:`CostModel.fit`."""
        import torch

        from costlib.models.ranking_loss import lambda_rank

        check_training_data(batch, labels, groups)
        config = self.config
        norm = Normalisation.of(batch)
        stores = torch.from_numpy(norm.stores(batch.stores))
        context = torch.from_numpy(norm.context(batch.context))
        targets = torch.from_numpy(labels.astype("float32"))
        generator = torch.Generator().manual_seed(seed)
        network = _network(stores.shape[1], context.shape[1], config.width, generator)
        batches = TaskBatches(
            groups, config.epochs, config.programs_per_task, config.tasks_per_batch, seed
        )
        optimizer = torch.optim.AdamW(
            network.values(), lr=config.learning_rate, weight_decay=config.weight_decay
        )
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, len(batches))
        for rows in batches:
            taken, owners = _stores_of(batch.offsets, rows.ravel())
            chosen = torch.from_numpy(rows.ravel())
            scores = _forward(network, stores[taken], torch.from_numpy(owners), context[chosen])
            shape = rows.shape if config.pairs == "task" else (1, rows.size)
            loss = lambda_rank(scores.view(shape), targets[chosen].view(shape))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
        self._weights = norm.arrays() | {
            name: np.ascontiguousarray(value.detach().numpy()) for name, value in network.items()
        }

    def predict(self, batch: FeatureBatch) -> Scores:
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

    def save(self, folder: Path) -> None:
        """Write the weights and the settings."""
        from safetensors.numpy import save_file

        assert self._weights, "fit or load the model first"
        save_file(self._weights, folder / "weights.safetensors")
        (folder / "config.json").write_text(self.config.model_dump_json(indent=2) + "\n")

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Read what :meth:`save` wrote."""
        from safetensors import SafetensorError
        from safetensors.numpy import load_file

        try:
            model = cls(MlpConfig(**json.loads((folder / "config.json").read_text())))
            model._weights = load_file(folder / "weights.safetensors")
        except (OSError, ValueError, SafetensorError) as error:
            reason = str(error).splitlines()[0]
            raise BundleError(f"{folder} holds no MLP model: {reason}") from None
        wanted = {*Normalisation.NAMES, *_parameter_names()}
        if set(model._weights) != wanted:
            raise BundleError(f"{folder} holds no MLP model: weights are missing or too many")
        return model

    def _linear(self, layer: str, x: Floats) -> Floats:
        return np.asarray(x @ self._weights[f"{layer}.weight"] + self._weights[f"{layer}.bias"])


def _stores_of(offsets: Rows, programs: Rows) -> tuple[Rows, Rows]:
    """Return the stores of some programs, one program after the other, and each one's program."""
    starts = offsets[programs]
    counts = offsets[programs + 1] - starts
    ends = np.cumsum(counts)
    rows = np.arange(ends[-1]) + np.repeat(starts - ends + counts, counts)
    return rows, np.repeat(np.arange(len(programs)), counts)


def _parameter_names() -> list[str]:
    return [f"{layer}.{part}" for layer in _LAYERS for part in ("weight", "bias")]


def _network(stores: int, context: int, width: int, generator: Any) -> dict[str, Any]:
    """Make the layers' weights, `inputs x outputs`, at random."""
    import torch

    inputs = (stores, width, width + context, width, width)
    outputs = (width, width, width, width, 1)
    network = {}
    for layer, fan_in, fan_out in zip(_LAYERS, inputs, outputs, strict=True):
        weight = torch.randn(fan_in, fan_out, generator=generator) * (2 / fan_in) ** 0.5
        network[f"{layer}.weight"] = weight.requires_grad_()
        network[f"{layer}.bias"] = torch.zeros(fan_out, requires_grad=True)
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
