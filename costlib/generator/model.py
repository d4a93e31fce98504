"""A tensor language model: writes the decisions of good programs (TLM, OSDI'24).

A decoder-only transformer over the tokens of :mod:`costlib.generator.language`, in torch. It reads
how good a program is to be, then hardware, task and sketch, and writes decisions; only tokens that
keep the program valid can be written. Trained on programs of all qualities, each told apart by its
quality token, so that bad programs teach it something, too.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np

from costlib.arrays import Bools, Integers
from costlib.errors import BundleError, InputError
from costlib.generator.training import train_to_write
from costlib.generator.transformer import Cache, GeneratorConfig, build_transformer, weight_shapes
from costlib.models.base import reading

_WEIGHTS = "weights.safetensors"
_SETTINGS = "generator.json"

Allowed = Callable[[int, Integers], Bools]
"""A position after the prompt and what was written before, `n x position`, to the tokens that may
come there, bool `n x vocabulary`."""


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
        self._network = build_transformer(vocabulary, self.config, seed)

    def fit(
        self,
        sequences: Sequence[Integers],
        chosen: Sequence[Bools],
        *,
        seed: int = 0,
        epochs: int | None = None,
        checkpoint: Path | None = None,
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
        checkpoint
            A file to leave behind and, after a kill, to go on from with the same data and settings.
        on_progress
            Called with (step, steps, loss) after each step.

        Raises
        ------
        InputError
            There is no sequence that is short enough.
        """
        usable = [i for i, s in enumerate(sequences) if len(s) <= self.config.max_tokens]
        if not usable:
            raise InputError(f"no sequence has {self.config.max_tokens} tokens or fewer")
        train_to_write(
            self._network,
            [sequences[i] for i in usable],
            [chosen[i] for i in usable],
            self.config,
            epochs=self.config.epochs if epochs is None else epochs,
            seed=seed,
            checkpoint=checkpoint,
            on_progress=on_progress,
        )

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
        written = np.zeros((count, len(layout)), "int64")
        choices = [position for position, given in enumerate(layout) if given is None]
        for position, given in enumerate(layout):
            if given is not None:
                written[:, position] = given
        with torch.inference_mode():
            cache = Cache(self.config, count, len(prompt) + len(layout))
            start = choices[0] if choices else 0
            unread = np.concatenate([prompt, written[0, :start]]).astype("int64")[None]
            for position, following in itertools.pairwise([*choices, len(layout)]):
                logits = self._network(torch.from_numpy(unread), cache)[:, -1].numpy()
                mask = allowed(position, written[:, :position])
                written[:, position] = _draw(logits.astype("float64"), mask, temperature, rng)
                unread = written[:, position:following]
        return written

    def __reduce__(self) -> tuple[Any, ...]:
        """Travel to other processes as settings and weights: the network's class is made anew."""
        weights = {name: value.numpy() for name, value in self._network.state_dict().items()}
        return _with_weights, (self.vocabulary, self.language, self.config, weights)

    def save(self, folder: Path) -> None:
        """Write weights, in half precision, and settings into an existing folder."""
        from safetensors.torch import save_file

        state = {k: v.half().contiguous() for k, v in self._network.state_dict().items()}
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
        from safetensors.torch import load_file

        with reading(folder, "generator"):
            settings = json.loads((folder / _SETTINGS).read_text())
            found = settings["language"]
            if found != language:
                raise BundleError(
                    f"{folder} holds a generator of the language {found!r}, this costlib "
                    f"writes {language!r}; train it again"
                )
            config = GeneratorConfig(**settings["config"])
            vocabulary = int(settings["vocabulary"])
            weights = {k: v.float() for k, v in load_file(folder / _WEIGHTS).items()}
            shapes = {name: tuple(value.shape) for name, value in weights.items()}
            if shapes != weight_shapes(vocabulary, config):
                raise ValueError("its weights are not those that its settings describe")
            if not all(bool(value.isfinite().all()) for value in weights.values()):
                raise ValueError("a weight is not finite")
            model = cls(vocabulary, language, config)
            model._network.load_state_dict(weights)
        return model


def _with_weights(
    vocabulary: int, language: str, config: GeneratorConfig, weights: dict[str, Any]
) -> Generator:
    import torch

    model = Generator(vocabulary, language, config)
    model._network.load_state_dict({k: torch.from_numpy(v) for k, v in weights.items()})
    return model


def _draw(logits: Any, mask: Bools, temperature: float, rng: np.random.Generator) -> Integers:
    """Draw a token for each row among those that its mask allows."""
    logits = np.where(mask, logits, -np.inf)
    if temperature > 0:
        logits = logits / temperature + rng.gumbel(size=logits.shape)
    return np.asarray(logits.argmax(1), "int64")
