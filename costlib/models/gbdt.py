"""Gradient-boosted trees over pooled features, trained to rank (LightGBM's LambdaRank)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from costlib.arrays import Float32s, Floats, Integers
from costlib.features.batch import FeatureBatch
from costlib.frozen import FrozenStrict
from costlib.models.base import check_training_data
from costlib.models.boosting import lgb
from costlib.models.trees import TreeModel, grow, tree_parameters

Levels = np.ndarray[Any, np.dtype[np.int32]]
"""int32: labels rounded to levels of relevance."""

_FEW_ROWS = 64
"""Below this many rows LightGBM's threads cost more than they save."""

_MOST_LEAVES = 100
"""Trees whose leaves :meth:`GbdtModel.leaves` tells; later ones divide by details."""

_FEWER_TREES = 400
"""Trees of a model that scores thousands of programs in each round of a search."""

_FEWEST_JUDGED = 10
"""With fewer tasks than these, none is spared for early stopping; with more, every tenth is."""

_JUDGED = {"metric": "ndcg", "eval_at": [5]}
"""Early stopping looks at how the first of a ranking do."""

_STAGES = 16
"""How often :meth:`GbdtModel.stages` stops on the way to the last tree."""

_MOST_RANKED_TOGETHER = 10_000
"""LightGBM refuses to rank more rows than these with one another."""


def ranked_together(sizes: Iterable[int]) -> list[int]:
    """Cut tasks that are too large for LightGBM into equal pieces; return the sizes."""
    pieces = []
    for size in sizes:
        count = -(-int(size) // _MOST_RANKED_TOGETHER)
        pieces += [len(piece) for piece in np.array_split(np.arange(size), count)]
    return pieces


class GbdtConfig(FrozenStrict):
    """Settings of :class:`GbdtModel`.

    Attributes
    ----------
    num_trees, num_leaves, learning_rate, min_programs_per_leaf, feature_fraction
        As in LightGBM.
    relevance_levels
        Labels are rounded to this many levels of relevance.
    patience
        If not 0, a tenth of the tasks is not trained on, and training stops when this many trees
        have not ranked them better (LightGBM's early stopping); the trees up to the best remain.
    """

    num_trees: int = 800
    num_leaves: int = 31
    learning_rate: float = 0.05
    min_programs_per_leaf: int = 10
    feature_fraction: float = 0.2
    relevance_levels: int = 31
    patience: int = 0


class GbdtModel(TreeModel[GbdtConfig]):
    """Scores a program from the sum, maximum, mean and minimum of its stores' features."""

    kind = "gbdt"
    title = "GBDT"
    config_type = GbdtConfig

    def fit(self, batch: FeatureBatch, labels: Floats, groups: Integers, *, seed: int = 0) -> None:
        """See :meth:`CostModel.fit`."""
        check_training_data(batch, labels, groups)
        self.columns = batch.names
        columns, relevance, sizes = self.ranking_data(batch, labels, groups)
        data = lgb.Dataset(columns, relevance, group=sizes)
        self._train(self.parameters(seed) | {"force_row_wise": True}, data)

    def fit_binned(
        self, data: lgb.Dataset, columns: tuple[str, ...] = (), *, seed: int = 0
    ) -> None:
        """Train from scratch on what LightGBM has binned already, without a copy of it.

        Parameters
        ----------
        data
            Pooled features with :meth:`relevance` as labels, tasks as groups, and
            :meth:`parameters` among its parameters.
        columns
            The names of the columns of context among them.
        seed
            As in :meth:`fit`.
        """
        self.columns = columns
        self._train(self.parameters(seed) | data.get_params() | {"force_col_wise": True}, data)

    def adopt(self, booster: lgb.Booster, columns: tuple[str, ...]) -> None:
        """Take trees that were trained elsewhere, with :meth:`parameters` and these columns."""
        self._booster, self.columns = booster, columns

    @property
    def num_trees(self) -> int:
        """How many trees the model has."""
        return int(self.booster.num_trees())

    def _train(self, parameters: dict[str, Any], data: lgb.Dataset) -> None:
        rounds, patience = self.config.num_trees, self.config.patience
        sizes = np.asarray(data.group)
        if not patience or len(sizes) < _FEWEST_JUDGED:
            self._booster = grow(self.kind, parameters, data, rounds)
            return
        data.params = {**(data.params or {}), **parameters}
        task = np.repeat(np.arange(len(sizes)), sizes)
        learned, judged = (
            data.subset(np.flatnonzero(rows).tolist())
            for rows in (task % _FEWEST_JUDGED != 0, task % _FEWEST_JUDGED == 0)
        )
        self._booster = grow(
            self.kind,
            parameters | _JUDGED,
            learned,
            rounds,
            valid_sets=[judged],
            callbacks=[lgb.early_stopping(patience, verbose=False)],
        )

    def parameters(self, seed: int) -> dict[str, Any]:
        """Return what LightGBM is told."""
        return tree_parameters(self.config, seed) | {
            "objective": "lambdarank",
            "label_gain": list(np.arange(self.config.relevance_levels, dtype=float)),
            "lambdarank_truncation_level": 50,
            "min_data_in_leaf": self.config.min_programs_per_leaf,
            "feature_fraction": self.config.feature_fraction,
        }

    def ranking_data(
        self, batch: FeatureBatch, labels: Floats, groups: Integers
    ) -> tuple[Float32s, Levels, list[int]]:
        """Return pooled features, relevance, and the sizes of what is ranked together, in order."""
        order = np.argsort(groups, kind="stable")
        sizes = np.unique(groups, return_counts=True)[1]
        pooled = self.seen(batch).pooled()[order]
        return pooled, self.relevance(labels[order]), ranked_together(sizes)

    def relevance(self, labels: Floats) -> Levels:
        """Round labels to levels of relevance."""
        return np.rint(labels * (self.config.relevance_levels - 1)).astype("int32")

    def predict(self, batch: FeatureBatch) -> Floats:
        """See :meth:`CostModel.predict`."""
        return self._run(batch) if len(batch) else np.zeros(0)

    def stages(self, batch: FeatureBatch) -> Iterator[tuple[int, Floats]]:
        """Yield the scores of its first trees; see :meth:`CostModel.stages`."""
        pooled = self.seen(batch).pooled()
        for count in np.unique(np.geomspace(1, self.num_trees, _STAGES).astype("int64")):
            yield int(count), np.asarray(self.booster.predict(pooled, num_iteration=int(count)))

    def leaves(self, batch: FeatureBatch) -> Integers:
        """Return the leaves that programs fall into; int64 `n x t`, of the first trees."""
        leaves = self._run(batch, pred_leaf=True, num_iteration=_MOST_LEAVES)
        return np.asarray(leaves, "int64").reshape(len(batch), -1)

    def _run(self, batch: FeatureBatch, **options: Any) -> Any:
        threads = 1 if len(batch) <= _FEW_ROWS else 0
        return self.booster.predict(self.seen(batch).pooled(), num_threads=threads, **options)


class ScheduleGbdtModel(GbdtModel):
    """The same from a program's decisions alone: from as much as follows without lowering it."""

    kind = "gbdt-schedules"
    view = "schedule"

    def __init__(self, config: GbdtConfig | None = None) -> None:
        super().__init__(config or GbdtConfig(num_trees=_FEWER_TREES))
