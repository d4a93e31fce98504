"""A fitted model taught what was measured elsewhere: its leaves moved, or trees added.

Both leave the model what it is, a model of trees of the same kind and in the same files, which
costs a search no more than before or little more.

- Leaves moved: what the model leaves unexplained is brought down to what each of its leaves is
  worth (:mod:`costlib.models.residual`), so few programs go far. What holds in one task alone is
  left out.
- Trees added: boosting goes on from the model's scores. It takes more programs, and learns what
  no leaf of the model tells apart.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from costlib.arrays import Floats, Integers
from costlib.features.batch import FeatureBatch
from costlib.models.base import CostModel, check_training_data
from costlib.models.boosting import lgb
from costlib.models.gbdt import GbdtModel
from costlib.models.residual import shared_worth
from costlib.models.trees import grow

_SHARES = (0.5, 1.0, 2.0)
"""How far leaves may be moved, as multiples of what they are found to be worth."""

_TREES = (10, 30, 100, 300)
"""How many trees may be added."""

_GENTLE = {"num_leaves": 15, "learning_rate": 0.03}
"""Of trees that are added: the data is less than the model was trained on."""


def fine_tuned_versions(
    model: CostModel,
    batch: FeatureBatch,
    labels: Floats,
    groups: Integers,
    *,
    seed: int = 0,
) -> Iterator[tuple[str, CostModel]]:
    """Yield each way to teach a model some programs, and the model that comes of it.

    Parameters
    ----------
    model
        A fitted model, which stays as it is. Only those of trees over pooled features can be
        fine-tuned; of others there is no version.
    batch, labels, groups, seed
        As in :meth:`CostModel.fit`.

    Yields
    ------
    way, model
        The same ways in the same order for the same model, the most careful first of each kind.

    Raises
    ------
    InputError
        No task has two programs, or a label is not in (0, 1].
    """
    if not isinstance(model, GbdtModel):
        return
    check_training_data(batch, labels, groups)
    worth = _worth_of_leaves(model, batch, labels, groups)
    for share in _SHARES:
        yield f"leaves moved by {share:g}", _with_leaves_moved(model, share * worth)
    grown = _with_trees_added(model, batch, labels, groups, _TREES[-1], seed)
    for count in _TREES:
        yield f"{count} trees added", _of(model, _first_trees(grown, model.num_trees + count))


def _worth_of_leaves(
    model: GbdtModel, batch: FeatureBatch, labels: Floats, groups: Integers
) -> Floats:
    """Labels are latencies but for a factor of each task's, which does not count."""
    return shared_worth(model.predict(batch), 1 / labels, model.leaves(batch), groups)


def _with_leaves_moved(model: GbdtModel, worth: Floats) -> GbdtModel:
    booster = lgb.Booster(model_str=model.booster.model_to_string())
    for tree, leaf in zip(*np.nonzero(worth), strict=True):
        before = booster.get_leaf_output(int(tree), int(leaf))
        booster.set_leaf_output(int(tree), int(leaf), before + float(worth[tree, leaf]))
    return _of(model, booster)


def _with_trees_added(
    model: GbdtModel,
    batch: FeatureBatch,
    labels: Floats,
    groups: Integers,
    count: int,
    seed: int,
) -> lgb.Booster:
    columns, relevance, sizes = model.ranking_data(batch, labels, groups)
    parameters = model.parameters(seed) | {"force_row_wise": True} | _GENTLE
    data = lgb.Dataset(columns, relevance, group=sizes)
    return grow(f"{model.kind}, more", parameters, data, count, init_model=model.booster)


def _first_trees(booster: lgb.Booster, count: int) -> lgb.Booster:
    return lgb.Booster(model_str=booster.model_to_string(num_iteration=count))


def _of(model: GbdtModel, booster: lgb.Booster) -> GbdtModel:
    """Return a model of the same kind with these trees."""
    config = model.config.model_copy(update={"num_trees": int(booster.num_trees())})
    other = type(model)(config)
    other.adopt(booster)
    return other
