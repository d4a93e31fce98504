"""A tensor language model: writes the decisions of good programs (TLM, OSDI'24).

A decoder-only transformer over the tokens of :mod:`costlib.features.language`, in torch. It reads
how good a program is to be, then hardware, task and sketch, and writes decisions; only tokens that
keep the program valid can be written. Trained on programs of all qualities, each told apart by its
quality token, so that bad programs teach it something, too.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from costlib.errors import BundleError, InputError

PAD = 0

_WEIGHTS = "weights.safetensors"
_SETTINGS = "generator.json"

Integers = np.ndarray[Any, np.dtype[np.int64]]
Bools = np.ndarray[Any, np.dtype[np.bool_]]

Allowed = Callable[[int, Integers], Bools]
"""A position after the prompt and what was written before, `n x position`, to the tokens that may
come there, bool `n x vocabulary`."""


class GeneratorConfig(BaseModel):
    """Settings of :class:`Generator`.

    Attributes
    ----------
    width, layers, heads
        Of the transformer: 2.4 million parameters by default.
    max_tokens
        The longest sequence.
    epochs, batch, learning_rate
        Of the training, with AdamW and a rate that falls to zero along a cosine.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    width: int = 192
    layers: int = 5
    heads: int = 6
    max_tokens: int = 256
    epochs: int = Field(10, ge=1)
    batch: int = 64
    learning_rate: float = 6e-4


class Generator:
    """Writes decisions token by token.

    Parameters
    ----------
    vocabulary
        How many tokens there are.
    language
        The version of the language that they belong to.
    config
        Its size and training.
    seed
        Of the first weights.
    """

    def __init__(
        self, vocabulary: int, language: str, config: GeneratorConfig | None = None, seed: int = 0
    ) -> None:
        self.config = config or GeneratorConfig()
        self.language = language
        self.vocabulary = vocabulary
        self._network = _network(vocabulary, self.config, seed)

    def fit(
        self,
        sequences: Sequence[Integers],
        chosen: Sequence[Bools],
        *,
        seed: int = 0,
        epochs: int | None = None,
        on_progress: Callable[[int, int, float], None] | None = None,
    ) -> None:
        """Train on sequences, from the weights that are there.

        Parameters
        ----------
        sequences
            int64, one array of tokens for each program.
        chosen
            bool, as long: which tokens are to be learnt; the others are given.
        seed
            Decides the order.
        epochs
            Instead of the config's.
        on_progress
            Called with (step, steps, loss) after each step.

        Raises
        ------
        InputError
            There is no sequence that is short enough.
        """
        import torch

        usable = [i for i, s in enumerate(sequences) if len(s) <= self.config.max_tokens]
        if not usable:
            raise InputError(f"no sequence has {self.config.max_tokens} tokens or fewer")
        rng = np.random.default_rng(seed)
        epochs = self.config.epochs if epochs is None else epochs
        steps = epochs * math.ceil(len(usable) / self.config.batch)
        optimizer = torch.optim.AdamW(
            self._network.parameters(), lr=self.config.learning_rate, weight_decay=0.01
        )
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
        self._network.train()
        step = 0
        for _ in range(epochs):
            for rows in _by_length(usable, sequences, self.config.batch, rng):
                tokens, mask = _padded([sequences[i] for i in rows], [chosen[i] for i in rows])
                logits = self._network(torch.from_numpy(tokens[:, :-1]))
                losses = torch.nn.functional.cross_entropy(
                    logits.flatten(0, 1),
                    torch.from_numpy(tokens[:, 1:]).flatten(),
                    reduction="none",
                )
                weights = torch.from_numpy(mask[:, 1:]).flatten()
                loss = (losses * weights).sum() / weights.sum()
                optimizer.zero_grad()
                loss.backward()
                torch.nn.utils.clip_grad_norm_(self._network.parameters(), 1.0)
                optimizer.step()
                schedule.step()
                step += 1
                if on_progress is not None:
                    on_progress(step, steps, float(loss.detach()))

    def losses(self, sequences: Sequence[Integers], chosen: Sequence[Bools]) -> Any:
        """Return the mean loss of each sequence's chosen tokens, float64 `n`."""
        import torch

        self._network.eval()
        found = []
        with torch.inference_mode():
            for tokens, mask in zip(sequences, chosen, strict=True):
                logits = self._network(torch.from_numpy(tokens[None, :-1]))[0]
                losses = torch.nn.functional.cross_entropy(
                    logits, torch.from_numpy(tokens[1:]), reduction="none"
                )
                found.append(float(losses.numpy()[mask[1:]].mean()))
        return np.array(found)

    def generate(
        self,
        prompt: Sequence[int],
        layout: Sequence[int | None],
        allowed: Allowed,
        count: int,
        rng: np.random.Generator,
        temperature: float = 1.0,
    ) -> Integers:
        """Write programs of one sketch, all at once, with cached keys and values.

        Parameters
        ----------
        prompt
            Tokens of quality, hardware, task and sketch.
        layout
            For each position after it the token that is given there, or ``None`` to choose one.
        allowed
            What may be chosen.
        count
            How many programs.
        rng
            Draws the tokens.
        temperature
            Below 1 likely tokens become likelier; 0 takes the likeliest.

        Returns
        -------
        ndarray
            int64 `count x len(layout)`.

        Raises
        ------
        InputError
            It would be longer than the model can write.
        """
        import torch

        if len(prompt) + len(layout) > self.config.max_tokens:
            raise InputError(
                f"a program of this sketch takes {len(prompt) + len(layout)} tokens, the "
                f"generator writes {self.config.max_tokens}"
            )
        self._network.eval()
        written = np.zeros((count, 0), "int64")
        with torch.inference_mode():
            tokens = torch.tensor(list(prompt))[None].expand(count, -1)
            cache: list[Any] = [None] * self.config.layers
            logits = self._network(tokens, cache)[:, -1]
            for position, given in enumerate(layout):
                if given is None:
                    mask = allowed(position, written)
                    column = _draw(logits.numpy().astype("float64"), mask, temperature, rng)
                else:
                    column = np.full(count, given)
                written = np.hstack([written, column[:, None]])
                if position + 1 < len(layout):
                    logits = self._network(torch.from_numpy(column)[:, None], cache)[:, -1]
        return written

    def save(self, folder: Path) -> None:
        """Write weights and settings into an existing folder."""
        from safetensors.torch import save_file

        state = {k: v.contiguous() for k, v in self._network.state_dict().items()}
        save_file(state, folder / _WEIGHTS)
        settings = {
            "language": self.language,
            "vocabulary": self.vocabulary,
            "config": self.config.model_dump(),
        }
        (folder / _SETTINGS).write_text(json.dumps(settings, indent=2) + "\n")

    @classmethod
    def load(cls, folder: Path, language: str) -> Self:
        """Read what :meth:`save` wrote.

        Raises
        ------
        BundleError
            It is not there, or of another language than ``language``.
        """
        from safetensors import SafetensorError
        from safetensors.torch import load_file

        try:
            settings = json.loads((folder / _SETTINGS).read_text())
            found = settings["language"]
            if found != language:
                raise BundleError(
                    f"{folder} holds a generator of the language '{found}', this costlib "
                    f"writes '{language}'; train it again"
                )
            config = GeneratorConfig(**settings["config"])
            model = cls(int(settings["vocabulary"]), language, config)
            model._network.load_state_dict(load_file(folder / _WEIGHTS))
        except (OSError, ValueError, KeyError, TypeError, RuntimeError, SafetensorError) as error:
            if isinstance(error, BundleError):
                raise
            reason = str(error).splitlines()[0]
            raise BundleError(f"{folder} holds no generator: {reason}") from None
        return model


