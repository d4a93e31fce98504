"""A correction of a global model by what one tuning run has measured.

The correction is a Gaussian process over what the global model leaves unexplained of the logarithm
of the throughput. Two programs are as alike as they share leaves of the model's trees, so likeness
is in the terms that matter for speed on many tasks; it counts fully within a task and less across
tasks. AutoTVM (f_global + f_local) and TenSet (plus_mix_task) fit trees to the residual instead,
which takes many more measurements before it helps. A global model without trees is given some:
extremely randomised ones (Geurts et al. 2006), grown on what the run has measured.

In the space of leaves this is a ridge regression: predicting looks up a number for each tree.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.linalg import LinearOperator, cg

from costlib.arrays import Float32s, Floats, Integers
from costlib.features.batch import FeatureBatch, select
from costlib.models.base import centred

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

_OWN_TREES = 100


class Predicts(Protocol):
    """What a global model must be able to do."""

    def predict(self, batch: FeatureBatch) -> Floats:
        """Score programs; float64 `n`."""


@runtime_checkable
class HasLeaves(Protocol):
    """A model of trees."""

    def leaves(self, batch: FeatureBatch) -> Integers:
        """Return the leaf of each of `t` trees that a program falls into; int64 `n x t`."""


class CorrectedModel:
    """Global scores plus a local correction, refitted as measurements come in.

    Parameters
    ----------
    base
        The global model. If it has no trees, the run's own measurements grow them.
    seed
        Seed of the trees.

    Attributes
    ----------
    share
        How much of the correction is added.
    """

    def __init__(self, base: Predicts, *, seed: int = 0) -> None:
        self.base = base
        self.share = 0.0
        self._seed = seed
        self._local: _Correction | None = None

    def predict(self, batch: FeatureBatch, task: int | None = None) -> Floats:
        """Score programs; float64 `n`.

        Parameters
        ----------
        batch
            `n` programs.
        task
            Their task's index in :meth:`refit`; one that was not there is corrected by what all
            tasks have in common.
        """
        scores = self.base.predict(batch)
        if not self.share or self._local is None or len(batch) == 0:
            return scores
        return scores + self.share * self._local.mean(self._local.trees.leaves(batch), task)

    def refit(self, batch: FeatureBatch, latency_s: Floats, groups: Integers) -> None:
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
        scores, throughput = self.base.predict(batch), -np.log(latency_s)
        base = self.base if isinstance(self.base, HasLeaves) else None
        known = None if base is None else base.leaves(batch)

        def fit(seen: Integers) -> tuple[_Correction, Integers]:
            """Learn from some of the programs; return the leaves of all as well."""
            left = _unexplained(scores[seen], throughput[seen], groups[seen])
            trees = base or _OwnTrees(select(batch, seen), left, self._seed)
            leaves = trees.leaves(batch) if known is None else known
            return _Correction(trees, *_worth(left, leaves[seen], groups[seen])), leaves

        self.share = _SHARES[0]
        if len(batch) >= _FEWEST_JUDGED:
            held_back = np.arange(len(batch)) % 2 == 1
            correction = np.empty(len(batch))
            for half in (held_back, ~held_back):
                local, leaves = fit(np.flatnonzero(~half))
                for task in np.unique(groups[half]):
                    rows = half & (groups == task)
                    correction[rows] = local.mean(leaves[rows], int(task))
            ranked = [
                _pairs_in_order(scores + share * correction, throughput, groups)
                for share in _SHARES
            ]
            self.share = _SHARES[int(np.argmax(ranked))]
        self._local, _ = fit(np.arange(len(batch)))


@dataclass(frozen=True)
class _Correction:
    """A fitted Gaussian process.

    Attributes
    ----------
    trees
        Of `t` trees.
    shared, of_task
        What each leaf of each tree is worth, float64 `t x leaves`, in any task and in those seen.
    """

    trees: HasLeaves
    shared: Floats
    of_task: Mapping[int, Floats]

    def mean(self, leaves: Integers, task: int | None) -> Floats:
        """Add up what a program's leaves are worth; one that was never seen is worth nothing."""
        table = self.shared if task is None else self.of_task.get(task, self.shared)
        return worth_of(table, leaves)


def worth_of(table: Floats, leaves: Integers) -> Floats:
    """Add up what the leaves of `n` programs are worth; float64 `n`.

    Parameters
    ----------
    table
        float64 `t x leaves`: see :func:`shared_worth`.
    leaves
        int64 `n x t`; one that is not in the table is worth nothing.
    """
    known = leaves < table.shape[1]
    values = table[np.arange(len(table)), np.where(known, leaves, 0)]
    return np.asarray((values * known).sum(1))


