"""A correction of a global model by what one tuning run has measured.

The correction is a Gaussian process over what the global model leaves unexplained of the logarithm
of the throughput. Two programs are as alike as they share leaves of the model's trees, so likeness
is in the terms that matter for speed on many tasks; it counts fully within a task and less across
tasks. AutoTVM (f_global + f_local) and TenSet (plus_mix_task) fit trees to the residual instead,
which takes many more measurements before it helps.

In the space of leaves this is a ridge regression: predicting looks up a number for each tree.
"""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.linalg import LinearOperator, cg

from costlib.features.batch import FeatureBatch
from costlib.models.base import Scores

_FEWEST_PROGRAMS = 4
"""With fewer measurements the global model stands alone."""

_FEWEST_JUDGED = 64
"""From so many measurements on, the correction must prove itself on those held back; with fewer,
their verdict is mostly chance."""

_SHARES = (1.0, 0.5, 0.0)
"""How much of the correction may be added; of equally good ones, the first is taken."""

_OF_ALL_TASKS = 0.3
"""How much of the likeness counts between programs of different tasks."""

_NOISE = 0.2
"""Variance of a measurement that no likeness explains, relative to what likeness explains."""

_RANDOM_TREES = 100
_RANDOM_DEPTH = 8

Groups = np.ndarray[Any, np.dtype[np.int64]]
Leaves = np.ndarray[Any, np.dtype[np.int64]]
Table = np.ndarray[Any, np.dtype[np.float64]]


class Predicts(Protocol):
    """What a global model must be able to do."""

    def predict(self, batch: FeatureBatch) -> Scores:
        """Score programs; float64 `n`."""


@runtime_checkable
class HasLeaves(Protocol):
    """A model of trees."""

    def leaves(self, batch: FeatureBatch) -> Leaves:
        """Return the leaf of each of `t` trees that a program falls into; int64 `n x t`."""


class CorrectedModel:
    """Global scores plus a local correction, refitted as measurements come in.

    Parameters
    ----------
    base
        The global model. If it has no trees, random ones divide the run's own measurements.
    seed
        Seed of the random trees.

    Attributes
    ----------
    share
        How much of the correction is added.
    """

    def __init__(self, base: Predicts, *, seed: int = 0) -> None:
        self.base = base
        self.share = 0.0
        self._seed = seed
        self._trees: HasLeaves | None = base if isinstance(base, HasLeaves) else None
        self._shared: Table | None = None
        self._of_task: dict[int, Table] = {}

    def predict(self, batch: FeatureBatch, task: int | None = None) -> Scores:
        """Score programs.

        Parameters
        ----------
        batch
            `n` programs.
        task
            Their task's index in :meth:`refit`; one that was not there is corrected by what all
            tasks have in common.

        Returns
        -------
        ndarray
            float64 `n`.
        """
        scores = self.base.predict(batch)
        if not self.share or self._shared is None or self._trees is None or len(batch) == 0:
            return scores
        table = self._shared if task is None else self._of_task.get(task, self._shared)
        return scores + self.share * _looked_up(table, self._trees.leaves(batch))

    def refit(self, batch: FeatureBatch, latency_s: Scores, groups: Groups) -> None:
        """Fit the correction to everything measured so far.

        Parameters
        ----------
        batch
            `n` measured programs.
        latency_s, groups
            `n` each: seconds, and the index of the task.
        """
        if len(batch) < _FEWEST_PROGRAMS:
            return
        if not isinstance(self.base, HasLeaves):
            self._trees = _RandomTrees(batch, self._seed)
        assert self._trees is not None
        scores, leaves = self.base.predict(batch), self._trees.leaves(batch)
        throughput = -np.log(latency_s)
        self.share = _SHARES[0]
        if len(batch) >= _FEWEST_JUDGED:
            held_back = np.arange(len(batch)) % 2 == 1
            correction = np.empty(len(batch))
            for half in (held_back, ~held_back):
                parts = scores[~half], throughput[~half], leaves[~half], groups[~half]
                shared, of_task = _fit(*parts)
                for task in np.unique(groups[half]):
                    rows = half & (groups == task)
                    correction[rows] = _looked_up(of_task.get(int(task), shared), leaves[rows])
            ranked = [
                _pairs_in_order(scores + share * correction, throughput, groups)
                for share in _SHARES
            ]
            self.share = _SHARES[int(np.argmax(ranked))]
        self._shared, self._of_task = _fit(scores, throughput, leaves, groups)


