"""Ways to teach trees to rank, for :mod:`tools.benchmarks.objectives`.

Each is LightGBM on the pooled features with the settings of
:class:`~costlib.models.gbdt.GbdtConfig`, but for what it is named after.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from costlib.arrays import Float32s, Floats, Integers
from costlib.models.boosting import lgb
from costlib.models.gbdt import GbdtConfig, GbdtModel

Gradients = tuple[Floats, Floats]
Objective = Callable[[Floats, Floats, Integers], Callable[[Floats], Gradients]]
"""From labels and the sizes of tasks, to gradients and second derivatives of scores."""

_LEAST_CURVATURE = 1e-3


_HALF = GbdtConfig(num_trees=400, learning_rate=0.1)
"""Of all that are compared: half the trees at twice the rate, in half the time."""


@dataclass(frozen=True)
class Learner:
    """One way.

    Attributes
    ----------
    config
        Settings other than the default.
    parameters
        What LightGBM is told beside.
    target
        From labels and groups to what is learnt; levels of relevance if not given.
    weights
        From labels to how much a program counts; all alike if not given.
    objective
        A loss that LightGBM does not have.
    least_label
        Only programs that are so good are learnt from.
    seed_shift
        Added to the seed.
    """

    config: GbdtConfig = _HALF
    parameters: dict[str, Any] = field(default_factory=dict)
    target: Callable[[Floats, Integers], Any] | None = None
    weights: Callable[[Floats], Floats] | None = None
    objective: Objective | None = None
    least_label: float = 0.0
    seed_shift: int = 0

    def fit(self, columns: Float32s, labels: Floats, groups: Integers, seed: int) -> lgb.Booster:
        """Train; groups must be in order."""
        rows = labels >= self.least_label
        columns, labels, groups = columns[rows], labels[rows], groups[rows]
        sizes = np.unique(groups, return_counts=True)[1]
        model = GbdtModel(self.config)
        target = model.relevance(labels) if self.target is None else self.target(labels, groups)
        parameters = (
            model.parameters(seed + self.seed_shift) | {"force_col_wise": True} | self.parameters
        )
        if self.objective is not None:
            gradients = self.objective(labels, sizes)
            parameters["objective"] = lambda scores, _: gradients(scores)
        weights = None if self.weights is None else self.weights(labels)
        data = lgb.Dataset(columns, target, group=sizes, weight=weights)
        return lgb.train(parameters, data, num_boost_round=self.config.num_trees)


class _Tasks:
    """Values of programs as `tasks x most programs`, with zeros behind a task's last."""

    def __init__(self, sizes: Integers) -> None:
        task = np.repeat(np.arange(len(sizes)), sizes)
        place = np.arange(len(task)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        self._places = task, place
        self.there = np.zeros((len(sizes), int(sizes.max())), bool)
        self.there[self._places] = True

    def spread(self, values: Floats) -> Floats:
        padded = np.zeros(self.there.shape)
        padded[self._places] = values
        return padded

    def shares(self, scores: Floats) -> Floats:
        """Return the softmax of scores within each task."""
        padded = np.where(self.there, self.spread(scores), -np.inf)
        powers = np.exp(padded - padded.max(1, keepdims=True))
        return np.asarray(powers / powers.sum(1, keepdims=True))

    def gather(self, padded: Floats) -> Floats:
        return np.asarray(padded[self._places])


def regret_pairs(power: float) -> Objective:
    """Logistic loss of pairs, each weighted by the difference of ``label ** power``."""

    def prepare(labels: Floats, sizes: Integers) -> Callable[[Floats], Gradients]:
        tasks = _Tasks(sizes)
        worth = tasks.spread(labels**power)
        lead = worth[:, :, None] - worth[:, None, :]
        lead *= tasks.there[:, :, None] & tasks.there[:, None, :]
        weight, sign = np.abs(lead), np.sign(lead)
        scale = 1 / np.maximum(weight.sum((1, 2)), 1e-9) * sizes

        def gradients(scores: Floats) -> Gradients:
            padded = tasks.spread(scores)
            wrong = 1 / (1 + np.exp(sign * (padded[:, :, None] - padded[:, None, :])))
            pull = (-sign * weight * wrong).sum(2) * scale[:, None]
            bend = (weight * wrong * (1 - wrong)).sum(2) * scale[:, None]
            return tasks.gather(pull), np.maximum(tasks.gather(bend), _LEAST_CURVATURE)

        return gradients

    return prepare


def softmax_of(power: float, weight: float = 1) -> Objective:
    """Cross entropy of the scores' softmax with shares by ``label ** power`` (ListNet)."""

    def prepare(labels: Floats, sizes: Integers) -> Callable[[Floats], Gradients]:
        tasks = _Tasks(sizes)
        wanted = tasks.shares(power * np.log(labels))

        def gradients(scores: Floats) -> Gradients:
            shares = tasks.shares(scores)
            bend = np.maximum(tasks.gather(shares * (1 - shares)), _LEAST_CURVATURE)
            return weight * tasks.gather(shares - wanted), weight * bend

        return gradients

    return prepare


def together(*objectives: Objective) -> Objective:
    """Sum of losses."""

    def prepare(labels: Floats, sizes: Integers) -> Callable[[Floats], Gradients]:
        parts = [objective(labels, sizes) for objective in objectives]

        def gradients(scores: Floats) -> Gradients:
            pulls, bends = zip(*(part(scores) for part in parts), strict=True)
            return np.asarray(sum(pulls)), np.asarray(sum(bends))

        return gradients

    return prepare


def expected_regret(sharpness: float) -> Objective:
    """The label that is missed by a first choice drawn from the scores' softmax."""

    def prepare(labels: Floats, sizes: Integers) -> Callable[[Floats], Gradients]:
        tasks = _Tasks(sizes)
        worth = tasks.spread(labels)

        def gradients(scores: Floats) -> Gradients:
            shares = tasks.shares(sharpness * scores)
            expected = (shares * worth).sum(1, keepdims=True)
            pull = tasks.gather(shares * (expected - worth))
            bend = tasks.gather(shares * (1 - shares))
            return pull, np.maximum(bend, _LEAST_CURVATURE)

        return gradients

    return prepare


def _config(**changes: Any) -> Learner:
    return Learner(_HALF.model_copy(update=changes))


def _told(**parameters: Any) -> Learner:
    return Learner(parameters=parameters)


def _log(labels: Floats, groups: Integers) -> Floats:
    del groups
    return np.log(labels)


_REGRESSION = {"objective": "regression"}
_LEVELS = np.arange(GbdtConfig().relevance_levels, dtype=float)

SHIPPED = "shipped"
LEARNERS = {
    SHIPPED: _config(num_trees=800, learning_rate=0.05),
    "half the trees": Learner(),
    "half the trees, again": Learner(seed_shift=1000),
    "truncation 10": _told(lambdarank_truncation_level=10),
    "truncation 3": _told(lambdarank_truncation_level=3),
    "gain squared": _told(label_gain=list(_LEVELS**2)),
    "not normalised": _told(lambdarank_norm=False),
    "levels 101": _config(relevance_levels=101),
    "rank_xendcg": Learner(
        parameters={"objective": "rank_xendcg"}, target=lambda labels, _: np.rint(labels * 8)
    ),
    "pairs by regret": Learner(objective=regret_pairs(1)),
    "pairs by squared regret": Learner(objective=regret_pairs(2)),
    "softmax of label to the power 4": Learner(objective=softmax_of(4)),
    "pairs by regret and softmax": Learner(objective=together(regret_pairs(1), softmax_of(4, 10))),
    "expected regret": Learner(objective=expected_regret(1)),
    "regression of the logarithm": Learner(parameters=_REGRESSION, target=_log),
    "regression, weighted by label": Learner(
        parameters=_REGRESSION, target=_log, weights=lambda labels: labels
    ),
    "extra trees": _told(extra_trees=True),
    "programs per leaf 40": _config(min_programs_per_leaf=40),
    "near the best alone": Learner(least_label=0.4),
}
"""By name; :data:`SHIPPED` has the default settings, the others half the trees."""

BUNDLES = {
    "two seeds": ("half the trees", "half the trees, again"),
    "with softmax": ("half the trees", "softmax of label to the power 4"),
    "with rank_xendcg": ("half the trees", "rank_xendcg"),
    "with pairs": ("half the trees", "pairs by regret"),
    "with regression": ("half the trees", "regression of the logarithm"),
    "with weighted regression": ("half the trees", "regression, weighted by label"),
    "with pairs and softmax": (
        *("half the trees", "pairs by regret", "softmax of label to the power 4"),
    ),
    "with pairs and rank_xendcg": ("half the trees", "pairs by regret", "rank_xendcg"),
    "two seeds with pairs": ("half the trees", "half the trees, again", "pairs by regret"),
}
"""By name, the learners whose scores are added up."""

SECOND_LOOKS = (("half the trees", "near the best alone", 5),)
"""A learner, one that ranks its best anew, and how many of them."""
