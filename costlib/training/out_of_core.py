"""Fit a GBDT on a dataset that does not fit in memory.

LightGBM keeps bins, not values. With :data:`MAX_BIN` bins a value takes four bits, eight while it
is loaded. Columns that say nothing beyond another one are left out; they stay in the model as
constants, so that it takes the same input as any other.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np

from costlib.arrays import Bools, Float32s, Floats
from costlib.data.dataset import Dataset
from costlib.errors import DatasetError
from costlib.features.build import build_features
from costlib.models.boosting import lgb
from costlib.models.gbdt import GbdtConfig, GbdtModel, ranked_together
from costlib.schema import CacheState
from costlib.training.batches import (
    Chosen,
    Progress,
    batches,
    chosen_hardware,
    measured_tasks,
    trained_columns,
)

MAX_BIN = 15

_SAMPLE_TASKS = 256
_SAMPLE_PROGRAMS = 200
"""Bins are chosen on this many programs of each of so many tasks, on each hardware."""


def fit_gbdt(
    dataset: Dataset,
    *,
    only: Chosen = None,
    hardware: Chosen = None,
    config: GbdtConfig | None = None,
    seed: int = 0,
    on_progress: Progress = None,
) -> GbdtModel:
    """Train on a dataset that is streamed from disk.

    Parameters
    ----------
    dataset, only, hardware, on_progress
        See :func:`costlib.training.batches.batches`.
    config, seed
        Of the model.

    Raises
    ------
    DatasetError
        There is no such program, or no task has two of them.
    """
    labels, sizes = _labels(dataset, only, hardware, on_progress)
    if max(sizes, default=0) < 2:
        raise DatasetError(
            f"{dataset.path} has no task with two measured programs, so there is nothing to rank"
        )
    model = GbdtModel(config)
    parameters = model.parameters(seed) | {"max_bin": MAX_BIN}
    sample = _sample(dataset, only, hardware)
    kept = _telling_columns(sample)
    sample[:, ~kept] = 0
    bins = lgb.Dataset(sample, params=parameters).construct()
    del sample
    rows = _PooledRows(batches(dataset, only=only, hardware=hardware), len(labels), kept)
    data = lgb.Dataset(
        rows,
        model.relevance(labels),
        group=ranked_together(sizes),
        reference=bins,
        params=parameters,
    )
    model.fit_binned(data, trained_columns(dataset, model.view, hardware), seed=seed)
    return model


class _PooledRows(lgb.Sequence):  # type: ignore[misc]
    """Lets LightGBM read pooled features once, from the first program to the last."""

    batch_size = 8192

    def __init__(self, stream: Iterator[Any], length: int, kept: Bools) -> None:
        self._stream, self._length, self._kept = stream, length, kept
        self._first = 0
        self._rows = np.empty((0, len(kept)), "float32")

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, wanted: slice) -> Float32s:
        assert wanted.start == self._first, "rows are read in order"
        rows = [self._rows]
        count = len(self._rows)
        while count < wanted.stop - wanted.start:
            pooled = next(self._stream).batch.pooled()
            pooled[:, ~self._kept] = 0
            rows.append(pooled)
            count += len(pooled)
        joined = np.concatenate(rows)
        self._first = wanted.stop
        self._rows = joined[wanted.stop - wanted.start :]
        return joined[: wanted.stop - wanted.start]


def _labels(
    dataset: Dataset, only: Chosen, hardware: Chosen, on_progress: Progress
) -> tuple[Floats, list[int]]:
    """Return the labels of all programs and the number of programs of each task."""
    labels = []
    for cache, hardware_id in product(CacheState, chosen_hardware(dataset, hardware)):
        store = build_features(dataset, hardware_id, on_progress, only)
        for _, programs in measured_tasks(dataset, store, hardware_id, only, cache):
            labels.append(programs["label"].to_numpy())
    return np.concatenate([np.empty(0), *labels]), [len(task) for task in labels]


def _sample(dataset: Dataset, only: Chosen, hardware: Chosen) -> Float32s:
    """Pool some programs of tasks from all over the dataset; ids are hashes, the first will do."""
    ids = sorted(dataset.scan("workloads").select("workload_id").collect()["workload_id"])
    ids = [workload_id for workload_id in ids if only is None or workload_id in only]
    chosen = ids[:: max(1, len(ids) // _SAMPLE_TASKS)]
    rows = []
    for data in batches(dataset, only=chosen, hardware=hardware, programs=1):
        rows.append(data.batch.pooled()[:_SAMPLE_PROGRAMS].copy())  # Not a view of all.
    return np.concatenate(rows)


def _telling_columns(sample: Float32s) -> Bools:
    """Mark the columns that vary, and of equal ones the first; unknown is a value of its own."""
    filled = np.nan_to_num(sample, nan=float(np.finfo("float32").min))
    _, first = np.unique(filled, axis=1, return_index=True)
    is_first = np.isin(np.arange(sample.shape[1]), first)
    return np.asarray(is_first & (filled.max(0) > filled.min(0)))
