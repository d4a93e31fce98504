"""What the literature ranks programs with, for the leaderboard: settings and shapes as published.

They get the same features and labels as costlib's own models. What they need beyond costlib's
requirements: ``pip install -e '.[bench]'``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar, Protocol

import numpy as np

from costlib.arrays import Float32s, Floats
from costlib.features.batch import FeatureBatch
from costlib.models.base import View
from costlib.models.baselines.ranking_loss import lambda_rank

Groups = np.ndarray[Any, np.dtype[np.int64]]

_EPOCHS = 50
_BATCH = 512
_LEARNING_RATE = 7e-4
_WEIGHT_DECAY = 1e-6
"""Of TenSet's MLP and of TLP alike (their published training scripts)."""

_TLP_LENGTH = 25
"""Steps of a schedule that TLP looks at."""


class Ranker(Protocol):
    """What the leaderboard needs of a model; costlib's own have it, too."""

    view: ClassVar[View]

    def fit(self, batch: FeatureBatch, labels: Floats, groups: Groups, *, seed: int = 0) -> None:
        """Train from scratch; see :meth:`costlib.models.base.CostModel.fit`."""

    def predict(self, batch: FeatureBatch) -> Floats:
        """Score programs; float64 `n`."""


class RandomRanker:
    """Floats at random."""

    view: ClassVar[View] = "statements"

    def fit(self, batch: FeatureBatch, labels: Floats, groups: Groups, *, seed: int = 0) -> None:
        """Learn nothing."""
        self._rng = np.random.default_rng(seed)

    def predict(self, batch: FeatureBatch) -> Floats:
        """Draw float64 `n`."""
        return self._rng.random(len(batch))


class StockXgb:
    """MetaSchedule's ``XGBModel`` itself, trained at once on all records.

    It has no random choice, so all seeds give the same.
    """

    view: ClassVar[View] = "statements"

    def fit(self, batch: FeatureBatch, labels: Floats, groups: Groups, *, seed: int = 0) -> None:
        """Train with its stock settings; its early stopping watches the training error."""
        from costlib.tvm_compat import ms

        self._model = ms.cost_model.XGBModel()._inst
        self._model._train(_programs(batch), labels.astype("float32"))

    def predict(self, batch: FeatureBatch) -> Floats:
        """Score programs; float64 `n`."""
        return np.asarray(self._model._predict(_programs(batch)), "float64")


class TensetGbdt:
    """TenSet's XGBoost (``xgb_model.py`` of the TenSet repository): sum over statements."""

    view: ClassVar[View] = "statements"

    def fit(self, batch: FeatureBatch, labels: Floats, groups: Groups, *, seed: int = 0) -> None:
        """Train with the published settings, stopping early on a tenth of the programs."""
        import xgboost

        held = np.random.default_rng(seed).random(len(batch)) < 0.1
        owners = np.repeat(np.arange(len(batch)), np.diff(batch.offsets))
        judged = held[owners]
        targets = labels[owners]

        def gradients(scores: Floats, _: Any) -> tuple[Floats, Floats]:
            sums = np.bincount(owners[~judged], scores, len(batch))
            weights = targets[~judged]
            return (sums[owners[~judged]] - weights) * weights, weights

        def error(scores: Floats, _: Any) -> tuple[str, float]:
            sums = np.bincount(owners[judged], scores, len(batch))
            return "p-rmse", float(np.sqrt(np.mean((sums - labels)[held] ** 2)))

        self._booster = xgboost.train(
            {
                "max_depth": 6,
                "gamma": 0.003,
                "min_child_weight": 2,
                "eta": 0.2,
                "seed": seed,
                "disable_default_eval_metric": 1,
                "base_score": 0.0,
            },
            xgboost.DMatrix(batch.stores[~judged], targets[~judged]),
            num_boost_round=300,
            obj=gradients,
            evals=[(xgboost.DMatrix(batch.stores[judged], targets[judged]), "judged")],
            custom_metric=error,
            early_stopping_rounds=50,
            verbose_eval=False,
        )

    def predict(self, batch: FeatureBatch) -> Floats:
        """Score programs; float64 `n`."""
        import xgboost

        scores = self._booster.predict(xgboost.DMatrix(batch.stores))
        return np.add.reduceat(scores.astype("float64"), batch.offsets[:-1])


class _Torch:
    """Trained by LambdaRank in batches of programs of any tasks, as TenSet and TLP do it."""

    view: ClassVar[View]

    def _train(
        self, network: Any, score: Callable[[Groups], Any], labels: Floats, seed: int
    ) -> None:
        import torch

        optimizer = torch.optim.Adam(
            network.parameters(), lr=_LEARNING_RATE, weight_decay=_WEIGHT_DECAY
        )
        targets = torch.from_numpy(labels.astype("float32"))
        rng = np.random.default_rng(seed)
        for _ in range(_EPOCHS):
            for rows in _batches(rng.permutation(len(labels))):
                loss = lambda_rank(score(rows)[None], targets[rows][None])
                optimizer.zero_grad()
                loss.backward()
                torch.nn.utils.clip_grad_norm_(network.parameters(), 0.5)
                optimizer.step()


