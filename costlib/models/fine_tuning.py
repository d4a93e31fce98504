"""A fitted model taught what was measured elsewhere: its leaves moved, a second opinion beside it.

Both leave the model what it is, a model of trees of the same kind and in the same files, which
costs a search no more than before or little more. It goes on with the columns that it was trained
with.

- Leaves moved: what the model leaves unexplained is brought down to what each of its leaves is
  worth (:mod:`costlib.models.residual`), so few programs go far. What holds in one task alone is
  left out.
- A second opinion: trees that know nothing but the programs are grown beside the model, and scores
  add up. Both err, and not alike, so the sum ranks better than either.

Boosting that goes on from the model's scores needs more programs than either to gain as much, and
ranks worse than the model where there are few.
"""

from __future__ import annotations

from functools import cached_property
from itertools import product, starmap
from typing import NamedTuple

import numpy as np

from costlib.arrays import Floats, Integers
from costlib.features.batch import FeatureBatch
from costlib.models.base import CostModel, check_training_data
from costlib.models.boosting import lgb
from costlib.models.gbdt import GbdtModel
from costlib.models.residual import shared_worth, worth_of
from costlib.models.trees import added_up, grow

_SHARES = (0.5, 1.0)
"""How far leaves may be moved, as multiples of what they are found to be worth."""

_SECOND = 400
"""How many trees a second opinion has at most; no more than the model has."""

_OPINIONS = (0.0, 0.5, 1.0, 2.0)
"""How much a second opinion may count beside the model, both of the same spread."""


class _Way(NamedTuple):
    """How far leaves are moved, and how much a second opinion counts."""

    share: float
    opinion: float

    def __str__(self) -> str:
        moved = f"leaves moved by {self.share:g}"
        return f"{moved}, a second opinion by {self.opinion:g}" if self.opinion else moved


_WAYS = {str(way): way for way in starmap(_Way, product(_SHARES, _OPINIONS))}


class FineTuning:
    """What comes of each way to teach a model some programs.

    Parameters
    ----------
    model
        A fitted model, which stays as it is. Only those of trees over pooled features can be
        fine-tuned; of others there is no way.
    batch, labels, groups, seed
        As in :meth:`costlib.models.base.CostModel.fit`.

    Raises
    ------
    InputError
        No task has two programs, or a label is not in (0, 1].
    """

    def __init__(
        self,
        model: CostModel,
        batch: FeatureBatch,
        labels: Floats,
        groups: Integers,
        *,
        seed: int = 0,
    ) -> None:
        check_training_data(batch, labels, groups)
        self._model = model if isinstance(model, GbdtModel) else None
        self._learnt = batch, labels, groups
        self._seed = seed

    def predict(self, batch: FeatureBatch) -> dict[str, Floats]:
        """Score `n` programs by the model that comes of each way, float64 `n` each.

        The ways are the same for the same model, the most careful first of each kind.
        """
        if self._model is None:
            return {}
        scores = self._model.predict(batch)
        moved = worth_of(self._worth, self._model.leaves(batch))
        second = self._spread * np.asarray(self._second.predict(self._model.seen(batch).pooled()))
        return {
            name: scores + way.share * moved + way.opinion * second for name, way in _WAYS.items()
        }

    def model(self, way: str) -> CostModel:
        """Return the model that comes of one of the ways."""
        assert self._model is not None, "there is no way"
        share, opinion = _WAYS[way]
        booster = self._with_leaves_moved(self._model, share)
        if opinion:
            booster = added_up((booster, 1.0), (self._second, opinion * self._spread))
        return _of(self._model, booster)

    @cached_property
    def _worth(self) -> Floats:
        """Of each leaf; labels are latencies but for a factor of each task, which is no matter."""
        assert self._model is not None
        batch, labels, groups = self._learnt
        leaves = self._model.leaves(batch)
        return shared_worth(self._model.predict(batch), 1 / labels, leaves, groups)

    @cached_property
    def _second(self) -> lgb.Booster:
        """Trees that know nothing of the model."""
        assert self._model is not None
        columns, relevance, sizes = self._model.ranking_data(*self._learnt)
        parameters = self._model.parameters(self._seed) | {"force_row_wise": True}
        data = lgb.Dataset(columns, relevance, group=sizes)
        rounds = min(_SECOND, self._model.num_trees)
        return grow(f"{self._model.kind}, a second opinion", parameters, data, rounds)

    @cached_property
    def _spread(self) -> float:
        """By how much the model's scores spread wider than those of the second opinion."""
        assert self._model is not None
        batch, _, _ = self._learnt
        pooled = self._model.seen(batch).pooled()
        ours, theirs = (np.std(one.predict(pooled)) for one in (self._model.booster, self._second))
        return float(ours / theirs) if theirs > 0 else 0.0

    def _with_leaves_moved(self, model: GbdtModel, share: float) -> lgb.Booster:
        booster = lgb.Booster(model_str=model.booster.model_to_string())
        for place in zip(*np.nonzero(self._worth), strict=True):
            tree, leaf = map(int, place)
            moved = booster.get_leaf_output(tree, leaf) + share * float(self._worth[place])
            booster.set_leaf_output(tree, leaf, moved)
        return booster


def _of(model: GbdtModel, booster: lgb.Booster) -> GbdtModel:
    """Return a model of the same kind with these trees."""
    config = model.config.model_copy(update={"num_trees": int(booster.num_trees())})
    other = type(model)(config)
    other.adopt(booster, model.columns)
    return other
