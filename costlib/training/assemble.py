"""A dataset as arrays: features, labels and groups."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from costlib.data.dataset import Dataset
from costlib.errors import DatasetError
from costlib.features.batch import FeatureBatch, join
from costlib.features.per_store import to_batch
from costlib.features.store import load_features
from costlib.schema import Status


@dataclass(frozen=True)
class TrainingData:
    """`n` measured programs as arrays.

    Attributes
    ----------
    batch
        Their features.
    latency_s
        float64 `n`: latencies in seconds.
    labels
        float64 `n`: best latency of the task on the hardware / latency, in (0, 1].
    groups
        int64 `n`: index into ``tasks``.
    tasks
        (workload_id, hardware_id) of each group.
    """

    batch: FeatureBatch
    latency_s: np.ndarray[Any, np.dtype[np.float64]]
    labels: np.ndarray[Any, np.dtype[np.float64]]
    groups: np.ndarray[Any, np.dtype[np.int64]]
    tasks: list[tuple[str, str]]


def assemble(
    dataset: Dataset,
    *,
    only: Collection[str] | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> TrainingData:
    """Bring the programs that ran, and that this TVM can replay, into arrays.

    Parameters
    ----------
    dataset
        The dataset.
    only
        Workload ids to take; all if not given.
    on_progress
        Called with (done, total) programs while features are computed.

    Raises
    ------
    DatasetError
        There is no such program.
    """
    flops = dict(dataset.scan("workloads").select("workload_id", "flops").collect().iter_rows())
    batches, latencies, labels, tasks = [], [], [], []
    for hardware_id, hardware in dataset.hardware().items():
        features = load_features(dataset, hardware_id, on_progress)
        records = _records(dataset, hardware_id, only).filter(
            pl.col("program_id").is_in(list(features))
        )
        for (workload_id,), rows in records.group_by("workload_id", maintain_order=True):
            stores = [features[program_id] for program_id in rows["program_id"]]
            latency_s = rows["latency_s"].to_numpy()
            batches.append(to_batch(stores, flops[str(workload_id)], hardware))
            latencies.append(latency_s)
            labels.append(latency_s.min() / latency_s)
            tasks.append((str(workload_id), hardware_id))
    if not batches:
        raise DatasetError(
            f"{dataset.path} holds no measured program of the tasks asked for; "
            "see `costlib dataset info`"
        )
    return TrainingData(
        join(batches),
        np.concatenate(latencies),
        np.concatenate(labels),
        np.repeat(np.arange(len(tasks)), [len(array) for array in latencies]),
        tasks,
    )


def _records(dataset: Dataset, hardware_id: str, only: Collection[str] | None) -> pl.DataFrame:
    """Program, workload and latency of what ran, in an order that does not depend on the parts."""
    records = dataset.scan().filter(
        (pl.col("hardware") == hardware_id) & (pl.col("status") == str(Status.OK))
    )
    if only is not None:
        records = records.filter(pl.col("workload_id").is_in(list(only)))
    return (
        records.group_by("workload_id", "program_id")
        .agg(pl.col("latency_s").median())
        .sort("workload_id", "program_id")
        .collect()
    )
