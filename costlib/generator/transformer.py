"""A decoder-only transformer, small enough to train on a CPU."""

from __future__ import annotations

import itertools
from typing import Any

from pydantic import Field

from costlib.frozen import FrozenStrict

_HEAD = 32
"""Width of an attention head."""


class GeneratorConfig(FrozenStrict):
    """Settings of :class:`Generator`.

    Attributes
    ----------
    width, layers
        Of the transformer: 2.4 million parameters by default. An attention head is 32 wide.
    max_tokens
        The longest sequence.
    random_programs
        Programs of each task that are drawn at random, of all sketches alike.
    imagined_programs
        Programs of each task that a model of schedules thinks best of their sketch.
    invented_per_task
        So many tasks are invented for each one of the dataset; there are imagined and random
        programs of these, too.
    epochs
        Passes over all programs.
    batch, learning_rate
        Of the training, with AdamW and a rate that falls to zero along a cosine.
    """

    width: int = Field(192, ge=_HEAD, le=1 << 14, multiple_of=_HEAD)
    layers: int = Field(5, ge=1, le=256)
    max_tokens: int = Field(256, ge=1, le=1 << 16)
    random_programs: int = Field(12, ge=0)
    imagined_programs: int = Field(60, ge=0)
    invented_per_task: float = Field(1.0, ge=0)
    epochs: int = Field(2, ge=1)
    batch: int = Field(32, ge=1)
    learning_rate: float = Field(1e-3, gt=0)

    @property
    def heads(self) -> int:
        """Heads of attention in each layer."""
        return self.width // _HEAD


class Cache:
    """What a transformer has read of so many sequences.

    Parameters
    ----------
    config
        Of the transformer.
    count, tokens
        Sequences, and the most tokens in each.

    Attributes
    ----------
    length
        Tokens read.
    """

    def __init__(self, config: GeneratorConfig, count: int, tokens: int) -> None:
        import torch

        self._kept = torch.empty(config.layers, 2, count, config.heads, tokens, _HEAD)
        self.length = 0

    def keep(self, layer: int, key: Any, value: Any) -> Any:
        """Add `n x heads x t x 32` keys and values; return those of all tokens so far.

        If `n` is 1, what is added is the same in all sequences.
        """
        end = self.length + key.shape[2]
        for kept, new in zip(self._kept[layer], (key, value), strict=True):
            kept[:, :, self.length : end] = new
        return self._kept[layer][:, : len(key), :, :end]


def weight_shapes(vocabulary: int, config: GeneratorConfig) -> dict[str, tuple[int, ...]]:
    """Return the shape of each weight of a transformer, without making it.

    Making it of no memory, PyTorch would import its compiler, which takes seconds.
    """
    width = config.width
    layers = {"mix": (3 * width, width), "out": (width, width)}
    layers |= {"wide": (4 * width, width), "narrow": (width, 4 * width)}
    shapes: dict[str, tuple[int, ...]] = {"tokens.weight": (vocabulary, width)}
    shapes["places.weight"] = (config.max_tokens, width)
    blocks = [f"blocks.{number}." for number in range(config.layers)]
    for block, (name, shape) in itertools.product(blocks, layers.items()):
        shapes |= {f"{block}{name}.weight": shape, f"{block}{name}.bias": shape[:1]}
    for norm in ("norm", *(f"{block}norm{number}" for block in blocks for number in range(2))):
        shapes |= {f"{norm}.weight": (width,), f"{norm}.bias": (width,)}
    return shapes


def build_transformer(vocabulary: int, config: GeneratorConfig, seed: int) -> Any:
    """Make the transformer: pre-norm, learnt places, output weights tied to the embedding."""
    import torch
    from torch import nn

    class Block(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.norm0 = nn.LayerNorm(config.width)
            self.mix = nn.Linear(config.width, 3 * config.width)
            self.out = nn.Linear(config.width, config.width)
            self.norm1 = nn.LayerNorm(config.width)
            self.wide = nn.Linear(config.width, 4 * config.width)
            self.narrow = nn.Linear(4 * config.width, config.width)

        def forward(self, x: Any, layer: int, cache: Cache | None) -> Any:
            n, t, _ = x.shape
            query, key, value = (
                part.view(n, t, config.heads, -1).transpose(1, 2)
                for part in self.mix(self.norm0(x)).split(config.width, 2)
            )
            if cache is not None:
                key, value = cache.keep(layer, key, value)
            past = key.shape[2] - t
            seen = torch.ones(t, past + t, dtype=torch.bool).tril(past) if past and t > 1 else None
            mixed = nn.functional.scaled_dot_product_attention(
                query, key, value, attn_mask=seen, is_causal=past == 0
            )
            x = x + self.out(mixed.transpose(1, 2).reshape(n, t, -1))
            return x + self.narrow(nn.functional.gelu(self.wide(self.norm1(x))))

    class Transformer(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.tokens = nn.Embedding(vocabulary, config.width)
            self.places = nn.Embedding(config.max_tokens, config.width)
            self.blocks = nn.ModuleList(Block() for _ in range(config.layers))
            self.norm = nn.LayerNorm(config.width)

        def forward(self, tokens: Any, cache: Cache | None = None) -> Any:
            """Return logits `n x t x v`; with a cache, ``tokens`` follow what it holds."""
            past = 0 if cache is None else cache.length
            places = torch.arange(past, past + tokens.shape[1])
            x = self.tokens(tokens) + self.places(places)
            for layer, block in enumerate(self.blocks):
                x = block(x, layer, cache)
            if cache is not None:
                cache.length += tokens.shape[1]
            return self.norm(x) @ self.tokens.weight.T

    with torch.random.fork_rng():
        torch.manual_seed(seed)
        network = Transformer()
        for parameter in network.parameters():
            if parameter.dim() > 1:
                nn.init.normal_(parameter, std=0.02)
    return network