def _draw(logits: Any, mask: Bools, temperature: float, rng: np.random.Generator) -> Integers:
    """Draw a token for each row among those that its mask allows."""
    logits = np.where(mask, logits, -np.inf)
    if temperature > 0:
        logits = logits / temperature + rng.gumbel(size=logits.shape)
    return np.asarray(logits.argmax(1), "int64")


def _by_length(
    usable: Sequence[int], sequences: Sequence[Integers], batch: int, rng: np.random.Generator
) -> Iterator[list[int]]:
    """Yield batches of sequences of about the same length, in random order."""
    order = sorted(rng.permutation(usable).tolist(), key=lambda i: len(sequences[i]))
    batches = [order[start : start + batch] for start in range(0, len(order), batch)]
    for number in rng.permutation(len(batches)):
        yield batches[number]


def _padded(sequences: Sequence[Integers], chosen: Sequence[Bools]) -> tuple[Any, Any]:
    """Return int64 `n x longest` tokens and float32 `n x longest`, 1 where one is learnt."""
    longest = max(len(sequence) for sequence in sequences)
    tokens = np.full((len(sequences), longest), PAD, "int64")
    mask = np.zeros(tokens.shape, "float32")
    for row, (sequence, learnt) in enumerate(zip(sequences, chosen, strict=True)):
        tokens[row, : len(sequence)] = sequence
        mask[row, : len(sequence)] = learnt
    return tokens, mask


def _network(vocabulary: int, config: GeneratorConfig, seed: int) -> Any:
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

        def forward(self, x: Any, cache: Any) -> tuple[Any, Any]:
            n, t, _ = x.shape
            query, key, value = (
                part.view(n, t, config.heads, -1).transpose(1, 2)
                for part in self.mix(self.norm0(x)).split(config.width, 2)
            )
            if cache is not None:
                key, value = torch.cat([cache[0], key], 2), torch.cat([cache[1], value], 2)
            mixed = nn.functional.scaled_dot_product_attention(
                query, key, value, is_causal=cache is None
            )
            x = x + self.out(mixed.transpose(1, 2).reshape(n, t, -1))
            x = x + self.narrow(nn.functional.gelu(self.wide(self.norm1(x))))
            return x, (key, value)

    class Transformer(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.tokens = nn.Embedding(vocabulary, config.width)
            self.places = nn.Embedding(config.max_tokens, config.width)
            self.blocks = nn.ModuleList(Block() for _ in range(config.layers))
            self.norm = nn.LayerNorm(config.width)

        def forward(self, tokens: Any, cache: list[Any] | None = None) -> Any:
            """Return logits `n x t x v`; with a cache, ``tokens`` follow what it holds."""
            past = 0 if cache is None or cache[0] is None else cache[0][0].shape[2]
            places = torch.arange(past, past + tokens.shape[1])
            x = self.tokens(tokens) + self.places(places)
            for number, block in enumerate(self.blocks):
                x, kept = block(x, None if cache is None else cache[number])
                if cache is not None:
                    cache[number] = kept
            return self.norm(x) @ self.tokens.weight.T

    with torch.random.fork_rng():
        torch.manual_seed(seed)
        network = Transformer()
        for parameter in network.parameters():
            if parameter.dim() > 1:
                nn.init.normal_(parameter, std=0.02)
    return network
