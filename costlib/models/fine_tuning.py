"""A fitted model taught what was measured elsewhere: leaves moved, and trees that go on from it.

Both leave the model what it is, a model of trees of the same kind and in the same files, which
costs a search no more than before or little more. It goes on with the columns that it was trained
with.

- Leaves moved: what the model leaves unexplained is brought down to what each of its leaves is
  worth (:mod:`costlib.models.residual`), so few programs go far. What holds in one task alone is
  left out.
- Trees added: boosting goes on from there, several times by chance, and the mean counts (bagging,
  Breiman 1996). Once alone it learns by heart what the few programs have; the mean does much less.
"""

from __future__ import annotations

from functools import cached_property
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

_TIMES = 4
"""How often boosting goes on."""

_GROWN = {"learning_rate": 0.05, "bagging_fraction": 0.7, "bagging_freq": 1}
"""How its trees are grown, whatever the model's were."""

_TREES = 100
"""How many it adds each time."""


class _Way(NamedTuple):
    """How far leaves are moved, and how much the added trees count."""

    share: float
    added: float

    def __str__(self) -> str:
        moved = f"leaves moved by {self.share:g}"
        return f"{moved}, trees added by {self.added:g}" if self.added else moved


_CAREFUL = _SHARES[0]
"""How far leaves are moved where trees are added."""

_ADDED = (0.5, 1.0, 2.0)
"""How much those may count."""

_ALL = [_Way(share, 0) for share in _SHARES] + [_Way(_CAREFUL, added) for added in _ADDED]
_WAYS = {str(way): way for way in _ALL}


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
        added = np.asarray(self._added.predict(self._model.seen(batch).pooled()))
        return {name: scores + way.share * moved + way.added * added for name, way in _WAYS.items()}

    def model(self, way: str) -> CostModel:
        """Return the model that comes of one of the ways."""
        assert self._model is not None, "there is no way"
        share, added = _WAYS[way]
        booster = self._with_leaves_moved(self._model, share)
        if added:
            booster = added_up((booster, 1.0), (self._added, added))
        return _of(self._model, booster)

    @cached_property
    def _scores(self) -> Floats:
        """What the model says of the programs to learn from."""
        assert self._model is not None
        return self._model.predict(self._learnt[0])

    @cached_property
    def _leaves(self) -> Integers:
        """The leaves that those fall into."""
        assert self._model is not None
        return self._model.leaves(self._learnt[0])

    @cached_property
    def _worth(self) -> Floats:
        """Of each leaf; labels are latencies but for a factor of each task, which is no matter."""
        _, labels, groups = self._learnt
        return shared_worth(self._scores, 1 / labels, self._leaves, groups)

    @cached_property
    def _added(self) -> lgb.Booster:
        """Trees that go on from the model with its leaves moved."""
        model = self._model
        assert model is not None
        moved = _CAREFUL * worth_of(self._worth, self._leaves)
        start = (self._scores + moved)[np.argsort(self._learnt[2], kind="stable")]
        columns, relevance, sizes = model.ranking_data(*self._learnt)

        def grown(seed: int) -> lgb.Booster:
            parameters = model.parameters(seed) | _GROWN | {"force_row_wise": True}
            data = lgb.Dataset(columns, relevance, group=sizes, init_score=start)
            return grow(f"{model.kind}, fine-tuned", parameters, data, _TREES)

        seeds = range(self._seed, self._seed + _TIMES)
        return added_up(*((grown(seed), 1 / _TIMES) for seed in seeds))

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
