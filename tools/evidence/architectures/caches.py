"""Decoders with a cache of keys and values: as inputs and outputs, and as buffers."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

import torch
from torch import nn

from tools.evidence.architectures.architecture import Architecture, Example
from tools.evidence.architectures.hugging_face import built, small_config, token_ids
from tools.evidence.architectures.language import DECODERS, EXPERTS

PAST = 7
LONGEST = 16
IN_AND_OUT = (
    "BloomForCausalLM", "FalconForCausalLM", "GPT2LMHeadModel", "GPTNeoXForCausalLM",
    "GemmaForCausalLM", "LlamaForCausalLM", "MistralForCausalLM", "OPTForCausalLM",
    "Phi3ForCausalLM", "Qwen2ForCausalLM", "Qwen3MoeForCausalLM", "StableLmForCausalLM",
)  # fmt: skip
BUFFERS = (
    "CohereForCausalLM", "GPT2LMHeadModel", "Gemma3ForCausalLM", "GemmaForCausalLM",
    "LlamaForCausalLM", "MixtralForCausalLM", "Olmo2ForCausalLM", "Phi3ForCausalLM",
    "Qwen3ForCausalLM", "SmolLM3ForCausalLM",
)  # fmt: skip


class WithCache(nn.Module):
    """A step of a decoder that takes keys and values of what came before, and returns them."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, input_ids: Any, past: list[tuple[Any, Any]]) -> Any:
        """Return the logits, and keys and values of each layer."""
        from transformers import DynamicCache

        cache = DynamicCache(past)
        found = self.model(input_ids=input_ids, past_key_values=cache, use_cache=True)
        return found.logits, [(layer.keys, layer.values) for layer in cache.layers]


def _in_and_out(name: str) -> Example:
    model, config = _decoder(name)
    heads, width = _heads(config)
    past = [
        (torch.randn(1, heads, PAST, width), torch.randn(1, heads, PAST, width))
        for _ in range(config.num_hidden_layers)
    ]
    return Example(WithCache(model), (token_ids(config.vocab_size, 1), past))


def _buffers(name: str) -> Example:
    from transformers.integrations.executorch import TorchExportableModuleWithStaticCache

    model, config = _decoder(name)
    model.generation_config.cache_implementation = "static"
    module = TorchExportableModuleWithStaticCache(model, 1, LONGEST, torch.device("cpu"))
    step = {"input_ids": token_ids(config.vocab_size, 1), "cache_position": torch.tensor([3])}
    with torch.no_grad():  # Not strictly exported, a cache that is written to counts as constant.
        return Example(torch.export.export(module.eval(), (), step, strict=True))


def _decoder(name: str) -> tuple[Any, Any]:
    import transformers

    cls = getattr(transformers, name)
    config = small_config(cls.config_class, (DECODERS | EXPERTS)[name])
    return built(cls, config), config


def _heads(config: Any) -> tuple[int, int]:
    """Return the number of heads that keys have, and their width."""
    queries = config.num_attention_heads
    heads = getattr(config, "num_key_value_heads", None) or queries
    if getattr(config, "multi_query", False):
        heads = 1
    return heads, getattr(config, "head_dim", None) or config.hidden_size // queries


def _all() -> Iterable[Architecture]:
    family = "decoders with a cache"
    for name in IN_AND_OUT:
        yield Architecture(
            "transformers", f"{name}, cache in and out", family, partial(_in_and_out, name)
        )
    for name in BUFFERS:
        yield Architecture(
            "transformers", f"{name}, cache as buffers", family, partial(_buffers, name)
        )


ARCHITECTURES = tuple(_all())
