"""A bundle judged on a dataset."""

from __future__ import annotations

import polars as pl

from costlib.data.dataset import Dataset
from costlib.errors import DatasetError
from costlib.hub.bundle import Bundle
from costlib.training.fit import evaluate_model
from costlib.training.metrics import Metrics


def evaluate(bundle: Bundle, dataset: Dataset, *, everything: bool = False) -> Metrics:
    """Judge a bundle's model on the tasks of a dataset that it was not trained on.

    Parameters
    ----------
    bundle
        The bundle.
    dataset
        The dataset; if it is the one the bundle was trained on, the tasks are those that
        were held out then.
    everything
        Judge on all tasks, trained on or not.

    Raises
    ------
    DatasetError
        All tasks of the dataset were trained on.
    """
    if everything:
        return evaluate_model(bundle.model, dataset)
    workloads = dataset.scan().select(pl.col("workload_id").unique()).collect()["workload_id"]
    unseen = set(workloads) - set(bundle.manifest.trained_on.trained)
    if not unseen:
        raise DatasetError(
            f"'{bundle.name}' was trained on all tasks of {dataset.path}; "
            "use another dataset, or --all to judge it on what it has seen"
        )
    return evaluate_model(bundle.model, dataset, only=unseen)
