"""Gradient-boosted trees over single statements, as in Ansor (OSDI'20).

A program's throughput is predicted as the sum of what the trees give each of its buffer stores;
the loss is squared and weighted by the throughput, so that fast programs count most.
"""

from __future__ import annotations

import numpy as np

from costlib.arrays import Float32s, Floats, Integers
from costlib.features.batch import FeatureBatch
from costlib.frozen import FrozenStrict
from costlib.models.base import check_training_data
from costlib.models.boosting import lgb
from costlib.models.trees import TreeModel, grow, tree_parameters


class StatementGbdtConfig(FrozenStrict):
    """Settings of :class:`StatementGbdtModel`, as in LightGBM."""

    num_trees: int = 300
    num_leaves: int = 63
    learning_rate: float = 0.1
    min_data_in_leaf: int = 20


class StatementGbdtModel(TreeModel[StatementGbdtConfig]):
    """Scores a program by the sum of its statements' scores."""

    kind = "gbdt-statements"
    title = "statement GBDT"
    config_type = StatementGbdtConfig

    def fit(self, batch: FeatureBatch, labels: Floats, groups: Integers, *, seed: int = 0) -> None:
        """See :meth:`CostModel.fit`."""
        check_training_data(batch, labels, groups)
        self.columns = batch.names
        starts = batch.offsets[:-1]
        counts = np.diff(batch.offsets)

        def gradients(scores: Floats, _: lgb.Dataset) -> tuple[Floats, Floats]:
            errors = np.add.reduceat(scores, starts) - labels
            return np.repeat(labels * errors, counts), np.repeat(labels, counts)

        parameters = tree_parameters(self.config, seed) | {
            "objective": gradients,
            "min_data_in_leaf": self.config.min_data_in_leaf,
            "min_sum_hessian_in_leaf": 1e-3,
            "lambda_l2": 1.0,
            "force_row_wise": True,
        }
        data = lgb.Dataset(_statements(batch))
        self._booster = grow(self.kind, parameters, data, self.config.num_trees)

    def predict(self, batch: FeatureBatch) -> Floats:
        """See :meth:`CostModel.predict`."""
        if len(batch) == 0:
            return np.zeros(0)
        statements = _statements(self.seen(batch))
        return np.add.reduceat(self.booster.predict(statements), batch.offsets[:-1])


def _statements(batch: FeatureBatch) -> Float32s:
    """Return float32 `s x (d + c)`: each store beside the context of its program."""
    context = np.repeat(batch.context, np.diff(batch.offsets), axis=0)
    return np.hstack([batch.stores, context])