def _fit(
    scores: Scores, throughput: Scores, leaves: Leaves, groups: Groups
) -> tuple[Table, dict[int, Table]]:
    """Fit the process; return what each leaf adds, float64 `t x leaves`, in any task and by task.

    It explains the logarithm of the throughput, which has the scale of the scores when both have
    the same spread within tasks.
    """
    tasks, numbers = np.unique(groups, return_inverse=True)
    scores, throughput = _centred(scores, numbers), _centred(throughput, numbers)
    spread, spread_of_scores = np.linalg.norm(throughput), np.linalg.norm(scores)
    scale = float(spread_of_scores / spread) if spread and spread_of_scores else 1.0
    residual = _centred(scale * throughput - scores, numbers)
    trees, width = leaves.shape[1], int(leaves.max()) + 1
    columns = leaves + width * np.arange(trees)
    shared = _one_hot(columns, trees * width)
    own = _one_hot(columns + (trees * width * numbers)[:, None], len(tasks) * trees * width)

    def likeness(vector: Scores) -> Scores:
        alike = _OF_ALL_TASKS * (shared @ (shared.T @ vector))
        alike += (1 - _OF_ALL_TASKS) * (own @ (own.T @ vector))
        return np.asarray(alike / trees + _NOISE * vector)

    count = len(scores)
    operator = LinearOperator((count, count), matvec=likeness, dtype="float64")
    weights = cg(operator, residual, rtol=1e-6, maxiter=500)[0] / trees
    in_any = _OF_ALL_TASKS * (shared.T @ weights).reshape(trees, width)
    in_one = (1 - _OF_ALL_TASKS) * (own.T @ weights).reshape(len(tasks), trees, width)
    return in_any, {int(task): in_any + part for task, part in zip(tasks, in_one, strict=True)}


def _one_hot(columns: Leaves, width: int) -> Any:
    count, trees = columns.shape
    starts = np.arange(0, count * trees + 1, trees)
    return csr_array((np.ones(count * trees), columns.ravel(), starts), shape=(count, width))


def _looked_up(table: Table, leaves: Leaves) -> Scores:
    """Add up what a program's leaves are worth; a leaf that was never seen is worth nothing."""
    known = leaves < table.shape[1]
    values = table[np.arange(len(table)), np.where(known, leaves, 0)]
    return np.asarray((values * known).sum(1))


def _centred(values: Scores, numbers: Groups) -> Scores:
    """Subtract the mean of each task."""
    sums, counts = np.bincount(numbers, values), np.bincount(numbers)
    return np.asarray(values - (sums / counts)[numbers])


def _pairs_in_order(scores: Scores, throughput: Scores, groups: Groups) -> float:
    """Return the share of pairs of programs of one task that the scores put in order."""
    right, all_pairs = 0.0, 0
    for task in np.unique(groups):
        rows = groups == task
        faster = throughput[rows][:, None] > throughput[rows]
        apart = (scores[rows][:, None] - scores[rows])[faster]
        right += float(np.sum(apart > 0) + 0.5 * np.sum(apart == 0))
        all_pairs += len(apart)
    return right / all_pairs if all_pairs else 0.5


class _RandomTrees:
    """Trees whose splits are drawn at random within the spread of some programs' features."""

    def __init__(self, batch: FeatureBatch, seed: int) -> None:
        from sklearn.ensemble import RandomTreesEmbedding

        self._forest = RandomTreesEmbedding(
            _RANDOM_TREES, max_depth=_RANDOM_DEPTH, random_state=seed
        )
        varying = np.flatnonzero(np.ptp(batch.pooled(), axis=0) > 0)
        self._columns = varying if len(varying) else np.arange(1)
        self._forest.fit(batch.pooled()[:, self._columns])

    def leaves(self, batch: FeatureBatch) -> Leaves:
        """Return the leaf of each tree; int64 `n x t`."""
        return np.asarray(self._forest.apply(batch.pooled()[:, self._columns]), "int64")
