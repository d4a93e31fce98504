"""The evaluation protocol: how well a model ranks the programs of networks it never saw.

TenSet (NeurIPS'21) reports the mean of the networks' figures, TLP (ASPLOS'23) the figure of all
networks' tasks pooled; they differ, so both are given.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import polars as pl
from pydantic import BaseModel, ConfigDict

from costlib.arrays import Floats
from costlib.data.dataset import Dataset
from costlib.errors import DatasetError
from costlib.training.assemble import TrainingData
from costlib.training.metrics import expected_best, pairwise_accuracy, rank_correlation, top_k

KS = (1, 5, 10)

_COUNTS = ("tasks", "programs")


class NetworkMetrics(BaseModel):
    """Figures of one network, or of several together.

    Attributes
    ----------
    tasks, programs
        What they were computed on.
    top1, top5, top10
        Sum over tasks of weight x best latency, divided by the sum of weight x the best
        latency among the k programs ranked first.
    random_top1, random_top5, random_top10
        What k programs picked at random get, in expectation.
    pairwise_accuracy
        Share of pairs of programs of one task in the right order, averaged over tasks.
    rank_correlation
        Spearman's, of scores and throughputs within a task, averaged over tasks.
    """

    model_config = ConfigDict(frozen=True)

    tasks: int
    programs: int
    top1: float
    top5: float
    top10: float
    random_top1: float
    random_top5: float
    random_top10: float
    pairwise_accuracy: float
    rank_correlation: float


class ProtocolMetrics(NetworkMetrics):
    """The mean of the figures of a dataset's networks on one hardware (TenSet), and more.

    Attributes
    ----------
    hardware
        The hardware's id.
    pooled
        The figures of all networks' tasks together (TLP).
    networks
        The figures of each network.
    """

    hardware: str
    pooled: NetworkMetrics
    networks: dict[str, NetworkMetrics]


class _Tasks:
    """What a model made of each task, as arrays over the tasks."""

    def __init__(self, data: TrainingData, scores: Floats) -> None:
        members = [np.flatnonzero(data.groups == number) for number in range(len(data.tasks))]
        latencies = [data.latency_s[rows] for rows in members]
        self.programs = np.array([len(rows) for rows in members])
        self.best = np.array([latency_s.min() for latency_s in latencies])
        self.ranked = {
            k: np.array([top_k(scores[r], s, k) for r, s in zip(members, latencies, strict=True)])
            for k in KS
        }
        self.random = {k: np.array([expected_best(s, k) for s in latencies]) for k in KS}
        self.pairwise = np.array(
            [pairwise_accuracy(scores[r], s) for r, s in zip(members, latencies, strict=True)]
        )
        self.correlation = np.array(
            [rank_correlation(scores[r], s) for r, s in zip(members, latencies, strict=True)]
        )

    def metrics(self, tasks: np.ndarray[Any, Any], weights: Floats) -> NetworkMetrics:
        best = float(weights @ self.best[tasks])

        def share(chosen: Floats) -> float:
            return best / float(weights @ chosen[tasks])

        return NetworkMetrics(
            tasks=len(tasks),
            programs=int(self.programs[tasks].sum()),
            **{f"top{k}": share(self.ranked[k]) for k in KS},
            **{f"random_top{k}": share(self.random[k]) for k in KS},
            pairwise_accuracy=float(np.nanmean(self.pairwise[tasks])),
            rank_correlation=float(np.nanmean(self.correlation[tasks])),
        )


def network_weights(dataset: Dataset) -> dict[str, dict[str, int]]:
    """Return for each network how often it calls each of its tunable workloads."""
    weights: dict[str, dict[str, int]] = {}
    for network, workload_id, weight in (
        dataset.scan("networks").sort("network").collect().iter_rows()
    ):
        weights.setdefault(network, {})[workload_id] = weight
    return weights


def evaluate_protocol(
    data: TrainingData, scores: Floats, weights: Mapping[str, Mapping[str, int]]
) -> ProtocolMetrics:
    """Judge scores network by network.

    Parameters
    ----------
    data
        The programs, on one hardware.
    scores
        float `n`: a model's score of each, higher is faster.
    weights
        See :func:`network_weights`.

    Raises
    ------
    DatasetError
        A task of a network has no measured program.
    """
    numbers = {workload_id: number for number, (workload_id, _) in enumerate(data.tasks)}
    if len(numbers) < len(data.tasks):
        raise DatasetError("the protocol judges one hardware at a time; choose one")
    judged = _Tasks(data, np.asarray(scores, "float64"))
    networks, pooled_tasks, pooled_weights = {}, [], []
    for network, calls in weights.items():
        missing = [workload_id for workload_id in calls if workload_id not in numbers]
        if missing:
            raise DatasetError(
                f"{len(missing)} of {len(calls)} tasks of {network} have no measured program, "
                f"the first is {missing[0]}; collect them"
            )
        tasks = np.array([numbers[workload_id] for workload_id in calls])
        share = np.array(list(calls.values()), "float64")
        networks[network] = judged.metrics(tasks, share)
        pooled_tasks.append(tasks)
        pooled_weights.append(share)
    if not networks:
        raise DatasetError("the dataset notes no networks; collect them with a plan")
    every = list(networks.values())
    mean = {
        name: float(np.mean([getattr(one, name) for one in every]))
        for name in NetworkMetrics.model_fields
        if name not in _COUNTS
    }
    return ProtocolMetrics.model_validate(
        {
            **mean,
            "tasks": len(data.tasks),
            "programs": len(data.labels),
            "hardware": data.tasks[0][1],
            "networks": networks,
            "pooled": judged.metrics(np.concatenate(pooled_tasks), np.concatenate(pooled_weights)),
        }
    )


def most_measured_hardware(dataset: Dataset, among: Collection[str] | None = None) -> str:
    """Return the hardware that most measurements of a dataset were made on.

    Parameters
    ----------
    dataset
        The dataset.
    among
        Ids to choose from; all if not given.

    Raises
    ------
    DatasetError
        The dataset has no measurements on them.
    """
    records = dataset.scan()
    if among is not None:
        records = records.filter(pl.col("hardware").is_in(list(among)))
    counts = records.group_by("hardware").agg(pl.len())
    ranked = counts.sort("len", "hardware", descending=True).collect()["hardware"]
    if ranked.is_empty():
        on = "" if among is None else f" on {', '.join(among)}"
        raise DatasetError(f"{dataset.path} has no measurements{on}")
    return str(ranked[0])
