"""Fit a cost model on some tasks of a dataset and judge it on others."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

import polars as pl

from costlib.data.dataset import Dataset
from costlib.data.splits import split_by_task
from costlib.errors import DatasetError, InputError
from costlib.models import model_class
from costlib.models.base import CostModel
from costlib.training.assemble import TrainingData, assemble
from costlib.training.metrics import Metrics, evaluate_scores

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class FittedModel:
    """A model and how it was made.

    Attributes
    ----------
    model
        The fitted model.
    metrics
        Its figures on ``held_out``, which it has not seen.
    trained
        Workload ids it was trained on.
    held_out
        Workload ids it was judged on.
    removed
        How many further tasks were left out because they nearly equal one of those.
    programs
        How many programs it was trained on.
    """

    model: CostModel
    metrics: Metrics
    trained: tuple[str, ...]
    held_out: tuple[str, ...]
    removed: int
    programs: int


def fit_model(
    dataset: Dataset,
    *,
    kind: str = "gbdt",
    held_out_share: float = 0.2,
    seed: int = 0,
    on_progress: Progress | None = None,
) -> FittedModel:
    """Train on most tasks of a dataset and judge on the rest.

    Parameters
    ----------
    dataset
        The dataset.
    kind
        The model, see :func:`costlib.models.model_class`.
    held_out_share
        Share of the tasks to judge on; near duplicates of them are not trained on either.
    seed
        Decides the split and the fit.
    on_progress
        Called with (done, total) programs while features are computed.

    Raises
    ------
    DatasetError
        The dataset holds fewer than two tasks.
    """
    if not 0 < held_out_share < 1:
        raise InputError(f"held_out_share is {held_out_share}; it must lie between 0 and 1")
    measured = dataset.scan().select(pl.col("workload_id").unique()).collect()
    ids = set(measured["workload_id"])
    if len(ids) < 2:
        raise DatasetError(
            f"{dataset.path} has measurements of {len(ids)} task(s); a model needs at least two, "
            "one to learn from and one to be judged on"
        )
    split = split_by_task(dataset, held_out_share, seed)
    data = assemble(dataset, only=split.train.workload_ids, on_progress=on_progress)
    model = model_class(kind)()
    model.fit(data.batch, data.labels, data.groups, seed=seed)
    return FittedModel(
        model=model,
        metrics=judge(model, assemble(dataset, only=split.test.workload_ids)),
        trained=tuple(sorted({workload_id for workload_id, _ in data.tasks})),
        held_out=tuple(sorted(split.test.workload_ids)),
        removed=split.removed,
        programs=len(data.labels),
    )


def judge(model: CostModel, data: TrainingData) -> Metrics:
    """Compare a model's scores with what was measured."""
    return evaluate_scores(model.predict(data.batch), data.latency_s, data.groups)


def evaluate_model(
    model: CostModel,
    dataset: Dataset,
    *,
    only: Collection[str] | None = None,
    on_progress: Progress | None = None,
) -> Metrics:
    """Judge a model on a dataset, or on some of its workloads."""
    return judge(model, assemble(dataset, only=only, on_progress=on_progress))
