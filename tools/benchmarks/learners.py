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

Gradients = Callable[[Floats], tuple[Floats, Floats]]
"""From scores to the first and second derivatives of a loss by them."""

Objective = Callable[[Floats, Integers], Gradients]
"""From labels and the sizes of tasks, whose programs follow one another."""

_LEAST_CURVATURE = 1e-3

_SHARPNESS = 4
"""Shares are by this power of labels: half as good a program has a sixteenth of the best's."""

_SOFTMAX_WEIGHT = 10
"""Where it is added to the loss of pairs."""


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
    contiguous
        Whether it sees the columns of :mod:`tools.benchmarks.contiguous`, too.
    """

    config: GbdtConfig = _HALF
    parameters: dict[str, Any] = field(default_factory=dict)
    target: Callable[[Floats, Integers], Any] | None = None
    weights: Callable[[Floats], Floats] | None = None
    objective: Objective | None = None
    least_label: float = 0.0
    seed_shift: int = 0
    contiguous: bool = False

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


def regret_pairs(labels: Floats, sizes: Integers) -> Gradients:
    """Logistic loss of a task's pairs, each weighted by how far its labels are apart."""
    tasks = _Tasks(sizes)
    worth = tasks.spread(labels)
    lead = worth[:, :, None] - worth[:, None, :]
    lead *= tasks.there[:, :, None] & tasks.there[:, None, :]
    weight, sign = np.abs(lead), np.sign(lead)
    scale = 1 / np.maximum(weight.sum((1, 2)), 1e-9) * sizes

    def gradients(scores: Floats) -> tuple[Floats, Floats]:
        padded = tasks.spread(scores)
        wrong = 1 / (1 + np.exp(sign * (padded[:, :, None] - padded[:, None, :])))
        pull = (-sign * weight * wrong).sum(2) * scale[:, None]
        bend = (weight * wrong * (1 - wrong)).sum(2) * scale[:, None]
        return tasks.gather(pull), np.maximum(tasks.gather(bend), _LEAST_CURVATURE)

    return gradients


def softmax(labels: Floats, sizes: Integers) -> Gradients:
    """Cross entropy of the softmax of a task's scores, with shares by a power of labels."""
    tasks = _Tasks(sizes)
    wanted = tasks.shares(_SHARPNESS * np.log(labels))

    def gradients(scores: Floats) -> tuple[Floats, Floats]:
        shares = tasks.shares(scores)
        bend = np.maximum(tasks.gather(shares * (1 - shares)), _LEAST_CURVATURE)
        return tasks.gather(shares - wanted), bend

    return gradients


def pairs_and_softmax(labels: Floats, sizes: Integers) -> Gradients:
    """Sum of both."""
    pairs, shares = regret_pairs(labels, sizes), softmax(labels, sizes)

    def gradients(scores: Floats) -> tuple[Floats, Floats]:
        (pull, bend), (second_pull, second_bend) = pairs(scores), shares(scores)
        return pull + _SOFTMAX_WEIGHT * second_pull, bend + _SOFTMAX_WEIGHT * second_bend

    return gradients


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
    "contiguous loops": Learner(contiguous=True),
    "truncation 10": _told(lambdarank_truncation_level=10),
    "gain squared": _told(label_gain=list(_LEVELS**2)),
    "not normalised": _told(lambdarank_norm=False),
    "levels 101": _config(relevance_levels=101),
    "rank_xendcg": Learner(
        parameters={"objective": "rank_xendcg"}, target=lambda labels, _: np.rint(labels * 8)
    ),
    "pairs by regret": Learner(objective=regret_pairs),
    "softmax": Learner(objective=softmax),
    "pairs by regret and softmax": Learner(objective=pairs_and_softmax),
    "regression of the logarithm": Learner(parameters=_REGRESSION, target=_log),
    "regression, weighted by label": Learner(
        parameters=_REGRESSION, target=_log, weights=lambda labels: labels
    ),
    "extra trees": _told(extra_trees=True),
    "near the best alone": Learner(least_label=0.4),
}
"""By name; :data:`SHIPPED` has the default settings, the others half the trees."""

BUNDLES = {
    "two seeds": ("half the trees", "half the trees, again"),
    "with softmax": ("half the trees", "softmax"),
    "with rank_xendcg": ("half the trees", "rank_xendcg"),
    "with pairs": ("half the trees", "pairs by regret"),
    "with regression": ("half the trees", "regression of the logarithm"),
    "with weighted regression": ("half the trees", "regression, weighted by label"),
    "with pairs and softmax": ("half the trees", "pairs by regret", "softmax"),
    "with pairs and rank_xendcg": ("half the trees", "pairs by regret", "rank_xendcg"),
    "contiguous loops, with pairs": ("contiguous loops", "pairs by regret"),
    "shipped, with pairs": (SHIPPED, "pairs by regret"),
    "shipped, with pairs and softmax": (SHIPPED, "pairs by regret", "softmax"),
    "two seeds with pairs": ("half the trees", "half the trees, again", "pairs by regret"),
}
"""By name, the learners whose scores are added up."""

SECOND_LOOKS = (("half the trees", "near the best alone", 5),)
"""A learner, one that ranks its best anew, and how many of them."""