def shared_worth(scores: Floats, latency_s: Floats, leaves: Integers, groups: Integers) -> Floats:
    """Return what leaves are worth in any task, beyond what the scores know of `n` programs.

    Parameters
    ----------
    scores, latency_s, groups
        `n` each: a model's scores, seconds, and the index of the task.
    leaves
        int64 `n x t`: the leaf of each of the model's trees.

    Returns
    -------
    ndarray
        float64 `t x leaves`; what holds in one task alone is left out.
    """
    left = _unexplained(scores, -np.log(latency_s), groups)
    return _worth(left, leaves, groups)[0]


def _unexplained(scores: Floats, throughput: Floats, groups: Integers) -> Floats:
    """Return what scores leave of the throughput's logarithm, scaled to their spread in a task."""
    scores, throughput = centred(scores, groups), centred(throughput, groups)
    norms = float(np.linalg.norm(scores)), float(np.linalg.norm(throughput))
    scale = norms[0] / norms[1] if all(norms) else 1.0
    return centred(scale * throughput - scores, groups)


def _worth(
    residual: Floats, leaves: Integers, groups: Integers
) -> tuple[Floats, dict[int, Floats]]:
    """Explain a residual by what leaves that programs share are worth in any task, and in each."""
    tasks, numbers = np.unique(groups, return_inverse=True)
    trees, width = leaves.shape[1], int(leaves.max()) + 1
    columns = leaves + width * np.arange(trees)
    shared = _one_hot(columns, trees * width)
    own = _one_hot(columns + (trees * width * numbers)[:, None], len(tasks) * trees * width)

    def likeness(vector: Floats) -> Floats:
        alike = _OF_ALL_TASKS * (shared @ (shared.T @ vector))
        alike += (1 - _OF_ALL_TASKS) * (own @ (own.T @ vector))
        return np.asarray(alike / trees + _NOISE * vector)

    count = len(residual)
    operator = LinearOperator((count, count), matvec=likeness, dtype="float64")
    weights = cg(operator, residual, rtol=1e-6, maxiter=500)[0]
    in_any = _OF_ALL_TASKS / trees * (shared.T @ weights).reshape(trees, width)
    in_one = (1 - _OF_ALL_TASKS) / trees * (own.T @ weights).reshape(len(tasks), trees, width)
    return in_any, {int(task): in_any + part for task, part in zip(tasks, in_one, strict=True)}


def _one_hot(columns: Integers, width: int) -> Any:
    count, trees = columns.shape
    starts = np.arange(0, count * trees + 1, trees)
    return csr_array((np.ones(count * trees), columns.ravel(), starts), shape=(count, width))


def _pairs_in_order(scores: Floats, throughput: Floats, groups: Integers) -> float:
    """Return the share of pairs of programs of one task that the scores put in order."""
    right, all_pairs = 0.0, 0
    for task in np.unique(groups):
        rows = groups == task
        faster = throughput[rows][:, None] > throughput[rows]
        apart = (scores[rows][:, None] - scores[rows])[faster]
        right += float(np.sum(apart > 0) + 0.5 * np.sum(apart == 0))
        all_pairs += len(apart)
    return right / all_pairs if all_pairs else 0.5


class _OwnTrees:
    """Extremely randomised trees, grown until they tell the programs of a run apart.

    They are those of scikit-learn's ``ExtraTreesRegressor``, whose checks of every tree take longer
    than growing one on the few programs of a run.
    """

    def __init__(self, batch: FeatureBatch, residual: Floats, seed: int) -> None:
        from sklearn import config_context
        from sklearn.tree import ExtraTreeRegressor

        pooled = batch.pooled()
        varying = np.flatnonzero(np.ptp(pooled, axis=0) > 0)
        self._columns = varying if len(varying) else np.arange(1)
        table = self._table(batch)
        seeds = np.random.RandomState(seed).randint(np.iinfo("int32").max, size=_OWN_TREES)
        with config_context(skip_parameter_validation=True):
            self._trees = [
                ExtraTreeRegressor(max_features="sqrt", random_state=int(own))
                .fit(table, residual, check_input=False)
                .tree_
                for own in seeds
            ]

    def leaves(self, batch: FeatureBatch) -> Integers:
        """Return the leaf of each tree; int64 `n x t`."""
        table = self._table(batch)
        return np.stack([tree.apply(table) for tree in self._trees], axis=1)

    def _table(self, batch: FeatureBatch) -> Float32s:
        return batch.pooled()[:, self._columns]
