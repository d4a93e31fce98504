"""Fit a cost model on some tasks of a dataset and judge it on others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from costlib.data.dataset import Dataset
from costlib.data.splits import split_by_task
from costlib.errors import DatasetError, InputError
from costlib.models import model_class, training_curve
from costlib.models.base import CostModel
from costlib.models.baselines.neural import NeuralModel
from costlib.models.gbdt import GbdtModel
from costlib.training.batches import Chosen, Progress, assemble, measured_rows
from costlib.training.cluster import fit_on_cluster
from costlib.training.metrics import Calibration, Metrics, calibrate_pairs, evaluate_scores
from costlib.training.protocol import (
    ProtocolMetrics,
    evaluate_protocol,
    measured_networks,
    network_weights,
)
from costlib.training.ranks import fit_in_ranks

_HELD_OUT_SHARE = 0.2


@dataclass(frozen=True)
class FittedModel:
    """A model and how it was made.

    Attributes
    ----------
    model
        The fitted model.
    metrics
        Its figures on ``held_out``, which it has not seen: by the protocol of
        :mod:`costlib.training.protocol` if those are the dataset's held-out networks.
    calibration
        How its scores' differences match what was measured of those.
    trained, held_out
        Workload ids it was trained on, and judged on.
    removed
        How many further tasks were left out because they nearly equal one of those.
    programs
        How many programs it was trained on.
    """

    model: CostModel
    metrics: Metrics | ProtocolMetrics
    calibration: Calibration
    trained: tuple[str, ...]
    held_out: tuple[str, ...]
    removed: int
    programs: int


def fit_model(
    dataset: Dataset,
    *,
    kind: str = "gbdt",
    hardware: Chosen = None,
    held_out_share: float | None = None,
    seed: int = 0,
    cluster: Any = None,
    on_progress: Progress = None,
) -> FittedModel:
    """Train on a dataset and judge on its held-out networks, or on some of its tasks.

    Parameters
    ----------
    kind
        The model, see :func:`costlib.models.model_class`.
    hardware
        Ids of the hardware to train for; all of the dataset's if not given. Held-out networks
        are judged on the one of them that they were measured on most.
    held_out_share
        Share of the tasks to judge on; near duplicates of them are not trained on either. If
        not given, all tasks are trained on where a held-out network was measured, and 0.8 of them
        where none was.
    seed
        Decides the split and the fit.
    cluster
        A Dask client to train with, see :func:`costlib.training.cluster.connected`; for models
        of trees over pooled features, and neural ones.
    on_progress
        Called with (done, total) programs while features are computed.

    Raises
    ------
    DatasetError
        The dataset holds fewer than two tasks.
    InputError
        The model is not one that can be trained on a cluster.
    """
    if held_out_share is not None and not 0 < held_out_share < 1:
        raise InputError(f"held_out_share is {held_out_share}; it must lie between 0 and 1")
    measured = measured_rows(dataset, hardware).select("workload_id")
    ids = set(measured.unique().collect()["workload_id"])
    if len(ids) < 2:
        raise DatasetError(
            f"{dataset.path} has measurements of {len(ids)} task(s); a model needs at least two, "
            "one to learn from and one to be judged on"
        )
    fit = partial(_fit, kind, dataset, hardware, seed, cluster, on_progress)
    evaluate: Callable[[Any], Metrics | ProtocolMetrics]
    apart = measured_networks(dataset, hardware) if held_out_share is None else None
    if apart is not None:
        held_out, judged_on = apart
        unseen = assemble(held_out, hardware=[judged_on], view=model_class(kind).view)
        weights = network_weights(held_out)
        evaluate = partial(evaluate_protocol, unseen, weights=weights)
        judged, removed = {workload_id for workload_id, _ in unseen.tasks}, 0
        model, programs, trained = fit(only=None)
    else:
        split = split_by_task(dataset, held_out_share or _HELD_OUT_SHARE, seed)
        model, programs, trained = fit(only=split.train.workload_ids)
        judged, removed = set(split.test.workload_ids), split.removed
        unseen = assemble(dataset, only=judged, hardware=hardware, view=model.view)
        evaluate = partial(evaluate_scores, latency_s=unseen.latency_s, groups=unseen.groups)
    for step, scores in model.stages(unseen.batch):
        figures = evaluate(scores)
        training_curve.tell(f"{model.kind}/top1", step, figures.top1)
        training_curve.tell(f"{model.kind}/pairwise_accuracy", step, figures.pairwise_accuracy)
    scores = model.predict(unseen.batch)
    return FittedModel(
        model,
        evaluate(scores),
        calibrate_pairs(scores, unseen.latency_s, unseen.groups),
        tuple(sorted(trained)),
        tuple(sorted(judged)),
        removed,
        programs,
    )


def _fit(
    kind: str,
    dataset: Dataset,
    hardware: Chosen,
    seed: int,
    cluster: Any,
    on_progress: Progress,
    only: Chosen,
) -> tuple[CostModel, int, set[str]]:
    """Return the fitted model, and how many programs of which workloads it was trained on."""
    model = model_class(kind)()
    if cluster is None:
        data = assemble(
            dataset, only=only, hardware=hardware, view=model.view, on_progress=on_progress
        )
        model.fit(data.batch, data.labels, data.groups, seed=seed)
        return model, len(data.labels), {workload_id for workload_id, _ in data.tasks}
    if isinstance(model, GbdtModel):
        found = fit_on_cluster(cluster, dataset, model, only=only, hardware=hardware, seed=seed)
        return model, *found
    if isinstance(model, NeuralModel):
        return fit_in_ranks(cluster, dataset, model, only=only, hardware=hardware, seed=seed)
    raise InputError(f"'{kind}' cannot be trained on a cluster; 'gbdt' and 'mlp' can")
