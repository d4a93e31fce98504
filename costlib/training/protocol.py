"""The evaluation protocol: how well a model ranks the programs of networks it never saw.

TenSet (NeurIPS'21) reports the mean of the networks' figures, TLP (ASPLOS'23) the figure of all
networks' tasks pooled; they differ, so both are given.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl

from costlib.arrays import Floats, Integers
from costlib.data.dataset import Dataset
from costlib.errors import DatasetError
from costlib.frozen import Frozen
from costlib.training.batches import Chosen, TrainingData, most_frequent_hardware
from costlib.training.metrics import (
    Interval,
    JudgedTasks,
    drawn_ratios,
    interval_of,
    pairwise_accuracy,
    rank_correlation,
)

KS = (1, 5, 10)


class NetworkMetrics(Frozen):
    """Figures of one network, or of several together.

    Attributes
    ----------
    tasks, programs
        What they were computed on.
    top1, top5, top10
        Sum over tasks of weight x best latency, divided by the sum of weight x the best
        latency among the k programs ranked first.
    top1_interval, top5_interval, top10_interval
        Where these lie with 95 % confidence: tasks drawn anew, by the bootstrap.
    random_top1, random_top5, random_top10
        What k programs picked at random get, in expectation.
    pairwise_accuracy
        Share of pairs of programs of one task in the right order, averaged over tasks.
    rank_correlation
        Spearman's, of scores and throughputs within a task, averaged over tasks.
    """

    tasks: int
    programs: int
    top1: float
    top5: float
    top10: float
    top1_interval: Interval
    top5_interval: Interval
    top10_interval: Interval
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
    not_judged
        Networks of which some task has no measured program.
    """

    hardware: str
    pooled: NetworkMetrics
    networks: dict[str, NetworkMetrics]
    not_judged: tuple[str, ...]


class _Judged:
    """Figures of each task; those of a network are made of its tasks'."""

    def __init__(self, data: TrainingData, scores: Floats) -> None:
        self._tasks = JudgedTasks(scores, data.latency_s, data.groups)
        self._chosen = {f"top{k}": self._tasks.ranked(k) for k in KS}
        self._chosen |= {f"random_top{k}": self._tasks.picked(k) for k in KS}
        self._pairwise = self._tasks.each(pairwise_accuracy)
        self._correlation = self._tasks.each(rank_correlation)

    def metrics(self, tasks: Integers, weights: Floats) -> NetworkMetrics:
        best = float(weights @ self._tasks.best[tasks])
        draws = self.draws(tasks, weights)
        return NetworkMetrics(
            tasks=len(tasks),
            programs=int(self._tasks.programs[tasks].sum()),
            **{name: best / float(weights @ each[tasks]) for name, each in self._chosen.items()},
            **{f"{name}_interval": interval_of(each) for name, each in draws.items()},
            pairwise_accuracy=float(np.nanmean(self._pairwise[tasks])),
            rank_correlation=float(np.nanmean(self._correlation[tasks])),
        )

    def draws(self, tasks: Integers, weights: Floats, seed: int = 0) -> dict[str, Floats]:
        """Return :func:`drawn_ratios` of the figures of the best k."""
        best = self._tasks.best[tasks]
        return {
            f"top{k}": drawn_ratios(best, self._chosen[f"top{k}"][tasks], weights, seed) for k in KS
        }


def network_weights(dataset: Dataset) -> dict[str, dict[str, int]]:
    """Return for each network how often it calls each of its tunable workloads."""
    rows = dataset.scan("networks").sort("network").collect()
    parts = rows.partition_by("network", maintain_order=True, as_dict=True, include_key=False)
    return {network: dict(calls.iter_rows()) for (network,), calls in parts.items()}


def evaluate_protocol(
    data: TrainingData, scores: Floats, weights: Mapping[str, Mapping[str, int]]
) -> ProtocolMetrics:
    """Judge scores network by network, on those networks whose tasks all have programs.

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
        There is no such network.
    """
    numbers = {workload_id: number for number, (workload_id, _) in enumerate(data.tasks)}
    if len(numbers) < len(data.tasks):
        raise DatasetError(
            "the protocol judges one hardware at a time, measured in one way; choose one"
        )
    judged = _Judged(data, np.asarray(scores, "float64"))
    whole = {name: calls for name, calls in weights.items() if calls.keys() <= numbers.keys()}
    if not whole:
        raise DatasetError(
            "there is no network all of whose tasks have measured programs; collect a plan with one"
        )
    networks, parts = {}, []
    for network, calls in whole.items():
        tasks = np.array([numbers[workload_id] for workload_id in calls])
        share = np.array(list(calls.values()), "float64")
        networks[network] = judged.metrics(tasks, share)
        parts.append((tasks, share))
    draws = [judged.draws(*part, seed=number) for number, part in enumerate(parts)]
    mean: dict[str, Any] = {
        f"top{k}_interval": interval_of(np.mean([each[f"top{k}"] for each in draws], 0)) for k in KS
    }
    mean |= {
        name: float(np.mean([getattr(one, name) for one in networks.values()]))
        for name in NetworkMetrics.model_fields
        if name not in mean
    }
    mean |= {"tasks": len(data.tasks), "programs": len(data.labels)}
    pooled = judged.metrics(*map(np.concatenate, zip(*parts, strict=True)))
    return ProtocolMetrics(
        **mean,
        hardware=data.tasks[0][1],
        pooled=pooled,
        networks=networks,
        not_judged=tuple(name for name in weights if name not in whole),
    )


def measured_networks(dataset: Dataset, hardware: Chosen = None) -> tuple[Dataset, str] | None:
    """Return a dataset's held-out networks, and the hardware to judge on.

    It is that of the given hardware which has most measurements of them. ``None`` if it has none of
    some task of each network.
    """
    held_out = dataset.held_out()
    judged_on = None if held_out is None else most_frequent_hardware(held_out.scan(), hardware)
    if held_out is None or judged_on is None:
        return None
    rows = held_out.scan().filter(pl.col("hardware") == judged_on)
    measured = set(rows.select(pl.col("workload_id").unique()).collect()["workload_id"])
    whole = any(calls.keys() <= measured for calls in network_weights(held_out).values())
    return (held_out, judged_on) if whole else None


def most_measured_hardware(dataset: Dataset) -> str:
    """Return the hardware that most measurements of a dataset were made on.

    Raises
    ------
    DatasetError
        The dataset has no measurements.
    """
    found = most_frequent_hardware(dataset.scan(), None)
    if found is None:
        raise DatasetError(f"{dataset.path} has no measurements")
    return found
