"""Gradient-boosted trees over single statements, as in Ansor (OSDI'20).

A program's throughput is predicted as the sum of what the trees give each of its buffer stores;
the loss is squared and weighted by the throughput, so that fast programs count most.
"""

from __future__ import annotations

from pathlib import Path
from typing import Self

import lightgbm as lgb
import numpy as np
from pydantic import BaseModel, ConfigDict

from costlib.arrays import Float32s, Floats, Integers
from costlib.errors import BundleError
from costlib.features.batch import FeatureBatch
from costlib.models.base import CostModel, check_training_data
from costlib.models.trees import load_trees, save_trees


class StatementGbdtConfig(BaseModel):
    """Settings of :class:`StatementGbdtModel`, as in LightGBM."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    num_trees: int = 300
    num_leaves: int = 63
    learning_rate: float = 0.1
    min_data_in_leaf: int = 20


class StatementGbdtModel(CostModel):
    """Scores a program by the sum of its statements' scores."""

    kind = "gbdt-statements"

    def __init__(self, config: StatementGbdtConfig | None = None) -> None:
        self.config = config or StatementGbdtConfig()
        self._booster: lgb.Booster | None = None

    def fit(
        self,
        batch: FeatureBatch,
        labels: Floats,
        groups: Integers,
        *,
        seed: int = 0,
    ) -> None:
        """Train from scratch; see :meth:`CostModel.fit`."""
        check_training_data(batch, labels, groups)
        starts = batch.offsets[:-1]
        counts = np.diff(batch.offsets)

        def gradients(scores: Floats, _: lgb.Dataset) -> tuple[Floats, Floats]:
            errors = np.add.reduceat(scores, starts) - labels
            return np.repeat(labels * errors, counts), np.repeat(labels, counts)

        parameters = {
            "objective": gradients,
            "num_leaves": self.config.num_leaves,
            "learning_rate": self.config.learning_rate,
            "min_data_in_leaf": self.config.min_data_in_leaf,
            "min_sum_hessian_in_leaf": 1e-3,
            "lambda_l2": 1.0,
            "seed": seed,
            "deterministic": True,
            "force_row_wise": True,
            "verbosity": -1,
        }
        data = lgb.Dataset(_statements(batch))
        self._booster = lgb.train(parameters, data, num_boost_round=self.config.num_trees)

    def predict(self, batch: FeatureBatch) -> Floats:
        """Score programs; float64 `n`."""
        assert self._booster is not None, "fit or load the model first"
        if len(batch) == 0:
            return np.zeros(0)
        scores = np.asarray(self._booster.predict(_statements(batch)), "float64")
        return np.add.reduceat(scores, batch.offsets[:-1])

    def save(self, folder: Path) -> None:
        """Write LightGBM's text form and the settings."""
        assert self._booster is not None, "fit or load the model first"
        save_trees(self._booster, folder / "model.txt")
        (folder / "config.json").write_text(self.config.model_dump_json(indent=2) + "\n")

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Read what :meth:`save` wrote."""
        try:
            model = cls(
                StatementGbdtConfig.model_validate_json((folder / "config.json").read_bytes())
            )
            model._booster = load_trees(folder / "model.txt")
        except (OSError, ValueError, lgb.basic.LightGBMError) as error:
            reason = str(error).splitlines()[0]
            raise BundleError(f"{folder} holds no statement GBDT model: {reason}") from None
        return model


def _statements(batch: FeatureBatch) -> Float32s:
    """Return float32 `s x (d + c)`: each store beside the context of its program."""
    context = np.repeat(batch.context, np.diff(batch.offsets), axis=0)
    return np.hstack([batch.stores, context])
