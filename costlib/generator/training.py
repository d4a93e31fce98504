"""How a generator is trained: batches of like lengths, AdamW, checkpoints to go on from."""

from __future__ import annotations

import itertools
import math
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from costlib.arrays import Bools, Integers
from costlib.files import write_file
from costlib.generator.transformer import GeneratorConfig
from costlib.identity import content_id
from costlib.models import process_group

_CHECKPOINT_SECS = 60.0
"""Between two checkpoints; one takes well below a second."""

_MAX_NORM = 1.0


def train_to_write(
    network: Any,
    sequences: Sequence[Integers],
    chosen: Sequence[Bools],
    config: GeneratorConfig,
    *,
    epochs: int,
    seed: int,
    checkpoint: Path | None = None,
    on_progress: Callable[[int, int, float], None] | None = None,
) -> None:
    """Train a transformer to foretell the chosen tokens, in place.

    Several processes can do it together, each with sequences of its own. What else is given, see
    :meth:`costlib.generator.model.Generator.fit`.
    """
    import torch
    from torch.nn.utils.rnn import pad_sequence

    steps = epochs * process_group.most(math.ceil(len(sequences) / config.batch))
    optimizer = torch.optim.AdamW(
        network.parameters(), lr=config.learning_rate, weight_decay=0.01, foreach=False
    )
    mark = _fingerprint(sequences, config, epochs, seed)
    done = _go_on(checkpoint, mark, network, optimizer) if checkpoint else 0
    saved = time.monotonic()
    network.train()
    batches = _batches(sequences, config.batch, seed)
    for step, rows in enumerate(itertools.islice(batches, steps)):
        if step < done:
            continue
        for group in optimizer.param_groups:
            group["lr"] = config.learning_rate * 0.5 * (1 + math.cos(math.pi * step / steps))
        tokens, learnt = (
            pad_sequence([torch.from_numpy(arrays[i]) for i in rows], batch_first=True)
            for arrays in (sequences, chosen)
        )
        logits = network(tokens[:, :-1])
        losses = torch.nn.functional.cross_entropy(
            logits.flatten(0, 1), tokens[:, 1:].flatten(), reduction="none"
        )
        weights = learnt[:, 1:].flatten().float()
        loss = (losses * weights).sum() / weights.sum()
        optimizer.zero_grad()
        loss.backward()
        process_group.average_gradients(network.parameters())
        torch.nn.utils.clip_grad_norm_(network.parameters(), _MAX_NORM)
        optimizer.step()
        last = step + 1 == steps
        if checkpoint and (last or time.monotonic() - saved > _CHECKPOINT_SECS):
            _save(checkpoint, mark, step + 1, network, optimizer)
            saved = time.monotonic()
        if on_progress is not None:
            on_progress(step + 1, steps, float(loss.detach()))


def _fingerprint(
    sequences: Sequence[Integers], config: GeneratorConfig, epochs: int, seed: int
) -> str:
    checksum = zlib.crc32(np.concatenate(sequences).tobytes())
    return content_id(config.model_dump(), epochs, seed, len(sequences), checksum)


def _save(file: Path, mark: str, step: int, network: Any, optimizer: Any) -> None:
    """Write weights and the optimizer's state, so that a kill leaves the old file or the new."""
    from safetensors.torch import save

    tensors = {f"weight.{k}": v.contiguous() for k, v in network.state_dict().items()}
    for name, parameter in network.named_parameters():
        for key, value in optimizer.state[parameter].items():
            tensors[f"{key}.{name}"] = value
    write_file(file, save(tensors, metadata={"mark": mark, "step": str(step)}))


def _go_on(file: Path, mark: str, network: Any, optimizer: Any) -> int:
    """Take up a checkpoint of the same training; returns how many steps it has done."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(file, framework="pt") as opened:
            metadata = opened.metadata() or {}
            if metadata.get("mark") != mark:
                return 0
            tensors = {key: opened.get_tensor(key) for key in opened.keys()}  # noqa: SIM118
    except (OSError, SafetensorError):
        return 0
    state: dict[str, dict[str, Any]] = {}
    for name, tensor in tensors.items():
        key, _, parameter = name.partition(".")
        state.setdefault(key, {})[parameter] = tensor
    network.load_state_dict(state.pop("weight"))
    for name, parameter in network.named_parameters():
        optimizer.state[parameter] = {key: values[name] for key, values in state.items()}
    return int(metadata["step"])


def _batches(sequences: Sequence[Integers], batch: int, seed: int) -> Iterator[list[int]]:
    """Yield batches of sequences of about the same length, in random order, without end."""
    rng = np.random.default_rng(seed)
    while True:
        order = sorted(rng.permutation(len(sequences)), key=lambda i: len(sequences[i]))
        groups = [order[start : start + batch] for start in range(0, len(order), batch)]
        for number in rng.permutation(len(groups)):
            yield groups[number]
