"""How well scores rank programs within tasks, and whether a model is as sure as it is right."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import polars as pl
from scipy.special import comb, expit

from costlib.arrays import Floats, Integers
from costlib.frozen import Frozen

_BINS = 10
"""Of pairs, by how sure a model is."""

_MOST_PROGRAMS = 128
"""Of one task whose pairs are looked at; those of more would crowd out those of the others."""


Interval = tuple[float, float]

_DRAWS = 1000
"""Of tasks, for an interval."""


class Metrics(Frozen):
    """Figures over the tasks of a dataset, each task counted by its weight.

    Attributes
    ----------
    tasks, programs
        What they were computed on.
    top1, top5
        Sum over tasks of weight x best latency, divided by the sum of weight x the best
        latency among the k programs ranked first (TenSet's definition, for one network).
    top1_interval, top5_interval
        Where these lie with 95 % confidence: tasks drawn anew, by the bootstrap.
    top1_task_mean, top5_task_mean
        The same ratio for each task alone, averaged over tasks: heavy tasks count no more than
        light ones.
    random_top1, random_top5, random_top1_task_mean, random_top5_task_mean
        What k programs picked at random get, in expectation.
    pairwise_accuracy
        Share of pairs of programs of one task that the scores put in the right order, averaged
        over tasks; 0.5 is guessing.
    """

    tasks: int
    programs: int
    top1: float
    top5: float
    top1_interval: Interval
    top5_interval: Interval
    top1_task_mean: float
    top5_task_mean: float
    random_top1: float
    random_top5: float
    random_top1_task_mean: float
    random_top5_task_mean: float
    pairwise_accuracy: float


def evaluate_scores(
    scores: Floats, latency_s: Floats, groups: Integers, weights: Sequence[float] | None = None
) -> Metrics:
    """Compare scores with latencies.

    Parameters
    ----------
    scores, latency_s, groups
        `n` each: a model's score, the measured seconds, and the index of the task.
    weights
        Calls of each task in a network, indexed like ``groups``. Without them the tasks are of no
        network, and as many calls are made up as let all take equally long at their best: the
        slowest task would decide otherwise.
    """
    judged = JudgedTasks(scores, latency_s, groups)
    indices = np.unique(groups)
    weight = 1 / judged.best if weights is None else np.asarray(weights, "float64")[indices]
    total = float((weight * judged.best).sum())
    figures: dict[str, Any] = {}
    for name, chosen_by in (("", judged.ranked), ("random_", judged.picked)):
        for k in (1, 5):
            chosen = chosen_by(k)
            figures[f"{name}top{k}"] = total / float((weight * chosen).sum())
            figures[f"{name}top{k}_task_mean"] = float(np.mean(judged.best / chosen))
            if not name:
                draws = drawn_ratios(judged.best, chosen, weight)
                figures[f"top{k}_interval"] = interval_of(draws)
    pairs = judged.each(pairwise_accuracy)
    return Metrics(
        tasks=len(indices),
        programs=len(scores),
        **figures,
        pairwise_accuracy=float(np.nanmean(pairs)) if not np.isnan(pairs).all() else float("nan"),
    )


def drawn_ratios(best: Floats, chosen: Floats, weights: Floats, seed: int = 0) -> Floats:
    """Return :func:`evaluate_scores`'s ratio for many draws of as many tasks, with repetition."""
    count = len(best)
    drawn = np.random.default_rng(seed).integers(count, size=(_DRAWS, count))
    ratios: Floats = (weights * best)[drawn].sum(1) / (weights * chosen)[drawn].sum(1)
    return ratios


def interval_of(draws: Floats) -> Interval:
    """Return where 95 % of the draws lie."""
    low, high = np.percentile(draws, (2.5, 97.5))
    return float(low), float(high)


class JudgedTasks:
    """What scores make of each task, as arrays over the tasks.

    Attributes
    ----------
    programs, best
        How many programs it has, and its best latency.
    """

    def __init__(self, scores: Floats, latency_s: Floats, groups: Integers) -> None:
        members = [np.flatnonzero(groups == group) for group in np.unique(groups)]
        self._tasks = [(scores[rows], latency_s[rows]) for rows in members]
        self.programs = np.array([len(rows) for rows in members])
        self.best = self.each(lambda _, latency_s: float(latency_s.min()))

    def each(self, figure: Callable[[Floats, Floats], float]) -> Floats:
        """Return a figure of the scores and latencies of each task."""
        return np.array([figure(scores, latency_s) for scores, latency_s in self._tasks])

    def ranked(self, k: int) -> Floats:
        """Return :func:`top_k` of each task."""
        return self.each(lambda scores, latency_s: top_k(scores, latency_s, k))

    def picked(self, k: int) -> Floats:
        """Return :func:`expected_best` of each task."""
        return self.each(lambda _, latency_s: expected_best(latency_s, k))


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
    ranks = pl.Series(scores).rank().to_numpy(), pl.Series(-latency_s).rank().to_numpy()
    if any(np.ptp(one) == 0 for one in ranks):
        return float("nan")
    return float(np.corrcoef(*ranks)[0, 1])


class Calibration(Frozen):
    """Pairs of programs of one task, in bins with as many pairs each.

    Attributes
    ----------
    expected
        How probably the one with the higher score is faster, by the logistic function of the
        scores' difference, which is what ranking losses take them for.
    observed
        In which share it was.
    """

    expected: tuple[float, ...]
    observed: tuple[float, ...]


def calibrate_pairs(scores: Floats, latency_s: Floats, groups: Integers) -> Calibration:
    """Compare the scores' differences with what was measured; see :func:`evaluate_scores`."""
    from sklearn.calibration import calibration_curve

    gaps, right = [np.zeros(0)], [np.zeros(0, bool)]
    for group in np.unique(groups):
        rows = np.flatnonzero(groups == group)[:_MOST_PROGRAMS]
        one, other = (rows[places] for places in np.triu_indices(len(rows), 1))
        gap = scores[one] - scores[other]
        differ = (gap != 0) & (latency_s[one] != latency_s[other])
        gaps.append(np.abs(gap[differ]))
        right.append(((gap > 0) == (latency_s[one] < latency_s[other]))[differ])
    if not sum(map(len, gaps)):
        return Calibration(expected=(), observed=())
    observed, expected = calibration_curve(
        np.concatenate(right), expit(np.concatenate(gaps)), n_bins=_BINS, strategy="quantile"
    )
    return Calibration(expected=tuple(expected.tolist()), observed=tuple(observed.tolist()))
