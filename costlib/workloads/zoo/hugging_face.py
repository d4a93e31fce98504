"""Networks of ``transformers``: image classifiers, and transformers over text and patches.

Attention is the eager kind: what ``sdpa`` exports to holds mask arithmetic that costs more
than it saves at these sizes.
"""

from __future__ import annotations

from typing import Any

from costlib.workloads.zoo.registry import NetworkSpec, Size, token_and_cache, tokens

_EAGER: dict[str, Any] = {"attn_implementation": "eager"}


def _one_output(kind: str, head: str, output: str, extras: dict[str, Any], **options: Any) -> Any:
    """Return a model of ``transformers`` with a single tensor, the named one, as its output.

    Its class is called ``kind + head`` and takes ``extras``, its configuration ``options``.
    """
    import transformers

    config = getattr(transformers, f"{kind}Config")(**options)
    return one_output(getattr(transformers, kind + head)(config, **extras), output)


def one_output(model: Any, output: str) -> Any:
    """Make a module that returns one output of a model, by its name."""
    import torch

    class OneOutput(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, x: Any) -> Any:
            return getattr(self.model(x), output)

    return OneOutput()


def _classifier(kind: str, **options: Any) -> Any:
    return _one_output(kind, "ForImageClassification", "logits", {}, num_labels=1000, **options)


def _vision(name: str, kind: str, **options: Any) -> NetworkSpec:
    def build(_: Size) -> Any:
        return _classifier(kind, **options)

    return NetworkSpec(name, build)


def _resnet(name: str, layer: str, width: int, *depths: int) -> NetworkSpec:
    widths = [width * 2**stage for stage in range(4)]
    return _vision(name, "ResNet", layer_type=layer, depths=list(depths), hidden_sizes=widths)


def _vit_tiny(size: Size) -> Any:
    return _classifier(
        "ViT",
        hidden_size=192,
        num_hidden_layers=12,
        num_attention_heads=3,
        intermediate_size=768,
        image_size=size.extent,
        **_EAGER,
    )


def _text(
    name: str,
    kind: str,
    vocabulary: int,
    positions: int | None = None,
    *,
    head: str = "Model",
    extras: dict[str, Any] | None = None,
    **options: Any,
) -> NetworkSpec:
    """Describe a model of token ids with so many positions; more if the input is longer."""

    def build(size: Size) -> Any:
        own = options | _EAGER | {"vocab_size": vocabulary}
        if positions is not None:
            own["max_position_embeddings"] = max(positions, size.extent)
        return _one_output(kind, head, "last_hidden_state", extras or {}, **own)

    return NetworkSpec(name, build, tokens(vocabulary), Size(1, 128), "s")


def _bert(name: str, hidden: int, layers: int, heads: int) -> NetworkSpec:
    return _text(
        name,
        "Bert",
        30522,
        512,
        extras={"add_pooling_layer": False},
        hidden_size=hidden,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        intermediate_size=4 * hidden,
    )


_LLAMA_MINI: dict[str, Any] = {
    "hidden_size": 512,
    "intermediate_size": 1376,
    "num_hidden_layers": 2,
    "num_attention_heads": 8,
    "num_key_value_heads": 8,
}


def _llama_step(_: Size) -> Any:
    import transformers

    config = transformers.LlamaConfig(
        vocab_size=32000, max_position_embeddings=2048, **_LLAMA_MINI, **_EAGER
    )
    return with_cache(transformers.LlamaModel(config))


def with_cache(model: Any) -> Any:
    """Make a module of a decoder that takes a token and a cache, and returns the cache, grown."""
    import torch
    from transformers.cache_utils import DynamicCache

    class WithCache(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, x: Any, keys: Any, values: Any) -> tuple[Any, Any, Any]:
            cache = DynamicCache()
            for layer, pair in enumerate(zip(keys.unbind(), values.unbind(), strict=True)):
                cache.update(*pair, layer)
            found = self.model(x, past_key_values=cache, use_cache=True)
            grown = found.past_key_values.layers
            keys, values = ([getattr(one, kind) for one in grown] for kind in ("keys", "values"))
            return found.last_hidden_state, torch.stack(keys), torch.stack(values)

    return WithCache()


SPECS = (
    _vision("convnext_tiny", "ConvNext"),
    _vision(
        "efficientnet_b0",
        "EfficientNet",
        width_coefficient=1.0,
        depth_coefficient=1.0,
        image_size=224,
        hidden_dim=1280,
    ),
    _vision("mobilenet_v1", "MobileNetV1", tf_padding=False),
    _vision("mobilenet_v2", "MobileNetV2", tf_padding=False),
    _vision(
        "regnet_y_400mf",
        "RegNet",
        layer_type="y",
        depths=[1, 3, 6, 6],
        hidden_sizes=[48, 104, 208, 440],
        groups_width=8,
    ),
    _resnet("resnet_18", "basic", 64, 2, 2, 2, 2),
    _resnet("resnet_34", "basic", 64, 3, 4, 6, 3),
    _resnet("resnet_50", "bottleneck", 256, 3, 4, 6, 3),
    _resnet("resnet_101", "bottleneck", 256, 3, 4, 23, 3),
    NetworkSpec("vit_tiny", _vit_tiny),
    _bert("bert_tiny", 128, 2, 2),
    _bert("bert_mini", 256, 4, 4),
    _bert("bert_small", 512, 4, 8),
    _bert("bert_base", 768, 12, 12),
    _text("distilbert", "DistilBert", 30522, 512),
    _text("gpt2_mini", "GPT2", 50257, 1024, n_embd=256, n_layer=2, n_head=4, use_cache=False),
    _text(
        "llama_mini",
        "Llama",
        32000,
        2048,
        use_cache=False,
        **_LLAMA_MINI,
    ),
    NetworkSpec(
        "llama_mini_step", _llama_step, token_and_cache(32000, 2, 8, 64), Size(1, 128), "p"
    ),
    _text("t5_encoder", "T5", 32128, head="EncoderModel"),
)
