"""Transformers over text and over image patches.

Attention is the eager kind: what ``sdpa`` exports to holds mask arithmetic that costs more
than it saves at these sizes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from costlib.workloads.zoo.registry import NetworkSpec, Size, images, tokens
from costlib.workloads.zoo.wrap import first_output

_EAGER = {"attn_implementation": "eager"}
_BERT_VOCABULARY = 30522
_GPT2_VOCABULARY = 50257
_LLAMA_VOCABULARY = 32000
_T5_VOCABULARY = 32128

_BERTS = {
    "bert_tiny": (128, 2, 2),
    "bert_mini": (256, 4, 4),
    "bert_small": (512, 4, 8),
    "bert_base": (768, 12, 12),
}
"""Hidden size, layers and heads; the intermediate size is four times the hidden one."""


def _bert(size: Size, hidden: int, layers: int, heads: int) -> Any:
    from transformers import BertConfig, BertModel

    config = BertConfig(
        hidden_size=hidden,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        intermediate_size=4 * hidden,
        max_position_embeddings=max(512, size.extent),
        **_EAGER,
    )
    return first_output(BertModel(config, add_pooling_layer=False), "last_hidden_state")


def _distilbert(size: Size) -> Any:
    from transformers import DistilBertConfig, DistilBertModel

    config = DistilBertConfig(max_position_embeddings=max(512, size.extent), **_EAGER)
    return first_output(DistilBertModel(config), "last_hidden_state")


def _gpt2_mini(size: Size) -> Any:
    from transformers import GPT2Config, GPT2Model

    config = GPT2Config(
        n_embd=256,
        n_layer=2,
        n_head=4,
        n_positions=max(1024, size.extent),
        use_cache=False,
        **_EAGER,
    )
    return first_output(GPT2Model(config), "last_hidden_state")


def _llama_mini(size: Size) -> Any:
    from transformers import LlamaConfig, LlamaModel

    config = LlamaConfig(
        vocab_size=_LLAMA_VOCABULARY,
        hidden_size=512,
        intermediate_size=1376,
        num_hidden_layers=2,
        num_attention_heads=8,
        num_key_value_heads=8,
        max_position_embeddings=max(2048, size.extent),
        use_cache=False,
        **_EAGER,
    )
    return first_output(LlamaModel(config), "last_hidden_state")


def _t5_encoder(_: Size) -> Any:
    from transformers import T5Config, T5EncoderModel

    config = T5Config(d_model=512, d_kv=64, d_ff=2048, num_layers=6, num_heads=8, **_EAGER)
    return first_output(T5EncoderModel(config), "last_hidden_state")


def _vit_tiny(size: Size) -> Any:
    from transformers import ViTConfig, ViTForImageClassification

    config = ViTConfig(
        hidden_size=192,
        num_hidden_layers=12,
        num_attention_heads=3,
        intermediate_size=768,
        image_size=size.extent,
        num_labels=1000,
        **_EAGER,
    )
    return first_output(ViTForImageClassification(config), "logits")


def _text(name: str, build: Callable[[Size], Any], vocabulary: int) -> NetworkSpec:
    return NetworkSpec(name, "transformer", build, tokens(vocabulary), Size(1, 128), "s")


def _bert_spec(name: str) -> NetworkSpec:
    return _text(name, lambda size: _bert(size, *_BERTS[name]), _BERT_VOCABULARY)


SPECS = (
    *(_bert_spec(name) for name in _BERTS),
    _text("distilbert", _distilbert, _BERT_VOCABULARY),
    _text("gpt2_mini", _gpt2_mini, _GPT2_VOCABULARY),
    _text("llama_mini", _llama_mini, _LLAMA_VOCABULARY),
    _text("t5_encoder", _t5_encoder, _T5_VOCABULARY),
    NetworkSpec("vit_tiny", "transformer", _vit_tiny, images, Size(1, 224), "r"),
)
