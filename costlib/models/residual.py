"""A correction of a global model by what one tuning run has measured.

The global model's scores are the starting point and a few small trees, trained to rank the run's
own measurements, are added to them (AutoTVM's f_global + f_local; TenSet's plus_mix_task). How much
of them is added is decided on measurements that they were not trained on, so that the correction
is left out where it would make the ranking worse.
"""

from __future__ import annotations

from typing import Any, Protocol

import lightgbm as lgb
import numpy as np

from costlib.features.batch import FeatureBatch, Floats
from costlib.models.base import Scores

_MIN_PROGRAMS = 16
"""With fewer measurements the global model stands alone."""

_LEVELS = 31
_SHARES = (0.0, 0.5, 1.0, 2.0)

Groups = np.ndarray[Any, np.dtype[np.int64]]


class Predicts(Protocol):
    """What a global model must be able to do."""

    def predict(self, batch: FeatureBatch) -> Scores:
        """Score programs; float64 `n`."""


class CorrectedModel:
    """Global scores plus a local correction, refitted as measurements come in.

    Parameters
    ----------
    base
        The global model.
    seed
        Seed of the correction's trees.

    Attributes
    ----------
    share
        How much of the correction is added.
    """

    def __init__(self, base: Predicts, *, seed: int = 0) -> None:
        self.base = base
        self.share = 0.0
        self._seed = seed
        self._correction: lgb.Booster | None = None

    def predict(self, batch: FeatureBatch) -> Scores:
        """Score programs; float64 `n`."""
        scores = self.base.predict(batch)
        if self._correction is None or len(batch) == 0:
            return scores
        correction = self._correction.predict(_columns(batch, scores), num_threads=1)
        return np.asarray(scores + self.share * correction, "float64")

    def refit(
        self,
        batch: FeatureBatch,
        latency_s: np.ndarray[Any, np.dtype[np.float64]],
        groups: Groups,
    ) -> None:
        """Fit the correction to everything measured so far.

        Parameters
        ----------
        batch
            `n` measured programs.
        latency_s, groups
            `n` each: seconds, and the index of the task.
        """
        if len(batch) < _MIN_PROGRAMS:
            return
        scores = self.base.predict(batch)
        columns = _columns(batch, scores)
        held_back = np.arange(len(batch)) % 2 == 1
        correction = np.empty(len(batch))
        for half in (held_back, ~held_back):
            booster = self._fit(columns[~half], scores[~half], latency_s[~half], groups[~half])
            correction[half] = booster.predict(columns[half], num_threads=1)
        ranked = [
            _pairs_in_order(scores + share * correction, latency_s, groups) for share in _SHARES
        ]
        self.share = _SHARES[int(np.argmax(ranked))]
        self._correction = self._fit(columns, scores, latency_s, groups) if self.share else None

    def _fit(self, columns: Floats, scores: Scores, latency_s: Scores, groups: Groups) -> Any:
        order = np.argsort(groups, kind="stable")
        sizes = np.unique(groups, return_counts=True)[1]
        best = np.minimum.reduceat(latency_s[order], np.cumsum([0, *sizes[:-1]]))
        labels = np.repeat(best, sizes) / latency_s[order]
        data = lgb.Dataset(
            columns[order],
            np.rint(labels * (_LEVELS - 1)).astype("int32"),
            group=sizes,
            init_score=scores[order],
        )
        parameters = {
            "objective": "lambdarank",
            "label_gain": list(np.arange(_LEVELS, dtype=float)),
            "num_leaves": 6,
            "learning_rate": 0.05,
            "min_data_in_leaf": 5,
            "feature_fraction": 0.5,
            "lambda_l2": 1.0,
            "num_threads": 1,
            "seed": self._seed,
            "deterministic": True,
            "verbosity": -1,
        }
        return lgb.train(parameters, data, num_boost_round=40)


def _pairs_in_order(scores: Scores, latency_s: Scores, groups: Groups) -> float:
    """Return the share of pairs of programs of one task that the scores put in order."""
    comparable = (groups[:, None] == groups) & (latency_s[:, None] < latency_s)
    higher = (scores[:, None] > scores) + 0.5 * (scores[:, None] == scores)
    return float(higher[comparable].mean()) if comparable.any() else 0.5


def _columns(batch: FeatureBatch, scores: Scores) -> Floats:
    return np.hstack([batch.pooled(), scores[:, None].astype("float32")])
