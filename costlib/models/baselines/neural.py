"""What the neural models share: settings, normalised inputs, training, scoring, the files."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar, Generic, Self, TypeVar

import numpy as np

from costlib.arrays import Float32s, Floats, Integers
from costlib.errors import BundleError
from costlib.features.batch import FeatureBatch
from costlib.frozen import FrozenStrict
from costlib.models import process_group, training_curve
from costlib.models.base import (
    CostModel,
    check_training_data,
    load_columns,
    reading,
    save_columns,
)

Shapes = dict[str, tuple[int, ...]]

_STORES = ("stores.mean", "stores.scale")
_CONTEXT = ("context.mean", "context.scale")
"""Names of what is measured of each column, which is saved with the weights."""

_LEAST_DEVIATION = 1e-6
"""A column that deviates less from its mean is constant and says nothing."""

_WEIGHTS = "weights.safetensors"
_CONFIG = "config.json"


class NeuralConfig(FrozenStrict):
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

    epochs: int = 60
    learning_rate: float = 1e-3
    weight_decay: float = 1e-2
    programs_per_task: int = 32
    tasks_per_batch: int = 16


_Config = TypeVar("_Config", bound=NeuralConfig)


class NeuralModel(CostModel, Generic[_Config]):
    """A network over normalised columns, which several processes can train together.

    What is unknown of a program counts as the mean of what it was trained with.

    Trained in torch by LambdaRank; scored in numpy, so that a loaded model needs no torch.

    Attributes
    ----------
    config_type
        Of its settings.
    gain
        First weights have a variance of this, divided by the number of inputs.
    columns
        The columns of context that it was trained with, empty if they had no names.
    """

    config_type: type[_Config]
    gain: ClassVar[float]

    def __init__(self, config: _Config | None = None) -> None:
        self.config = config or self.config_type()
        self.columns: tuple[str, ...] = ()
        self._weights: dict[str, Float32s] = {}

    @staticmethod
    @abstractmethod
    def shapes(stores: int, context: int, config: Any) -> Shapes:
        """Return the shape of each weight, by the numbers of columns and the settings."""

    @abstractmethod
    def scorer(
        self, xp: Any, weights: Mapping[str, Any], batch: FeatureBatch
    ) -> Callable[[Integers], Any]:
        """Return what scores the programs of int64 `k` rows of a normalised batch.

        ``xp``, torch or numpy, is the library of the weights, of what computes and of the scores.
        """

    @property
    def across_tasks(self) -> bool:
        """Whether all programs of a batch are compared in training, not only those of one task."""
        return False

    def fit(self, batch: FeatureBatch, labels: Floats, groups: Integers, *, seed: int = 0) -> None:
        """See :meth:`CostModel.fit`."""
        import torch

        from costlib.models.baselines.ranking_loss import lambda_rank

        check_training_data(batch, labels, groups)
        self.columns = batch.names
        measured = measure_columns(batch)
        network = self._new_network(batch, seed)
        score = self.scorer(torch, network, normalised(batch, measured))
        targets = torch.from_numpy(labels.astype("float32"))
        steps, batches = _task_batches(groups, self.config, seed)
        optimizer = torch.optim.AdamW(
            network.values(), lr=self.config.learning_rate, weight_decay=self.config.weight_decay
        )
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
        for step, rows in enumerate(batches, start=1):
            shape = (1, rows.size) if self.across_tasks else rows.shape
            chosen = torch.from_numpy(rows.ravel())
            loss = lambda_rank(score(rows.ravel()).view(shape), targets[chosen].view(shape))
            optimizer.zero_grad()
            loss.backward()
            process_group.average_gradients(network.values())
            optimizer.step()
            schedule.step()
            training_curve.tell(f"{self.kind}/loss", step, loss.detach())
            training_curve.tell_progress(f"training: {self.kind}", step, steps)
        self._weights = measured | {
            name: np.ascontiguousarray(weight.detach().numpy()) for name, weight in network.items()
        }

    def _new_network(self, batch: FeatureBatch, seed: int) -> dict[str, Any]:
        """Draw the weights, `inputs x outputs`; biases are 0."""
        import torch

        generator = torch.Generator().manual_seed(seed)
        network = {}
        shapes = self.shapes(batch.stores.shape[1], batch.context.shape[1], self.config)
        for name, shape in shapes.items():
            if len(shape) > 1:
                scale = (self.gain / shape[0]) ** 0.5
                network[name] = (torch.randn(*shape, generator=generator) * scale).requires_grad_()
            else:
                network[name] = torch.zeros(*shape, requires_grad=True)
        return network

    def predict(self, batch: FeatureBatch) -> Floats:
        """See :meth:`CostModel.predict`."""
        assert self._weights, "fit or load the model first"
        if len(batch) == 0:
            return np.zeros(0)
        known = batch.known_by(self.columns)
        score = self.scorer(np, self._weights, normalised(known, self._weights))
        return np.asarray(score(np.arange(len(batch))), "float64")

    def save(self, folder: Path) -> None:
        """See :meth:`CostModel.save`."""
        from safetensors.numpy import save_file

        assert self._weights, "fit or load the model first"
        save_file(self._weights, folder / _WEIGHTS)
        save_columns(folder, self.columns)
        (folder / _CONFIG).write_text(self.config.model_dump_json(indent=2) + "\n")

    @classmethod
    def load(cls, folder: Path) -> Self:
        """See :meth:`CostModel.load`."""
        from safetensors.numpy import load_file

        with reading(folder, f"{cls.kind} model"):
            model = cls(cls.config_type(**json.loads((folder / _CONFIG).read_text())))
            weights: dict[str, Float32s] = load_file(folder / _WEIGHTS)
            model.columns = load_columns(folder, cls.view)
        stores, context = (len(weights.get(names[0], ())) for names in (_STORES, _CONTEXT))
        expected = cls.shapes(stores, context, model.config)
        expected |= dict.fromkeys(_STORES, (stores,)) | dict.fromkeys(_CONTEXT, (context,))
        if (
            {name: weight.shape for name, weight in weights.items()} != expected
            or not all(
                weight.dtype == np.float32 and np.isfinite(weight).all()
                for weight in weights.values()
            )
            or (model.columns and len(model.columns) != context)
        ):
            raise BundleError(
                f"{folder} holds no {cls.kind} model: its weights do not fit together"
            )
        model._weights = weights
        return model


def measure_columns(batch: FeatureBatch) -> dict[str, Float32s]:
    """Measure the columns of a batch, and of those of the processes that train with this one."""
    values: dict[str, Float32s] = {}
    for names, columns in ((_STORES, batch.stores), (_CONTEXT, batch.context)):
        known = ~np.isnan(columns)
        count = np.maximum(process_group.summed(known.sum(0)), 1)
        mean = process_group.summed(np.nansum(columns, 0, dtype="float64")) / count
        squares = np.nansum((columns - mean) ** 2, 0)
        deviation = np.sqrt(process_group.summed(squares) / count)
        scale = np.where(
            deviation > _LEAST_DEVIATION, 1 / np.maximum(deviation, _LEAST_DEVIATION), 0
        )
        values |= zip(names, (mean.astype("float32"), scale.astype("float32")), strict=True)
    return values


def normalised(batch: FeatureBatch, values: Mapping[str, Float32s]) -> FeatureBatch:
    """Bring each column to mean 0 and deviation 1 in what was measured; unknown values to 0.

    So are constant columns.
    """
    stores, context = (
        np.nan_to_num((columns - values[mean]) * values[scale])
        for (mean, scale), columns in ((_STORES, batch.stores), (_CONTEXT, batch.context))
    )
    return FeatureBatch(stores, batch.offsets, context)


def layers(**sizes: tuple[int, int]) -> Shapes:
    """Return the shapes of layers' weights and biases, by their inputs and outputs."""
    shapes: Shapes = {}
    for name, size in sizes.items():
        shapes |= {f"{name}.weight": size, f"{name}.bias": size[1:]}
    return shapes


