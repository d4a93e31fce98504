"""Which change of a program pays: a classifier of mutation directions.

After the mutation-direction prediction of Han et al. (2025): for a program, the probability of each
direction to be the most profitable one, and the gain to expect of it. It sees schedules alone
(:mod:`costlib.features.schedule`), so asking it costs less than making the mutation.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Self

import numpy as np

from costlib.arrays import Bools, Floats, Integers
from costlib.errors import InputError
from costlib.features.batch import FeatureBatch
from costlib.frozen import FrozenStrict
from costlib.models.base import load_columns, reading, save_columns
from costlib.models.boosting import lgb
from costlib.models.trees import grow, load_trees, save_trees, tree_parameters
from costlib.space.directions import DIRECTIONS

_FOLDS = 4


class DirectionConfig(FrozenStrict):
    """Settings of :class:`DirectionModel`, as in LightGBM."""

    num_trees: int = 120
    num_leaves: int = 15
    learning_rate: float = 0.05
    min_data_in_leaf: int = 20


class DirectionModel:
    """Probability and expected gain of each direction."""

    def __init__(self, config: DirectionConfig | None = None) -> None:
        self.config = config or DirectionConfig()
        self._classifier: lgb.Booster | None = None
        self._gains: lgb.Booster | None = None
        self._columns: tuple[str, ...] = ()
        self._temperature = 1.0

    def fit(self, batch: FeatureBatch, gains: Floats, groups: Integers, *, seed: int = 0) -> None:
        """Train from scratch; probabilities are calibrated on tasks left out in turn.

        Parameters
        ----------
        batch
            `n` programs as schedules.
        gains
            float64 `n x d`: log of the speed-up that a mutation in each of
            :data:`DIRECTIONS` brought; NaN where there was none.
        groups
            int64 `n`: the task of each program.
        seed
            Seed of the trees.

        Raises
        ------
        InputError
            No program was changed in two directions.
        """
        usable = (~np.isnan(gains)).sum(1) >= 2
        if not usable.any():
            raise InputError("no program was changed in two directions; record mutations first")
        self._columns = batch.names
        columns = batch.pooled()[usable]
        gains, groups = gains[usable], groups[usable]
        best = np.nanargmax(gains, 1)
        allowed = ~np.isnan(gains)
        folds = groups % _FOLDS
        logits = np.zeros_like(gains)
        for fold in np.unique(folds) if len(np.unique(folds)) > 1 else []:
            held = folds == fold
            partial = self._train_classifier(columns[~held], best[~held], seed)
            logits[held] = partial.predict(columns[held], raw_score=True)
        self._temperature = _calibrate(logits, allowed, best) if logits.any() else 1.0
        self._classifier = self._train_classifier(columns, best, seed)
        rows, directions = np.nonzero(allowed)
        asked = _with_direction(columns[rows], directions)
        self._gains = self._train(asked, gains[rows, directions], seed, objective="l2")

    def probabilities(self, batch: FeatureBatch, allowed: Bools) -> Floats:
        """Return the probability of each direction to be the best, float64 `n x d`.

        Parameters
        ----------
        batch
            `n` programs as schedules.
        allowed
            bool `n x d`: the directions that a program's sketch allows; others get 0.
        """
        assert self._classifier is not None, "fit or load the model first"
        if len(batch) == 0:
            return np.zeros((0, len(DIRECTIONS)))
        pooled = batch.known_by(self._columns).pooled()
        logits = self._classifier.predict(pooled, raw_score=True)
        return _softmax(logits, allowed, self._temperature)

    def expected_gains(self, batch: FeatureBatch, allowed: Bools) -> Floats:
        """Return the log of the speed-up to expect of each direction, float64 `n x d`.

        It is 0 for a direction that no program allows.
        """
        assert self._gains is not None, "fit or load the model first"
        columns = batch.known_by(self._columns).pooled()
        gains = np.zeros(allowed.shape)
        directions = np.flatnonzero(allowed.any(0))
        if gains.size and len(directions):
            each = np.tile(columns, (len(directions), 1))
            asked = np.repeat(directions, len(columns))
            predicted = np.asarray(self._gains.predict(_with_direction(each, asked)))
            gains[:, directions] = predicted.reshape(len(directions), -1).T
        return gains

    def save(self, folder: Path) -> None:
        """Write the trees and the settings into an existing folder."""
        assert self._classifier is not None and self._gains is not None, "fit the model first"
        save_trees(self._classifier, folder / "classifier.txt")
        save_trees(self._gains, folder / "gains.txt")
        save_columns(folder, self._columns)
        settings = {"config": self.config.model_dump(), "temperature": self._temperature}
        (folder / "directions.json").write_text(json.dumps(settings, indent=2) + "\n")

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Read what :meth:`save` wrote."""
        with reading(folder, "direction classifier"):
            settings = json.loads((folder / "directions.json").read_text())
            model = cls(DirectionConfig(**settings["config"]))
            model._temperature = float(settings["temperature"])
            model._classifier = load_trees(folder / "classifier.txt")
            model._gains = load_trees(folder / "gains.txt")
            model._columns = load_columns(folder, "schedule")
        return model

    def _train_classifier(self, columns: Any, best: Any, seed: int) -> lgb.Booster:
        return self._train(columns, best, seed, objective="multiclass", num_class=len(DIRECTIONS))

    def _train(self, columns: Any, targets: Any, seed: int, **objective: Any) -> lgb.Booster:
        parameters = tree_parameters(self.config, seed) | {
            "min_data_in_leaf": self.config.min_data_in_leaf,
            "feature_fraction": 0.5,
            "lambda_l2": 1.0,
            "force_row_wise": True,
        }
        data = lgb.Dataset(columns, targets)
        return grow("directions", parameters | objective, data, self.config.num_trees)


def _calibrate(logits: Floats, allowed: Any, best: Any) -> float:
    """Find the temperature at which the best directions are most likely (Guo et al., ICML'17)."""
    from scipy.optimize import minimize_scalar

    def loss(log_temperature: float) -> float:
        chances = _softmax(logits, allowed, float(np.exp(log_temperature)))
        return float(-np.log(chances[np.arange(len(best)), best] + 1e-12).mean())

    return float(np.exp(minimize_scalar(loss, bounds=(-3, 3), method="bounded").x))


def _softmax(logits: Floats, allowed: Any, temperature: float) -> Floats:
    scaled = np.where(allowed, logits / temperature, -np.inf)
    scaled -= np.max(scaled, axis=1, keepdims=True, initial=-1e9)
    chances = np.exp(scaled)
    return np.asarray(chances / np.maximum(chances.sum(1, keepdims=True), 1e-300))


def _with_direction(columns: Any, directions: Any) -> Any:
    one_hot = np.eye(len(DIRECTIONS), dtype="float32")[directions]
    return np.hstack([columns, one_hot])