class TensetMlp(_Torch):
    """TenSet's MLP (``mlp_model.py`` of the TenSet repository): segment sum over statements."""

    view: ClassVar[View] = "statements"
    _WIDTH = 256

    def fit(self, batch: FeatureBatch, labels: Floats, groups: Groups, *, seed: int = 0) -> None:
        """Train on columns divided by their largest value, which it keeps."""
        import torch

        torch.manual_seed(seed)
        width = self._WIDTH
        self._largest = np.maximum(np.abs(batch.stores).max(0), 1e-6)
        self._encoder = torch.nn.Sequential(
            torch.nn.Linear(batch.stores.shape[1], width),
            torch.nn.ReLU(),
            torch.nn.Linear(width, width),
            torch.nn.ReLU(),
        )
        self._residual = torch.nn.ModuleList(torch.nn.Linear(width, width) for _ in range(2))
        self._decoder = torch.nn.Linear(width, 1)
        network = torch.nn.ModuleList([self._encoder, self._residual, self._decoder])
        stores = torch.from_numpy(batch.stores / self._largest)
        self._train(network, lambda rows: self._score(stores, batch.offsets, rows), labels, seed)

    def predict(self, batch: FeatureBatch) -> Floats:
        """Score programs; float64 `n`."""
        import torch

        stores = torch.from_numpy(batch.stores / self._largest)
        with torch.no_grad():
            scores = [
                self._score(stores, batch.offsets, rows) for rows in _batches(np.arange(len(batch)))
            ]
        return np.asarray(torch.cat(scores).numpy(), "float64")

    def _score(self, stores: Any, offsets: Groups, rows: Groups) -> Any:
        import torch

        counts = np.diff(offsets)[rows]
        taken = np.concatenate([np.arange(offsets[row], offsets[row + 1]) for row in rows])
        owners = torch.from_numpy(np.repeat(np.arange(len(rows)), counts))
        hidden = self._encoder(stores[taken])
        summed = hidden.new_zeros(len(rows), hidden.shape[1]).index_add(0, owners, hidden)
        for layer in self._residual:
            summed = torch.relu(layer(summed)) + summed
        return self._decoder(summed)[:, 0]


class Tlp(_Torch):
    """TLP's network (ASPLOS'23): attention over the schedule, no lowering.

    Its tokens are those of costlib's schedule view instead of TLP's own 22 columns of TVM 0.8's
    schedule primitives, which today's schedules do not have; the task's and the hardware's context
    is left out, as there.
    """

    view: ClassVar[View] = "schedule"

    def fit(self, batch: FeatureBatch, labels: Floats, groups: Groups, *, seed: int = 0) -> None:
        """Train with the published shapes: 64-128-256-256, eight heads, two residual layers."""
        import torch

        torch.manual_seed(seed)
        linear, relu = torch.nn.Linear, torch.nn.ReLU
        self._encoder = torch.nn.Sequential(
            *(linear(batch.stores.shape[1], 64), relu(), linear(64, 128), relu()),
            *(linear(128, 256), relu(), linear(256, 256), relu()),
        )
        self._attention = torch.nn.MultiheadAttention(256, 8)
        self._residual = torch.nn.ModuleList(
            torch.nn.Sequential(linear(256, 256), relu()) for _ in range(2)
        )
        self._decoder = torch.nn.Sequential(
            *(linear(256, 256), relu(), linear(256, 128), relu()),
            *(linear(128, 64), relu(), linear(64, 1)),
        )
        network = torch.nn.ModuleList(
            [self._encoder, self._attention, self._residual, self._decoder]
        )
        tokens = torch.from_numpy(_padded(batch, _TLP_LENGTH))
        self._train(network, lambda rows: self._score(tokens[rows]), labels, seed)

    def predict(self, batch: FeatureBatch) -> Floats:
        """Score programs; float64 `n`."""
        import torch

        tokens = torch.from_numpy(_padded(batch, _TLP_LENGTH))
        with torch.no_grad():
            scores = [self._score(tokens[rows]) for rows in _batches(np.arange(len(batch)))]
        return np.asarray(torch.cat(scores).numpy(), "float64")

    def _score(self, tokens: Any) -> Any:
        hidden = self._encoder(tokens).transpose(0, 1)
        hidden = self._attention(hidden, hidden, hidden, need_weights=False)[0] + hidden
        for layer in self._residual:
            hidden = layer(hidden) + hidden
        return self._decoder(hidden).sum(0)[:, 0]


def _programs(batch: FeatureBatch) -> list[Float32s]:
    return np.split(batch.stores, batch.offsets[1:-1])


def _batches(rows: Groups) -> Iterator[Groups]:
    for start in range(0, len(rows), _BATCH):
        yield rows[start : start + _BATCH]


def _padded(batch: FeatureBatch, length: int) -> Float32s:
    """Return the first tokens of each program, float32 `n x length x d`, zeros behind them."""
    counts = np.minimum(np.diff(batch.offsets), length)
    mask = np.arange(length) < counts[:, None]
    padded = np.zeros((*mask.shape, batch.stores.shape[1]), "float32")
    padded[mask] = batch.stores[(batch.offsets[:-1, None] + np.arange(length))[mask]]
    return padded
