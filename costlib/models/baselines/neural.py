"""What the neural models share: settings, the training loop, the files."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from pydantic import BaseModel, ConfigDict

from costlib.arrays import Float32s, Floats, Integers
from costlib.errors import BundleError
from costlib.models import process_group, training_curve
from costlib.models.base import CostModel
from costlib.models.baselines.normalisation import Normalisation
from costlib.models.baselines.task_batches import TaskBatches

Shapes = dict[str, tuple[int, ...]]

_WEIGHTS = "weights.safetensors"
_CONFIG = "config.json"


class NeuralConfig(BaseModel):
    """Settings of a neural model's training.

    Attributes
    ----------
    epochs
        Passes over the training data.
    learning_rate, weight_decay
        Of AdamW; the rate falls to zero along a cosine.
    programs_per_task, tasks_per_batch
        A step takes so many programs of so many tasks.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    epochs: int = 60
    learning_rate: float = 1e-3
    weight_decay: float = 1e-2
    programs_per_task: int = 32
    tasks_per_batch: int = 16


_Config = TypeVar("_Config", bound=NeuralConfig)


class NeuralModel(CostModel):
    """A model trained in torch; several processes can train it together."""

    config: NeuralConfig
    _weights: dict[str, Float32s]

    def save(self, folder: Path) -> None:
        """Write the weights and the settings."""
        save_weights(folder, self._weights, self.config)


def train_to_rank(
    network: Mapping[str, Any],
    score: Callable[[Integers], Any],
    labels: Floats,
    groups: Integers,
    config: NeuralConfig,
    seed: int,
    *,
    name: str,
    across_tasks: bool = False,
) -> dict[str, Float32s]:
    """Train a network by LambdaRank.

    Parameters
    ----------
    network
        Its parameters, torch tensors by name.
    score
        Floats the programs of int64 `k` rows with these parameters.
    labels, groups
        See :meth:`costlib.models.base.CostModel.fit`.
    config, seed
        How, and which batches are drawn.
    name
        Of the model, for :mod:`costlib.models.training_curve`.
    across_tasks
        Compare all programs of a batch, not only those of one task.

    Returns
    -------
    dict
        The trained parameters, float32 by name.
    """
    import torch

    from costlib.models.baselines.ranking_loss import lambda_rank

    targets = torch.from_numpy(labels.astype("float32"))
    batches = TaskBatches(
        groups, config.epochs, config.programs_per_task, config.tasks_per_batch, seed
    )
    optimizer = torch.optim.AdamW(
        network.values(), lr=config.learning_rate, weight_decay=config.weight_decay
    )
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, len(batches))
    for step, rows in enumerate(batches, start=1):
        shape = (1, rows.size) if across_tasks else rows.shape
        chosen = torch.from_numpy(rows.ravel())
        loss = lambda_rank(score(rows.ravel()).view(shape), targets[chosen].view(shape))
        optimizer.zero_grad()
        loss.backward()
        process_group.average_gradients(network.values())
        optimizer.step()
        schedule.step()
        training_curve.tell(f"{name}/loss", step, loss.detach())
    return {key: np.ascontiguousarray(value.detach().numpy()) for key, value in network.items()}


def save_weights(folder: Path, weights: dict[str, Float32s], config: NeuralConfig) -> None:
    """Write weights and settings into an existing folder."""
    from safetensors.numpy import save_file

    assert weights, "fit or load the model first"
    save_file(weights, folder / _WEIGHTS)
    (folder / _CONFIG).write_text(config.model_dump_json(indent=2) + "\n")


def load_weights(
    folder: Path,
    kind: str,
    config_type: type[_Config],
    shapes: Callable[[int, int, _Config], Shapes],
) -> tuple[dict[str, Float32s], _Config]:
    """Read what :func:`save_weights` wrote.

    Parameters
    ----------
    folder, kind
        Where; what kind of model it should be.
    config_type
        Of its settings.
    shapes
        Tells the weights' shapes from the number of columns of stores and of context and from
        the settings; the normalisation is not among them.

    Raises
    ------
    BundleError
        They are not there, or are no such model's.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    try:
        config = config_type(**json.loads((folder / _CONFIG).read_text()))
        weights: dict[str, Float32s] = load_file(folder / _WEIGHTS)
    except (OSError, ValueError, TypeError, SafetensorError) as error:
        reason = str(error).splitlines()[0]
        raise BundleError(f"{folder} holds no {kind} model: {reason}") from None
    columns = [len(weights[name]) if name in weights else 0 for name in Normalisation.NAMES]
    expected: Shapes = {name: (n,) for name, n in zip(Normalisation.NAMES, columns, strict=True)}
    expected |= shapes(columns[0], columns[2], config)
    found = {name: weight.shape for name, weight in weights.items()}
    if found != expected or any(not _usable(weight) for weight in weights.values()):
        raise BundleError(f"{folder} holds no {kind} model: its weights do not fit together")
    return weights, config


def _usable(weight: Float32s) -> bool:
    return weight.dtype == np.float32 and bool(np.isfinite(weight).all())
