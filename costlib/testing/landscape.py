"""How fast every program of some tasks is, as far as what was measured tells.

Boosted trees are fitted in folds: each program is predicted by trees that have not seen it, which
is what they are judged by. What they leave unexplained belongs to the landscape, too: a program
draws it from the errors that were made at programs predicted to be about as fast.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from costlib.arrays import Float32s, Floats
from costlib.features.batch import FeatureBatch
from costlib.frozen import Frozen
from costlib.models.boosting import lgb
from costlib.training.batches import TrainingData
from costlib.training.metrics import JudgedTasks, rank_correlation

_FOLDS = 4
_TREES = 300
_PARAMETERS = {
    "objective": "regression",
    "num_leaves": 63,
    "learning_rate": 0.06,
    "max_bin": 63,
    "min_data_in_leaf": 5,
    "feature_fraction": 0.15,
    "bagging_fraction": 0.8,
    "bagging_freq": 1,
    "deterministic": True,
    "force_row_wise": True,
    "verbosity": -1,
}

_LEAST_WEIGHT = 0.1
"""Of a program, relative to its task's fastest: searches live among the fast ones."""

_OWN = 10
"""How many times as much as others the programs of the tasks count that are asked for."""

_NEIGHBOURS = 200
"""Programs predicted to be about as fast, from whose errors one draws."""

_NEAR_BEST = 1.5


class Fit(Frozen):
    """How well a landscape predicts programs that it has not seen.

    Attributes
    ----------
    tasks, programs
        That it was judged on.
    rank_correlation
        Spearman's, within a task; averaged over tasks.
    top1, top5
        A task's best latency relative to that of the program ranked first, or to the best of the
        first five; averaged over tasks.
    unexplained, unexplained_near_best
        Standard deviation of what the logarithms of measured and predicted latencies differ by: of
        all programs, and of those within 1.5 times their task's best latency.
    """

    tasks: int
    programs: int
    rank_correlation: float
    top1: float
    top5: float
    unexplained: float
    unexplained_near_best: float


class Landscape:
    """Latencies of the programs of tasks, on one hardware.

    Parameters
    ----------
    data
        Programs that were measured there, see :func:`costlib.training.batches.assemble`.
    only
        Workload ids of the tasks that it will be asked for; the others teach the trees alone.
    seed
        Of the folds and the trees.

    Attributes
    ----------
    fit
        How good it is at the tasks that it will be asked for.
    """

    def __init__(self, data: TrainingData, only: Collection[str], seed: int = 0) -> None:
        throughput = -np.log(data.latency_s)
        means = np.bincount(data.groups, throughput) / np.bincount(data.groups)
        target = throughput - means[data.groups]
        fold = np.random.default_rng(seed).permutation(len(target)) % _FOLDS
        table = data.batch.pooled()
        groups = [group for group, (task, _) in enumerate(data.tasks) if task in only]
        asked = np.isin(data.groups, groups)
        weight = np.maximum(data.labels, _LEAST_WEIGHT) * np.where(asked, _OWN, 1)
        predicted = np.zeros(len(target))
        self._trees = []
        for part in range(_FOLDS):
            seen, held_back = fold != part, (fold == part) & asked
            trees = _grown(table[seen], target[seen], weight[seen], seed + part)
            if held_back.any():
                predicted[held_back] = trees.predict(table[held_back])
            self._trees.append(trees)
        self._levels: dict[str, tuple[float, float]] = {}
        behind = np.zeros(len(target))
        for group in groups:
            own = data.groups == group
            fastest = float(predicted[own].max())
            behind[own] = fastest - predicted[own]
            self._levels.setdefault(data.tasks[group][0], (float(means[group]), fastest))
        error = (target - predicted)[asked]
        order = np.argsort(behind[asked], kind="stable")
        self._behind, self._errors = behind[asked][order], error[order]
        self.fit = _judged(data, predicted, asked)

    def __contains__(self, workload_id: str) -> bool:
        """Whether it was fitted to programs of a task."""
        return workload_id in self._levels

    def latency_s(self, workload_id: str, batch: FeatureBatch, chance: Floats) -> Floats:
        """Return what programs of a task take.

        Parameters
        ----------
        workload_id, batch
            The task, and `n` lowered programs of it.
        chance
            float64 `n` in [0, 1]: which of the errors each program draws, the lowest to the highest
            throughput.

        Returns
        -------
        ndarray
            Seconds, float64 `n`.
        """
        mean, fastest = self._levels[workload_id]
        table = batch.pooled()
        predicted = np.mean([trees.predict(table, num_threads=1) for trees in self._trees], axis=0)
        count = min(_NEIGHBOURS, len(self._errors))
        place = np.searchsorted(self._behind, fastest - predicted) - count // 2
        first = np.clip(place, 0, len(self._errors) - count)
        nearest = self._errors[first[:, None] + np.arange(count)]
        drawn = np.sort(nearest, axis=1)[
            np.arange(len(first)), np.minimum(chance * count, count - 1).astype("int64")
        ]
        return np.asarray(np.exp(-(mean + predicted + drawn)))


def _grown(table: Float32s, target: Floats, weight: Floats, seed: int) -> lgb.Booster:
    data = lgb.Dataset(table, target, weight=weight)
    return lgb.train(_PARAMETERS | {"seed": seed}, data, num_boost_round=_TREES)


def _judged(data: TrainingData, predicted: Floats, asked: np.ndarray) -> Fit:
    scores, latency_s, groups = predicted[asked], data.latency_s[asked], data.groups[asked]
    judged = JudgedTasks(scores, latency_s, groups)
    error = scores + np.log(latency_s)
    _, numbers = np.unique(groups, return_inverse=True)
    error -= (np.bincount(numbers, np.log(latency_s)) / np.bincount(numbers))[numbers]
    return Fit(
        tasks=len(judged.best),
        programs=len(scores),
        rank_correlation=float(np.nanmean(judged.each(rank_correlation))),
        top1=float(np.mean(judged.best / judged.ranked(1))),
        top5=float(np.mean(judged.best / judged.ranked(5))),
        unexplained=float(np.std(error)),
        unexplained_near_best=float(np.std(error[data.labels[asked] > 1 / _NEAR_BEST])),
    )
