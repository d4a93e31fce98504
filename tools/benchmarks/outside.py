"""Networks of ``transformers`` that are not in the zoo: of normal size, with random weights.

Nothing is downloaded. Attention is computed as ``transformers`` has it by default, where that can
be written as an ONNX model.
"""

from __future__ import annotations

from typing import Any

from costlib.workloads import load_network
from costlib.workloads.network import InputSpec, Network
from costlib.workloads.zoo import build_of
from costlib.workloads.zoo.hugging_face import one_output
from costlib.workloads.zoo.registry import NetworkSpec, Size, images, tokens


def load_any(name: str) -> Network:
    """Load one of :data:`OUTSIDE`, the same weights in every process, or one of costlib's own."""
    spec = OUTSIDE.get(name.partition("@")[0])
    return load_network(name) if spec is None else build_of(spec, name)


def _of(model_class: Any, output: str, options: dict[str, Any]) -> Any:
    """Make a model with a single tensor, the named one, as its output."""
    return one_output(model_class(model_class.config_class(**options)), output)


def _vision(name: str, kind: str, extent: int = 224, **options: Any) -> NetworkSpec:
    def build(_: Size) -> Any:
        import transformers

        model_class = getattr(transformers, f"{kind}ForImageClassification")
        return _of(model_class, "logits", {"num_labels": 1000, **options})

    return NetworkSpec(name, build, images(3), Size(1, extent))


def _text(name: str, kind: str, vocabulary: int, **options: Any) -> NetworkSpec:
    def build(_: Size) -> Any:
        import transformers

        model_class = getattr(transformers, f"{kind}Model")
        return _of(model_class, "last_hidden_state", {"vocab_size": vocabulary, **options})

    return NetworkSpec(name, build, tokens(vocabulary), Size(1, 128), "s")


def _whisper_encoder(_: Size) -> Any:
    from transformers.models.whisper.modeling_whisper import WhisperEncoder

    sizes = {"d_model": 384, "encoder_layers": 4, "encoder_attention_heads": 6}
    return _of(WhisperEncoder, "last_hidden_state", {"encoder_ffn_dim": 1536, **sizes})


def _sound(size: Size) -> tuple[InputSpec, ...]:
    """Describe spectrograms of 80 bands, a hundred columns a second."""
    return (InputSpec("x", "float32", (size.batch, 80, size.extent)),)


OUTSIDE = {
    spec.name: spec
    for spec in (
        _text(
            "albert_base",
            "Albert",
            30000,
            hidden_size=768,
            num_attention_heads=12,
            intermediate_size=3072,
        ),
        _vision(
            "convnextv2_nano", "ConvNextV2", hidden_sizes=[80, 160, 320, 640], depths=[2, 2, 8, 2]
        ),
        _text(
            "electra_small",
            "Electra",
            30522,
            embedding_size=128,
            hidden_size=256,
            num_attention_heads=4,
            intermediate_size=1024,
        ),
        _text("gpt2", "GPT2", 50257, use_cache=False),
        _text("mobilebert", "MobileBert", 30522),
        _vision("mobilevit_small", "MobileViT", 256),
        _vision("segformer_b0", "Segformer"),
        _vision("swin_tiny", "Swin", attn_implementation="eager"),  # For torch.onnx.export.
        _vision(
            "vit_small",
            "ViT",
            hidden_size=384,
            num_attention_heads=6,
            intermediate_size=1536,
        ),
        NetworkSpec("whisper_tiny_encoder", _whisper_encoder, _sound, Size(1, 3000), "s"),
    )
}
"""By their names."""
