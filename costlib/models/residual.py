"""A correction of a global model by what one tuning run has measured.

The global model's scores are the starting point and a few small trees, trained to rank the run's
own measurements, are added to them (AutoTVM's f_global + f_local; TenSet's plus_mix_task).
"""

from __future__ import annotations

from typing import Any

import lightgbm as lgb
import numpy as np

from costlib.features.batch import FeatureBatch, Floats
from costlib.models.base import CostModel, Scores

_MIN_PROGRAMS = 16
"""With fewer measurements the global model stands alone."""

_LEVELS = 31


class CorrectedModel:
    """Global scores plus a local correction, refitted as measurements come in.

    Parameters
    ----------
    base
        The global model.
    seed
        Seed of the correction's trees.
    """

    def __init__(self, base: CostModel, *, seed: int = 0) -> None:
        self.base = base
        self._seed = seed
        self._correction: lgb.Booster | None = None

    def predict(self, batch: FeatureBatch) -> Scores:
        """Score programs; float64 `n`."""
        scores = self.base.predict(batch)
        if self._correction is None or len(batch) == 0:
            return scores
        correction = self._correction.predict(_columns(batch, scores))
        return np.asarray(scores + correction, "float64")

    def refit(
        self,
        batch: FeatureBatch,
        latency_s: np.ndarray[Any, np.dtype[np.float64]],
        groups: np.ndarray[Any, np.dtype[np.int64]],
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
        order = np.argsort(groups, kind="stable")
        sizes = np.unique(groups[order], return_counts=True)[1]
        best = np.array([latency_s[groups == group].min() for group in groups])
        relevance = np.rint(best / latency_s * (_LEVELS - 1)).astype("int32")
        scores = self.base.predict(batch)
        data = lgb.Dataset(
            _columns(batch, scores)[order],
            relevance[order],
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
        self._correction = lgb.train(parameters, data, num_boost_round=40)


def _columns(batch: FeatureBatch, scores: Scores) -> Floats:
    return np.hstack([batch.pooled(), scores[:, None].astype("float32")])
