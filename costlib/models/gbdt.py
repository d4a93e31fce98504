"""Gradient-boosted trees over pooled features, trained to rank (LightGBM's LambdaRank)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Self

import lightgbm as lgb
import numpy as np
from pydantic import BaseModel, ConfigDict

from costlib.errors import BundleError
from costlib.features.batch import FeatureBatch
from costlib.models.base import CostModel, Scores, check_training_data

_FEW_ROWS = 64
"""Below this many rows LightGBM's threads cost more than they save."""


class GbdtConfig(BaseModel):
    """Settings of :class:`GbdtModel`.

    Attributes
    ----------
    num_trees, num_leaves, learning_rate, min_programs_per_leaf, feature_fraction
        As in LightGBM.
    relevance_levels
        Labels are rounded to this many levels of relevance.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    num_trees: int = 400
    num_leaves: int = 31
    learning_rate: float = 0.05
    min_programs_per_leaf: int = 10
    feature_fraction: float = 0.5
    relevance_levels: int = 31


class GbdtModel(CostModel):
    """Scores a program from the sum, maximum, mean and minimum of its stores' features."""

    kind = "gbdt"

    def __init__(self, config: GbdtConfig | None = None) -> None:
        self.config = config or GbdtConfig()
        self._booster: lgb.Booster | None = None

    def fit(
        self,
        batch: FeatureBatch,
        labels: Scores,
        groups: np.ndarray[Any, np.dtype[np.int64]],
        *,
        seed: int = 0,
    ) -> None:
        """Train from scratch; see :meth:`CostModel.fit`."""
        check_training_data(batch, labels, groups)
        config = self.config
        order = np.argsort(groups, kind="stable")
        sizes = np.unique(groups[order], return_counts=True)[1]
        levels = config.relevance_levels
        relevance = np.rint(labels * (levels - 1)).astype("int32")
        data = lgb.Dataset(batch.pooled()[order], relevance[order], group=sizes)
        parameters = {
            "objective": "lambdarank",
            "label_gain": list(np.arange(levels, dtype=float)),
            "lambdarank_truncation_level": 50,
            "num_leaves": config.num_leaves,
            "learning_rate": config.learning_rate,
            "min_data_in_leaf": config.min_programs_per_leaf,
            "feature_fraction": config.feature_fraction,
            "seed": seed,
            "deterministic": True,
            "force_row_wise": True,
            "verbosity": -1,
        }
        self._booster = lgb.train(parameters, data, num_boost_round=config.num_trees)

    def predict(self, batch: FeatureBatch) -> Scores:
        """Score programs; float64 `n`."""
        assert self._booster is not None, "fit or load the model first"
        if len(batch) == 0:
            return np.zeros(0)
        threads = 1 if len(batch) <= _FEW_ROWS else 0
        return np.asarray(self._booster.predict(batch.pooled(), num_threads=threads), "float64")

    def save(self, folder: Path) -> None:
        """Write LightGBM's text form, which reloads bit for bit, and the settings."""
        assert self._booster is not None, "fit or load the model first"
        (folder / "model.txt").write_text(self._booster.model_to_string())
        (folder / "config.json").write_text(self.config.model_dump_json(indent=2) + "\n")

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Read what :meth:`save` wrote."""
        try:
            model = cls(GbdtConfig(**json.loads((folder / "config.json").read_text())))
            model._booster = lgb.Booster(model_str=(folder / "model.txt").read_text())
        except (OSError, ValueError, lgb.basic.LightGBMError) as error:
            reason = str(error).splitlines()[0]
            raise BundleError(f"{folder} holds no GBDT model: {reason}") from None
        return model
