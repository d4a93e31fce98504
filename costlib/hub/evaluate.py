"""A bundle judged on a dataset."""

from __future__ import annotations

import polars as pl

from costlib.data.completeness import check_complete
from costlib.data.dataset import Dataset
from costlib.errors import DatasetError
from costlib.hub.bundle import Bundle
from costlib.training.fit import evaluate_model, judge_networks
from costlib.training.metrics import Metrics
from costlib.training.protocol import ProtocolMetrics


def evaluate(
    bundle: Bundle,
    dataset: Dataset,
    *,
    hardware_id: str | None = None,
    everything: bool = False,
) -> Metrics | ProtocolMetrics:
    """Judge a bundle's model on tasks of a dataset that it was not trained on.

    Parameters
    ----------
    bundle
        The bundle.
    dataset
        The dataset. If it has held-out networks the model is judged on them, network by
        network; otherwise on the tasks that the bundle was not trained on.
    hardware_id
        The hardware to judge held-out networks on; the most measured one if not given.
    everything
        Judge on all tasks of the dataset proper instead, trained on or not.

    Raises
    ------
    DatasetError
        All tasks of the dataset were trained on, or held-out ones were; or it is incomplete.
    """
    check_complete(dataset)
    if everything:
        return evaluate_model(bundle.model, dataset)
    trained = set(bundle.manifest.trained_on.trained)
    held_out = dataset.held_out()
    if held_out is not None:
        seen = trained & _measured(held_out)
        if seen:
            raise DatasetError(
                f"'{bundle.name}' was trained on {len(seen)} of the held-out tasks of "
                f"{dataset.path}; train it again without them"
            )
        return judge_networks(bundle.model, held_out, hardware_id)
    unseen = _measured(dataset) - trained
    if not unseen:
        raise DatasetError(
            f"'{bundle.name}' was trained on all tasks of {dataset.path}; "
            "use another dataset, or --all to judge it on what it has seen"
        )
    return evaluate_model(bundle.model, dataset, only=unseen)


def _measured(dataset: Dataset) -> set[str]:
    return set(dataset.scan().select(pl.col("workload_id").unique()).collect()["workload_id"])
