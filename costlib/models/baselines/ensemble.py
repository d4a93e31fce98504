"""Several models that vote, and how far to trust them.

The members' scores are brought to one scale and averaged. Where they disagree the score is
uncertain: how uncertain is calibrated on tasks that the members were not trained on.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Self

import numpy as np
from scipy.optimize import minimize

from costlib.arrays import Floats, Integers
from costlib.features.batch import FeatureBatch, select
from costlib.frozen import FrozenStrict
from costlib.models.base import CostModel, centred, check_training_data, reading

_CALIBRATION_SHARE = 0.25
_LEAST_GROUPS = 4
_LEAST_SIGMA = 1e-3


class EnsembleConfig(FrozenStrict):
    """Settings of :class:`EnsembleModel`.

    Attributes
    ----------
    members
        Kinds of models, all of the ``"statements"`` view.
    """

    members: tuple[str, ...] = ("gbdt", "gbdt-statements", "mlp")


class _Calibration(FrozenStrict):
    """Scale of each member's scores, and ``sigma = base + slope * disagreement``."""

    scales: tuple[float, ...]
    base: float
    slope: float


class EnsembleModel(CostModel):
    """The mean of several models' scores, with an uncertainty."""

    kind = "ensemble"

    def __init__(self, config: EnsembleConfig | None = None) -> None:
        self.config = config or EnsembleConfig()
        self._members: list[CostModel] = []
        self._calibration: _Calibration | None = None

    def fit(self, batch: FeatureBatch, labels: Floats, groups: Integers, *, seed: int = 0) -> None:
        """See :meth:`CostModel.fit`; trains without some tasks to calibrate, then with all."""
        check_training_data(batch, labels, groups)
        tasks = np.unique(groups)
        judged = np.isin(groups, tasks[:: round(1 / _CALIBRATION_SHARE)])
        if len(tasks) < _LEAST_GROUPS:
            judged = np.ones(len(groups), bool)
        trained = np.ones(len(groups), bool) if judged.all() else ~judged
        members = self._train(select(batch, trained), labels[trained], groups[trained], seed)
        scores = _scores(members, select(batch, judged))
        self._calibration = _calibrate(scores, labels[judged], groups[judged])
        self._members = members if trained.all() else self._train(batch, labels, groups, seed)

    def predict(self, batch: FeatureBatch) -> Floats:
        """See :meth:`CostModel.predict`."""
        return self.predict_with_uncertainty(batch)[0]

    def predict_with_uncertainty(self, batch: FeatureBatch) -> tuple[Floats, Floats]:
        """Score programs and say how far off the scores may be.

        Returns
        -------
        scores, sigma
            float64 `n` each. Differences of scores within a task, compared with the log of the
            programs' latencies on the same scale, are off by about ``sigma``.
        """
        assert self._calibration is not None, "fit or load the model first"
        if len(batch) == 0:
            return np.zeros(0), np.zeros(0)
        scores = _scores(self._members, batch) / np.array(self._calibration.scales)
        sigma = self._calibration.base + self._calibration.slope * scores.std(1)
        return scores.mean(1), sigma

    def save(self, folder: Path) -> None:
        """Write each member into a folder of its own, and the calibration."""
        assert self._calibration is not None, "fit or load the model first"
        for number, member in enumerate(self._members):
            (folder / f"member{number}").mkdir(exist_ok=True)
            member.save(folder / f"member{number}")
        settings = {
            "config": self.config.model_dump(),
            "calibration": self._calibration.model_dump(),
        }
        (folder / "ensemble.json").write_text(json.dumps(settings, indent=2) + "\n")

    @classmethod
    def load(cls, folder: Path) -> Self:
        """See :meth:`CostModel.load`."""
        from costlib.models import model_class

        with reading(folder, "ensemble"):
            settings = json.loads((folder / "ensemble.json").read_text())
            model = cls(EnsembleConfig(**settings["config"]))
            model._calibration = _Calibration(**settings["calibration"])
        model._members = [
            model_class(kind).load(folder / f"member{number}")
            for number, kind in enumerate(model.config.members)
        ]
        return model

    def _train(
        self, batch: FeatureBatch, labels: Floats, groups: Integers, seed: int
    ) -> list[CostModel]:
        from costlib.models import model_class

        members = [model_class(kind)() for kind in self.config.members]
        for member in members:
            member.fit(batch, labels, groups, seed=seed)
        return members


def _scores(members: list[CostModel], batch: FeatureBatch) -> Floats:
    """float64 `n x members`."""
    return np.column_stack([member.predict(batch) for member in members])


def _calibrate(scores: Floats, labels: Floats, groups: Integers) -> _Calibration:
    """Find the scales, and the uncertainty that makes the errors most likely if Gaussian."""
    within_tasks = np.column_stack([centred(column, groups) for column in scores.T])
    target = centred(np.log(labels), groups)
    scales = np.maximum(within_tasks.std(0), 1e-9)
    mean = (within_tasks / scales).mean(1)
    slope_of_target = float(mean @ target) / max(float(target @ target), 1e-12)
    errors = np.abs(mean - slope_of_target * target)
    spread = (scores / scales).std(1)

    def loss(parameters: Floats) -> float:
        sigma = np.exp(parameters[0]) + np.exp(parameters[1]) * spread
        return float((np.log(sigma) + 0.5 * (errors / sigma) ** 2).mean())

    start = np.log([max(float(errors.mean()), _LEAST_SIGMA), 0.1])
    found = minimize(loss, start, method="Nelder-Mead").x
    base, slope = np.exp(np.clip(found, np.log(_LEAST_SIGMA), 5))
    return _Calibration(scales=tuple(map(float, scales)), base=float(base), slope=float(slope))
