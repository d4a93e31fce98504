"""What benches of models that change hardware share: which hardware, which records, what comes out.

A *machine* is a processor with all its cores and with vectors of 256 bits or more. The same
processor with fewer cores or older instructions is a *variant* of it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import polars as pl

from costlib.arrays import Bools, Floats
from costlib.data.dataset import Dataset
from costlib.features.batch import join, select
from costlib.hardware import Hardware
from costlib.models.gbdt import GbdtConfig, GbdtModel
from costlib.training.batches import TrainingData
from costlib.training.metrics import JudgedTasks, drawn_ratios, evaluate_scores, interval_of

_WIDE_BITS = 256

Part = tuple[TrainingData, Bools]
"""Programs, and which of them are taken; bool `n`."""


def machines_of(dataset: Dataset) -> dict[str, Hardware]:
    """Return the machines of a dataset by their ids, those with the most records first."""
    known = dataset.hardware()
    cores: dict[str, int] = {}
    for one in known.values():
        cores[one.model] = max(cores.get(one.model, 0), one.num_cores)
    counts = dict(dataset.scan().group_by("hardware").agg(pl.len()).collect().iter_rows())
    wide = [
        name
        for name, one in known.items()
        if one.vector_bits >= _WIDE_BITS and one.num_cores == cores[one.model]
    ]
    return {name: known[name] for name in sorted(wide, key=lambda n: (-counts.get(n, 0), n))}


def vendor_of(hardware: Hardware) -> str:
    """Return who made a processor, the first word of its name."""
    return hardware.model.partition(" ")[0]


def rows_of(data: TrainingData, workload_ids: Collection[str]) -> Bools:
    """Return which programs are of these workloads; bool `n`."""
    chosen = set(workload_ids)
    return np.array([workload_id in chosen for workload_id, _ in data.tasks])[data.groups]


def some_tasks(data: TrainingData, among: Bools, programs: float, seed: int) -> Bools:
    """Draw whole tasks of some programs until there are so many programs, or all; bool `n`."""
    order = np.random.default_rng(seed).permutation(np.unique(data.groups[among]))
    counts = np.bincount(data.groups)[order]
    enough = int(np.searchsorted(np.cumsum(counts), programs)) + 1
    return np.isin(data.groups, order[:enough])


def fitted(parts: Sequence[Part], seed: int, config: GbdtConfig | None = None) -> GbdtModel:
    """Train one model on some programs of each part."""
    model = GbdtModel(config)
    shifts = np.cumsum([0, *(len(data.tasks) for data, _ in parts)])
    model.fit(
        join([select(data.batch, rows) for data, rows in parts]),
        np.concatenate([data.labels[rows] for data, rows in parts]),
        np.concatenate(
            [data.groups[rows] + s for (data, rows), s in zip(parts, shifts, strict=False)]
        ),
        seed=seed,
    )
    return model


def figures(scores: Floats, data: TrainingData) -> dict[str, Any]:
    """Judge scores: each task counts alike.

    Returns
    -------
    dict
        ``top1``, ``top5`` and ``pairwise_accuracy``, and where top-1 lies with 95 % confidence,
        tasks drawn anew.
    """
    metrics = evaluate_scores(scores, data.latency_s, data.groups)
    judged = JudgedTasks(scores, data.latency_s, data.groups)
    shares, ones = judged.best / judged.ranked(1), np.ones(len(judged.best))
    low, high = interval_of(drawn_ratios(shares, ones, ones))
    return {
        "top1": round(metrics.top1_task_mean, 4),
        "top1_interval": [round(low, 4), round(high, 4)],
        "top5": round(metrics.top5_task_mean, 4),
        "pairwise_accuracy": round(metrics.pairwise_accuracy, 4),
    }
