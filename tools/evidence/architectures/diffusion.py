"""Parts of diffusion models from ``diffusers``: UNets, transformers, autoencoders."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from tools.evidence.architectures.architecture import Architecture, Example
from tools.evidence.architectures.hugging_face import shaped

_UNET = {"block_out_channels": (16, 32), "layers_per_block": 1, "norm_num_groups": 8}
_CROSS = {
    **_UNET, "cross_attention_dim": 16, "attention_head_dim": 4,
    "down_block_types": ("DownBlock2D", "CrossAttnDownBlock2D"),
}  # fmt: skip
_CODER = {
    "block_out_channels": (16, 32), "layers_per_block": 1, "norm_num_groups": 8,
    "down_block_types": ("DownEncoderBlock2D",) * 2, "up_block_types": ("UpDecoderBlock2D",) * 2,
}  # fmt: skip
_NOISE = (1, 4, 16, 16)
_TRANSFORMER = {
    "num_layers": 1, "num_attention_heads": 2, "attention_head_dim": 8, "sample_size": 8,
    "patch_size": 2, "in_channels": 4,
}  # fmt: skip

MODELS: dict[str, tuple[Mapping[str, Any], Mapping[str, Any]]] = {
    "AutoencoderKL": (_CODER, {"sample": (1, 3, 32, 32)}),
    "AutoencoderTiny": (
        {
            "encoder_block_out_channels": (16, 16), "decoder_block_out_channels": (16, 16),
            "num_encoder_blocks": (1, 1), "num_decoder_blocks": (1, 1),
        },
        {"sample": (1, 3, 32, 32)},
    ),
    "ControlNetModel": (
        {**_CROSS, "conditioning_embedding_out_channels": (8, 16)},
        {
            "sample": _NOISE, "timestep": [3], "encoder_hidden_states": (1, 7, 16),
            "controlnet_cond": (1, 3, 32, 32),
        },
    ),
    "DiTTransformer2DModel": (
        {**_TRANSFORMER, "norm_num_groups": 8, "num_embeds_ada_norm": 10},
        {"hidden_states": (1, 4, 8, 8), "timestep": [3], "class_labels": [1]},
    ),
    "FluxTransformer2DModel": (
        {
            "in_channels": 4, "num_layers": 1, "num_single_layers": 1, "attention_head_dim": 16,
            "num_attention_heads": 2, "joint_attention_dim": 16, "pooled_projection_dim": 16,
            "axes_dims_rope": (4, 4, 8),
        },
        {
            "hidden_states": (1, 16, 4), "encoder_hidden_states": (1, 7, 16), "timestep": (1,),
            "pooled_projections": (1, 16), "txt_ids": (7, 3), "img_ids": (16, 3),
        },
    ),
    "PixArtTransformer2DModel": (
        {
            **_TRANSFORMER, "out_channels": 8, "cross_attention_dim": 16, "caption_channels": 16,
            "use_additional_conditions": False, "num_embeds_ada_norm": 10,
        },
        {"hidden_states": (1, 4, 8, 8), "timestep": [3], "encoder_hidden_states": (1, 7, 16)},
    ),
    "PriorTransformer": (
        {
            "num_attention_heads": 2, "attention_head_dim": 8, "num_layers": 1, "embedding_dim": 16,
            "num_embeddings": 7, "additional_embeddings": 4,
        },
        {
            "hidden_states": (1, 16), "timestep": [3], "proj_embedding": (1, 16),
            "encoder_hidden_states": (1, 7, 16),
        },
    ),
    "SD3Transformer2DModel": (
        {
            **_TRANSFORMER, "joint_attention_dim": 16, "caption_projection_dim": 16,
            "pooled_projection_dim": 16, "out_channels": 4, "pos_embed_max_size": 8,
        },
        {
            "hidden_states": (1, 4, 8, 8), "timestep": [3], "encoder_hidden_states": (1, 7, 16),
            "pooled_projections": (1, 16),
        },
    ),
    "UNet1DModel": (
        {
            "block_out_channels": (16, 32), "in_channels": 4, "out_channels": 4,
            "extra_in_channels": 32, "down_block_types": ("DownBlock1DNoSkip", "DownBlock1D"),
            "up_block_types": ("UpBlock1D", "UpBlock1DNoSkip"), "mid_block_type": "UNetMidBlock1D",
        },
        {"sample": (1, 4, 32), "timestep": [3]},
    ),
    "UNet2DConditionModel": (
        {**_CROSS, "up_block_types": ("CrossAttnUpBlock2D", "UpBlock2D")},
        {"sample": _NOISE, "timestep": [3], "encoder_hidden_states": (1, 7, 16)},
    ),
    "UNet2DModel": (
        {
            **_UNET, "attention_head_dim": 8, "in_channels": 4, "out_channels": 4,
            "down_block_types": ("DownBlock2D", "AttnDownBlock2D"),
            "up_block_types": ("AttnUpBlock2D", "UpBlock2D"),
        },
        {"sample": _NOISE, "timestep": [3]},
    ),
    "UNet3DConditionModel": (
        {
            **_UNET, "cross_attention_dim": 16, "attention_head_dim": 4,
            "down_block_types": ("CrossAttnDownBlock3D", "DownBlock3D"),
            "up_block_types": ("UpBlock3D", "CrossAttnUpBlock3D"),
        },
        {"sample": (1, 4, 2, 16, 16), "timestep": [3], "encoder_hidden_states": (1, 7, 16)},
    ),
    "UVit2DModel": (
        {
            "hidden_size": 32, "cond_embed_dim": 16, "micro_cond_encode_dim": 4,
            "micro_cond_embed_dim": 20, "encoder_hidden_size": 16, "vocab_size": 32,
            "codebook_size": 24, "block_out_channels": 32, "num_hidden_layers": 1,
            "num_attention_heads": 2, "block_num_heads": 2, "num_res_blocks": 1,
            "intermediate_size": 64, "in_channels": 32,
        },
        {
            "input_ids": [[[1, 2, 3, 4]] * 4], "encoder_hidden_states": (1, 7, 16),
            "pooled_text_emb": (1, 16), "micro_conds": (1, 5),
        },
    ),
    "VQModel": ({**_CODER, "num_vq_embeddings": 16}, {"sample": (1, 3, 32, 32)}),
}  # fmt: skip


def _example(name: str, settings: Mapping[str, Any], inputs: Mapping[str, Any]) -> Example:
    """Make a model and what it takes: floats of a shape that is a tuple, integers of a list."""
    import diffusers
    import torch

    model = getattr(diffusers, name)(**settings)
    made = {
        key: torch.tensor(value) if isinstance(value, list) else shaped(value)
        for key, value in inputs.items()
    }
    if "return_dict" in inspect.signature(model.forward).parameters:
        made["return_dict"] = False
    return Example(model, made)


def _all() -> Iterable[Architecture]:
    for name, (settings, inputs) in MODELS.items():
        make = partial(_example, name, settings, inputs)
        yield Architecture("diffusers", name, "diffusion", make)


ARCHITECTURES = tuple(_all())
