"""Small models of ``transformers``: their configurations shrunk, their inputs made up."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from tools.evidence.architectures.architecture import Architecture, Example

SMALL: dict[str, Any] = {
    "vocab_size": 120, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
    "decoder_start_token_id": 1,
    "hidden_size": 32, "d_model": 32, "n_embd": 32, "dim": 32, "embedding_size": 16,
    "encoder_hidden_dim": 32, "projection_dim": 16,
    "intermediate_size": 64, "ffn_dim": 64, "d_ff": 64, "n_inner": 64, "d_inner": 64,
    "ffn_hidden_size": 64, "encoder_ffn_dim": 64, "decoder_ffn_dim": 64, "hidden_dim": 64,
    "num_hidden_layers": 2, "n_layer": 2, "n_layers": 2, "num_layers": 2, "encoder_layers": 2,
    "decoder_layers": 2, "num_decoder_layers": 2, "num_encoder_layers": 2,
    "num_attention_heads": 4, "n_head": 4, "n_heads": 4, "num_heads": 4,
    "encoder_attention_heads": 4, "decoder_attention_heads": 4,
    "num_key_value_heads": 2, "head_dim": 8, "d_kv": 8,
    "max_position_embeddings": 64, "n_positions": 64, "n_ctx": 64, "max_source_positions": 32,
    "max_target_positions": 32,
    "image_size": 32, "patch_size": 8,
    "num_experts": 4, "num_local_experts": 4, "n_routed_experts": 4, "moe_intermediate_size": 32,
    "num_experts_per_tok": 2, "expert_ffn_hidden_size": 32,
    "num_labels": 5,
}  # fmt: skip
"""By the names that configurations have; a default that is a list is left alone."""

TOKENS = 16
SAMPLES = 4000


def transformers(family: str, models: Mapping[str, Mapping[str, Any]]) -> Iterable[Architecture]:
    """Name architectures by their classes; each with what its configuration needs beside."""
    for name, settings in models.items():
        yield Architecture("transformers", name, family, partial(example, name, settings))


def example(name: str, settings: Mapping[str, Any]) -> Example:
    """Make a model of a class and what it takes.

    Among the settings, ``inputs`` says more of what it takes, ``masked`` that it cannot be exported
    without a mask of its tokens, and ``uneven`` that its weights are not all as they are
    initialised.
    """
    import transformers  # Slow, and not always there.

    chosen = dict(settings)
    inputs = chosen.pop("inputs", {})
    is_masked, is_uneven = chosen.pop("masked", False), chosen.pop("uneven", False)
    cls = getattr(transformers, name)
    config = small_config(cls.config_class, chosen)
    model = built(cls, config)
    if is_uneven:
        _make_uneven(model)
    signature = inspect.signature(cls.forward).parameters
    made = {key: shaped(value) for key, value in inputs.items()}
    if cls.main_input_name in signature and cls.main_input_name not in made:
        made = {cls.main_input_name: main_input(cls.main_input_name, config), **made}
    if is_masked:
        made["attention_mask"] = made[cls.main_input_name].new_ones(1, TOKENS)
    if config.is_encoder_decoder and "decoder_input_ids" in signature:
        made.setdefault("decoder_input_ids", token_ids(config.vocab_size))
    if "use_cache" in signature:
        made["use_cache"] = False
    config.use_cache = False
    return Example(model, made)


def _make_uneven(model: Any) -> None:
    """Move all weights a little: of equal scores, which are the highest is a matter of taste."""
    import torch

    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(0.1 * torch.randn_like(weight))


def built(cls: Any, config: Any) -> Any:
    """Make a model; one of experts computes them with shapes that do not depend on data."""
    model = cls(config)
    if cls._can_set_experts_implementation():
        model.set_experts_implementation("batched_mm")
    return model


def small_config(cls: Any, settings: Mapping[str, Any]) -> Any:
    """Shrink a configuration and those within it; a dictionary is of one within it."""
    chosen = dict(settings)
    for part, kind in getattr(cls, "sub_configs", {}).items():
        given = chosen.get(part, {})
        if isinstance(given, dict) and kind.__name__ != "AutoConfig":
            chosen[part] = small_config(kind, given)
    known = {field.name: field.default for field in dataclasses.fields(cls)}
    shrunk = {
        name: value
        for name, value in SMALL.items()
        if isinstance(known.get(name), int) or (name in known and known[name] is None)
    }
    return cls(**shrunk | chosen)


def main_input(name: str, config: Any) -> Any:
    """Make up what a model mainly takes."""
    if name == "input_ids":
        return token_ids(SMALL["vocab_size"])
    if name == "pixel_values":
        vision = getattr(config, "vision_config", config)
        size = getattr(vision, "image_size", None) or 32
        height, width = (size, size) if isinstance(size, int) else size
        return shaped((1, getattr(vision, "num_channels", 3), height, width))
    if name == "input_values":
        return shaped((1, SAMPLES))
    raise ValueError(f"what is {name}?")


def token_ids(vocabulary: int, length: int = TOKENS) -> Any:
    """Draw token ids, none of them special."""
    import torch

    return torch.randint(3, vocabulary, (1, length))


def shaped(value: Any) -> Any:
    """Draw floats of a shape, or as many token ids as a number says."""
    import torch

    return token_ids(SMALL["vocab_size"], value) if isinstance(value, int) else torch.randn(value)
