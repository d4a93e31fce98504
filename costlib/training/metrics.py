"""How well scores rank programs: top-k and pairwise accuracy, within tasks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from pydantic import BaseModel, ConfigDict
from scipy.special import comb
from scipy.stats import rankdata

from costlib.arrays import Floats, Integers


class Metrics(BaseModel):
    """Figures over the tasks of a dataset, each task counted by its weight.

    Attributes
    ----------
    tasks, programs
        What they were computed on.
    top1, top5
        Sum over tasks of weight x best latency, divided by the sum of weight x the best
        latency among the k programs ranked first (TenSet's definition, for one network).
    top1_task_mean, top5_task_mean
        The same ratio for each task alone, averaged over tasks: heavy tasks count no more than
        light ones.
    random_top1, random_top5, random_top1_task_mean, random_top5_task_mean
        What k programs picked at random get, in expectation.
    pairwise_accuracy
        Share of pairs of programs of one task that the scores put in the right order, averaged
        over tasks; 0.5 is guessing.
    """

    model_config = ConfigDict(frozen=True)

    tasks: int
    programs: int
    top1: float
    top5: float
    top1_task_mean: float
    top5_task_mean: float
    random_top1: float
    random_top5: float
    random_top1_task_mean: float
    random_top5_task_mean: float
    pairwise_accuracy: float


def evaluate_scores(
    scores: Floats,
    latency_s: Floats,
    groups: Integers,
    weights: Sequence[float] | None = None,
) -> Metrics:
    """Compare scores with latencies.

    Parameters
    ----------
    scores, latency_s, groups
        `n` each: a model's score, the measured seconds, and the index of the task.
    weights
        Calls of each task, indexed like ``groups``; 1 each if not given.
    """
    indices = np.unique(groups)
    weight = np.ones(int(indices.max()) + 1) if weights is None else np.asarray(weights, "float64")
    members = [np.flatnonzero(groups == index) for index in indices]
    best = np.array([latency_s[m].min() for m in members])

    def pooled(chosen: Floats) -> float:
        return float((weight[indices] * best).sum() / (weight[indices] * chosen).sum())

    ranked = {k: np.array([top_k(scores[m], latency_s[m], k) for m in members]) for k in (1, 5)}
    picked = {k: np.array([expected_best(latency_s[m], k) for m in members]) for k in (1, 5)}
    pairs = [pairwise_accuracy(scores[m], latency_s[m]) for m in members]
    return Metrics(
        tasks=len(members),
        programs=len(scores),
        top1=pooled(ranked[1]),
        top5=pooled(ranked[5]),
        top1_task_mean=float(np.mean(best / ranked[1])),
        top5_task_mean=float(np.mean(best / ranked[5])),
        random_top1=pooled(picked[1]),
        random_top5=pooled(picked[5]),
        random_top1_task_mean=float(np.mean(best / picked[1])),
        random_top5_task_mean=float(np.mean(best / picked[5])),
        pairwise_accuracy=float(np.nanmean(pairs)) if not np.isnan(pairs).all() else float("nan"),
    )


def top_k(scores: Floats, latency_s: Floats, k: int) -> float:
    """Return the best latency among the k programs with the highest scores."""
    return float(latency_s[np.argsort(-scores, kind="stable")[:k]].min())


def expected_best(latency_s: Floats, k: int) -> float:
    """Return the expected best latency of k programs picked at random without repetition."""
    ordered = np.sort(latency_s)
    n = len(ordered)
    k = min(k, n)
    is_the_best = comb(n - 1 - np.arange(n), k - 1) / comb(n, k)
    return float(is_the_best @ ordered)


def pairwise_accuracy(scores: Floats, latency_s: Floats) -> float:
    """Return the share of pairs in the right order; equal scores are half right.

    NaN if all latencies are equal.
    """
    faster = latency_s[:, None] < latency_s[None, :]
    if not faster.any():
        return float("nan")
    higher = scores[:, None] > scores[None, :]
    equal = scores[:, None] == scores[None, :]
    return float((higher[faster] + 0.5 * equal[faster]).mean())


def rank_correlation(scores: Floats, latency_s: Floats) -> float:
    """Return Spearman's correlation of scores and throughputs; NaN if either is constant."""
    ranks = rankdata(scores), rankdata(-latency_s)
    if any(np.ptp(one) == 0 for one in ranks):
        return float("nan")
    return float(np.corrcoef(*ranks)[0, 1])
