"""A small transformer over a schedule's decisions, after TLP (ASPLOS'23).

It never sees the lowered program, so it scores thousands of candidates in the time that it takes
to lower one. Trained in torch by LambdaRank; scored in numpy.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Self

import numpy as np
from pydantic import Field, model_validator

from costlib.arrays import Float32s, Floats, Integers
from costlib.features.batch import FeatureBatch
from costlib.models.base import check_training_data
from costlib.models.baselines.neural import (
    NeuralConfig,
    NeuralModel,
    Shapes,
    load_weights,
    train_to_rank,
)
from costlib.models.baselines.normalisation import Normalisation

MAX_TOKENS = 48
"""Decisions of a program that are looked at."""

_AT_ONCE = 4096


class SequenceConfig(NeuralConfig):
    """Settings of :class:`SequenceModel`.

    Attributes
    ----------
    width, heads
        Of the attention layer.
    """

    width: int = Field(64, gt=0)
    heads: int = Field(4, gt=0)

    @model_validator(mode="after")
    def _heads_share_the_width(self) -> Self:
        if self.width % self.heads:
            raise ValueError(f"a width of {self.width} cannot be shared by {self.heads} heads")
        return self


class SequenceModel(NeuralModel):
    """Scores a program from its decisions: a layer of attention, a sum, and an MLP."""

    kind = "sequence"
    config: SequenceConfig
    view = "schedule"

    def __init__(self, config: SequenceConfig | None = None) -> None:
        self.config = config or SequenceConfig()
        self._weights: dict[str, Float32s] = {}

    def fit(
        self,
        batch: FeatureBatch,
        labels: Floats,
        groups: Integers,
        *,
        seed: int = 0,
    ) -> None:
        """Train from scratch; see :meth:`CostModel.fit`."""
        import torch

        check_training_data(batch, labels, groups)
        norm = Normalisation.of(batch)
        tokens, mask = (torch.from_numpy(x) for x in _padded(batch, norm.stores(batch.stores)))
        context = torch.from_numpy(norm.context(batch.context))
        generator = torch.Generator().manual_seed(seed)
        network = {
            name: (
                torch.randn(*shape, generator=generator) * shape[0] ** -0.5
                if len(shape) > 1
                else torch.zeros(*shape)
            ).requires_grad_()
            for name, shape in _shapes(tokens.shape[2], context.shape[1], self.config).items()
        }

        def score(rows: Integers) -> Any:
            return _forward(
                torch, network, tokens[rows], mask[rows], context[rows], self.config.heads
            )

        self._weights = norm.arrays() | train_to_rank(
            network, score, labels, groups, self.config, seed, name=self.kind
        )

    def predict(self, batch: FeatureBatch) -> Floats:
        """Score programs; float64 `n`."""
        assert self._weights, "fit or load the model first"
        if len(batch) == 0:
            return np.zeros(0)
        norm = Normalisation.from_arrays(self._weights)
        tokens, mask = _padded(batch, norm.stores(batch.stores))
        context = norm.context(batch.context)
        scores = [
            _forward(
                np,
                self._weights,
                tokens[start : start + _AT_ONCE],
                mask[start : start + _AT_ONCE],
                context[start : start + _AT_ONCE],
                self.config.heads,
            )
            for start in range(0, len(batch), _AT_ONCE)
        ]
        return np.concatenate(scores).astype("float64")

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Read what :meth:`save` wrote."""
        weights, config = load_weights(folder, cls.kind, SequenceConfig, _shapes)
        model = cls(config)
        model._weights = weights
        return model


def _padded(batch: FeatureBatch, tokens: Float32s) -> tuple[Float32s, Float32s]:
    """Return tokens as float32 `n x t x f`, and 1 where there is one, `n x t`."""
    counts = np.minimum(np.diff(batch.offsets), MAX_TOKENS)
    longest = int(counts.max())
    mask = np.arange(longest) < counts[:, None]
    padded = np.zeros((*mask.shape, tokens.shape[1]), "float32")
    rows = batch.offsets[:-1, None] + np.arange(longest)
    padded[mask] = tokens[rows[mask]]
    return padded, mask.astype("float32")


def _shapes(token: int, context: int, config: SequenceConfig) -> Shapes:
    width = config.width
    return {
        "token.weight": (token, width),
        "token.bias": (width,),
        "place.weight": (MAX_TOKENS, width),
        "attention.weight": (width, 3 * width),
        "attention.out": (width, width),
        "mix0.weight": (width, 2 * width),
        "mix0.bias": (2 * width,),
        "mix1.weight": (2 * width, width),
        "mix1.bias": (width,),
        "head0.weight": (width + context, 2 * width),
        "head0.bias": (2 * width,),
        "head1.weight": (2 * width, 2 * width),
        "head1.bias": (2 * width,),
        "head2.weight": (2 * width, 1),
        "head2.bias": (1,),
    }


def _forward(xp: Any, weights: Any, tokens: Any, mask: Any, context: Any, heads: int) -> Any:
    """Score programs; ``xp`` is torch or numpy, whose names agree in what is used here.

    Parameters
    ----------
    xp
        The library of the arrays.
    weights
        By name.
    tokens, mask, context
        float32 `n x t x f`, `n x t` and `n x c`.
    heads
        Of the attention.

    Returns
    -------
    array
        float32 `n`.
    """
    n, t, _ = tokens.shape

    def linear(name: str, x: Any) -> Any:
        return x @ weights[f"{name}.weight"] + weights[f"{name}.bias"]

    def relu(x: Any) -> Any:
        return x * (x > 0)

    def split(x: Any) -> Any:
        return xp.swapaxes(x.reshape(n, t, heads, -1), 1, 2)

    hidden = relu(linear("token", tokens)) + weights["place.weight"][:t]
    width = hidden.shape[-1]
    mixed = hidden @ weights["attention.weight"]
    query, key, value = (split(mixed[:, :, i * width : (i + 1) * width]) for i in range(3))
    logits = query @ xp.swapaxes(key, -1, -2) * (width / heads) ** -0.5
    weight = xp.exp(logits - xp.amax(logits, -1)[..., None]) * mask[:, None, None, :]
    attended = (weight / (weight.sum(-1)[..., None] + 1e-9)) @ value
    attended = xp.swapaxes(attended, 1, 2).reshape(n, t, width)
    hidden = hidden + attended @ weights["attention.out"]
    hidden = hidden + linear("mix1", relu(linear("mix0", hidden)))
    summed = (hidden * mask[:, :, None]).sum(1) / 4
    out = relu(linear("head0", xp.concatenate([summed, context], 1)))
    out = out + relu(linear("head1", out))
    return linear("head2", out)[:, 0]
