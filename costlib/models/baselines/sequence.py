"""A small transformer over a schedule's decisions, after TLP (ASPLOS'23).

It never sees the lowered program, so it scores thousands of candidates in the time that it takes
to lower one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Self

import numpy as np
from pydantic import Field, model_validator

from costlib.arrays import Float32s, Integers
from costlib.features.batch import FeatureBatch
from costlib.models.baselines.neural import NeuralConfig, NeuralModel, Shapes, layers, linear, relu

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


class SequenceModel(NeuralModel[SequenceConfig]):
    """Scores a program from its decisions: a layer of attention, a sum, and an MLP."""

    kind = "sequence"
    view = "schedule"
    config_type = SequenceConfig
    gain = 1.0

    @staticmethod
    def shapes(stores: int, context: int, config: SequenceConfig) -> Shapes:
        """See :meth:`NeuralModel.shapes`."""
        width = config.width
        attention = {
            "place.weight": (MAX_TOKENS, width),
            "attention.weight": (width, 3 * width),
            "attention.out": (width, width),
        }
        return (
            layers(token=(stores, width))
            | attention
            | layers(
                mix0=(width, 2 * width),
                mix1=(2 * width, width),
                head0=(width + context, 2 * width),
                head1=(2 * width, 2 * width),
                head2=(2 * width, 1),
            )
        )

    def scorer(
        self, xp: Any, weights: Mapping[str, Any], batch: FeatureBatch
    ) -> Callable[[Integers], Any]:
        """See :meth:`NeuralModel.scorer`."""
        tokens, mask, context = map(xp.asarray, (*_padded(batch), batch.context))
        heads = self.config.heads

        def score(rows: Integers) -> Any:
            parts = [rows[start : start + _AT_ONCE] for start in range(0, len(rows), _AT_ONCE)]
            return xp.concatenate(
                [_forward(xp, weights, tokens[p], mask[p], context[p], heads) for p in parts]
            )

        return score


def _padded(batch: FeatureBatch) -> tuple[Float32s, Float32s]:
    """Return tokens as float32 `n x t x f`, and 1 where there is one, `n x t`."""
    counts = np.minimum(np.diff(batch.offsets), MAX_TOKENS)
    longest = int(counts.max())
    mask = np.arange(longest) < counts[:, None]
    padded = np.zeros((*mask.shape, batch.stores.shape[1]), "float32")
    rows = batch.offsets[:-1, None] + np.arange(longest)
    padded[mask] = batch.stores[rows[mask]]
    return padded, mask.astype("float32")


def _forward(xp: Any, weights: Any, tokens: Any, mask: Any, context: Any, heads: int) -> Any:
    """Score `n` programs by float32 `n x t x f`, `n x t` and `n x c`.

    ``xp`` is torch or numpy, whose names agree in what is used here.
    """
    n, t, _ = tokens.shape

    def split(x: Any) -> Any:
        return xp.swapaxes(x.reshape(n, t, heads, -1), 1, 2)

    hidden = relu(linear(weights, "token", tokens)) + weights["place.weight"][:t]
    width = hidden.shape[-1]
    mixed = hidden @ weights["attention.weight"]
    query, key, value = (split(mixed[:, :, i * width : (i + 1) * width]) for i in range(3))
    logits = query @ xp.swapaxes(key, -1, -2) * (width / heads) ** -0.5
    weight = xp.exp(logits - xp.amax(logits, -1)[..., None]) * mask[:, None, None, :]
    attended = (weight / (weight.sum(-1)[..., None] + 1e-9)) @ value
    attended = xp.swapaxes(attended, 1, 2).reshape(n, t, width)
    hidden = hidden + attended @ weights["attention.out"]
    hidden = hidden + linear(weights, "mix1", relu(linear(weights, "mix0", hidden)))
    summed = (hidden * mask[:, :, None]).sum(1) / 4
    out = relu(linear(weights, "head0", xp.concatenate([summed, context], 1)))
    out = out + relu(linear(weights, "head1", out))
    return linear(weights, "head2", out)[:, 0]
