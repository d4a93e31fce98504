"""A bundle judged on a dataset."""

from __future__ import annotations

from typing import NamedTuple

import polars as pl

from costlib.arrays import Floats
from costlib.data.completeness import check_complete
from costlib.data.dataset import Dataset
from costlib.errors import DatasetError, InputError, UnknownNameError
from costlib.frozen import Frozen
from costlib.hub.bundle import Bundle
from costlib.training.batches import Chosen, TrainingData, assemble
from costlib.training.metrics import Metrics, evaluate_scores
from costlib.training.protocol import (
    ProtocolMetrics,
    evaluate_protocol,
    measured_networks,
    network_weights,
)


class Evaluation(NamedTuple):
    """A bundle's model beside what was measured.

    Attributes
    ----------
    metrics
        Its figures.
    data
        The programs it was judged on.
    scores
        float64 `n`: its score of each.
    dataset
        What they are of: the dataset, or its held-out part.
    """

    metrics: Metrics | ProtocolMetrics
    data: TrainingData
    scores: Floats
    dataset: Dataset


def evaluate(
    bundle: Bundle,
    dataset: Dataset,
    *,
    hardware_id: str | None = None,
    everything: bool = False,
) -> Metrics | ProtocolMetrics:
    """Judge a bundle's model on tasks of a dataset; see :func:`examine`."""
    return examine(bundle, dataset, hardware_id=hardware_id, everything=everything).metrics


def examine(
    bundle: Bundle,
    dataset: Dataset,
    *,
    hardware_id: str | None = None,
    everything: bool = False,
) -> Evaluation:
    """Judge a bundle's model on tasks of a dataset that it was not trained on.

    Parameters
    ----------
    bundle
        The bundle.
    dataset
        The dataset. If it has held-out networks that were measured the model is judged on them,
        network by network; otherwise on the tasks that the bundle was not trained on.
    hardware_id
        The hardware to judge held-out networks on; the most measured one if not given.
    everything
        Judge on all tasks of the dataset proper instead, trained on or not.

    Raises
    ------
    DatasetError
        All tasks of the dataset were trained on, or held-out ones were; or it is incomplete.
    InputError
        The dataset knows no such hardware, or has no held-out networks to judge on it.
    """
    check_complete(dataset)
    apart = _held_out(dataset, hardware_id, everything)
    if everything:
        return _examined(bundle, dataset, None)
    trained = set(bundle.manifest.trained_on.trained)
    if apart is not None:
        held_out, chosen = apart
        seen = trained & _ids(held_out, "workload_id")
        if seen:
            raise DatasetError(
                f"'{bundle.name}' was trained on {len(seen)} of the held-out tasks of "
                f"{dataset.path}; train it again without them"
            )
        data = assemble(held_out, hardware=[chosen], view=bundle.model.view)
        scores = bundle.model.predict(data.batch)
        metrics = evaluate_protocol(data, scores, network_weights(held_out))
        return Evaluation(metrics, data, scores, held_out)
    unseen = _ids(dataset, "workload_id") - trained
    if not unseen:
        raise DatasetError(
            f"'{bundle.name}' was trained on all tasks of {dataset.path}; "
            "use another dataset, or --all to judge it on what it has seen"
        )
    return _examined(bundle, dataset, unseen)


def _held_out(
    dataset: Dataset, hardware_id: str | None, everything: bool
) -> tuple[Dataset, str] | None:
    """Return the networks to judge on, and the hardware; ``None``: tasks of the dataset proper."""
    if hardware_id is None:
        return None if everything else measured_networks(dataset)
    held_out = None if everything else dataset.held_out()
    known = _ids(held_out or dataset, "hardware")
    if hardware_id not in known:
        raise UnknownNameError("hardware of this dataset", hardware_id, known)
    if held_out is None:
        raise InputError("a hardware is chosen for held-out networks; this judges on all of it")
    found = measured_networks(dataset, [hardware_id])
    if found is None:
        raise InputError(f"{dataset.path} has no held-out network that ran on {hardware_id}")
    return found


def _examined(bundle: Bundle, dataset: Dataset, only: Chosen) -> Evaluation:
    data = assemble(dataset, only=only, view=bundle.model.view)
    scores = bundle.model.predict(data.batch)
    metrics = evaluate_scores(scores, data.latency_s, data.groups)
    return Evaluation(metrics, data, scores, dataset)


class Judged(Frozen):
    """What a bundle is judged on.

    Attributes
    ----------
    dataset
        The dataset.
    tasks, trained
        How many tasks, and how many of them the bundle was trained on.
    hardware, unknown
        On which hardware, and which of it the bundle has seen no measurement of.
    """

    dataset: str
    tasks: int
    trained: int
    hardware: tuple[str, ...]
    unknown: tuple[str, ...]

    def __str__(self) -> str:
        text = f"{self.tasks} tasks of {self.dataset} on {', '.join(self.hardware)}"
        if self.trained:
            text += f"; {self.trained} of them it was trained on"
        if self.unknown:
            text += f"; it was trained on no measurement of {', '.join(self.unknown)}"
        return text


def judged_on(
    bundle: Bundle, dataset: Dataset, *, hardware_id: str | None = None, everything: bool = False
) -> Judged:
    """Say what :func:`evaluate`, called with the same arguments, judges a bundle on."""
    apart = _held_out(dataset, hardware_id, everything)
    judged, chosen = (dataset, None) if apart is None else apart
    rows = judged.scan().select("workload_id", "hardware").unique().collect()
    trained = set(bundle.manifest.trained_on.trained)
    if chosen is not None:
        rows = rows.filter(pl.col("hardware") == chosen)
    elif not everything:
        rows = rows.filter(~pl.col("workload_id").is_in(trained))
    found = set(rows["hardware"])
    known = {entry.hardware.hardware_id for entry in bundle.manifest.hardware}
    tasks = set(rows["workload_id"])
    return Judged(
        dataset=str(dataset.path),
        tasks=len(tasks),
        trained=len(tasks & trained),
        hardware=tuple(sorted(found)),
        unknown=tuple(sorted(found - known)),
    )


def _ids(dataset: Dataset, column: str) -> set[str]:
    return set(dataset.scan().select(pl.col(column).unique()).collect()[column])