def linear(weights: Mapping[str, Any], name: str, x: Any) -> Any:
    """Return a layer's outputs, in numpy or in torch."""
    return x @ weights[f"{name}.weight"] + weights[f"{name}.bias"]


def relu(x: Any) -> Any:
    """Return 0 in place of what is negative, in numpy or in torch."""
    return x * (x > 0)


def _task_batches(
    groups: Integers, config: NeuralConfig, seed: int
) -> tuple[int, Iterator[Integers]]:
    """Return how many training steps there are, and the rows of each, int64 `tasks x programs`.

    There are as many steps as it takes to draw all programs in each epoch. Large tasks are drawn
    more often, those with one program never. Processes that train together share the tasks.
    """
    programs = config.programs_per_task
    tasks = max(1, config.tasks_per_batch // process_group.size())
    order = np.argsort(groups, kind="stable")
    bounds = np.flatnonzero(np.diff(groups[order])) + 1
    members = [rows for rows in np.split(order, bounds) if len(rows) > 1]
    sizes = np.array([len(rows) for rows in members], "float64")
    rng = np.random.default_rng(seed + (process_group.rank() << 32))
    total, step = process_group.summed([sizes.sum(), programs * tasks])
    steps = config.epochs * max(1, int(total // step))

    def drawn() -> Iterator[Integers]:
        for _ in range(steps):
            chosen = rng.choice(len(members), tasks, p=sizes / sizes.sum())
            rows = (members[task] for task in chosen)
            yield np.stack([rng.choice(r, programs, replace=len(r) < programs) for r in rows])

    return steps, drawn()
