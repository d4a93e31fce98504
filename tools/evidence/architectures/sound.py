"""Models of sound, and of text with images or sound, from ``transformers``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tools.evidence.architectures.hugging_face import transformers

_PLAIN: dict[str, Any] = {}
_WAVE = {
    "conv_dim": [16, 16, 16], "conv_stride": [5, 4, 4], "conv_kernel": [10, 3, 3],
    "num_conv_pos_embeddings": 16, "num_conv_pos_embedding_groups": 4,
    "apply_spec_augment": False,
}  # fmt: skip
_SEW = {
    **_WAVE, "conv_dim": [16, 16, 16], "squeeze_factor": 2, "feat_proj_dropout": 0.0,
}  # fmt: skip
_WAVES = {"inputs": {"input_values": (1, 1, 960)}}

SOUND: dict[str, Mapping[str, Any]] = {
    "ASTModel": {"max_length": 64, "num_mel_bins": 32, "inputs": {"input_values": (1, 64, 32)}},
    "ClapAudioModel": {
        "spec_size": 64, "num_mel_bins": 16, "window_size": 4, "depths": [1, 1],
        "num_attention_heads": [2, 2], "patch_embeds_hidden_size": 16, "hidden_size": 32,
        "patch_size": 4, "patch_stride": [4, 4], "projection_dim": 16,
        "inputs": {"input_features": (1, 1, 256, 16)},
    },
    "DacModel": {
        "encoder_hidden_size": 8, "decoder_hidden_size": 32, "downsampling_ratios": [2, 4],
        "n_codebooks": 2, "codebook_size": 16, **_WAVES,
    },
    "Data2VecAudioModel": _WAVE,
    "EncodecModel": {
        "num_filters": 4, "upsampling_ratios": [4, 2], "codebook_size": 16, "hidden_size": 16,
        **_WAVES,
    },
    "FastSpeech2ConformerModel": {
        "encoder_layers": 1, "decoder_layers": 1, "num_mel_bins": 16, "encoder_linear_units": 64,
        "decoder_linear_units": 64, "duration_predictor_channels": 16,
        "energy_predictor_channels": 16, "pitch_predictor_channels": 16,
        "speech_decoder_postnet_units": 16,
    },
    "HubertModel": _WAVE,
    "MimiModel": {
        "num_filters": 4, "upsampling_ratios": [4, 2], "codebook_size": 16, "codebook_dim": 16,
        "vector_quantization_hidden_dimension": 16, "upsample_groups": 16, "num_quantizers": 2,
        "sliding_window": 16, **_WAVES,
    },
    "MoonshineModel": {
        "encoder_num_hidden_layers": 1, "decoder_num_hidden_layers": 1,
        "encoder_num_attention_heads": 4, "decoder_num_attention_heads": 4,
        "inputs": {"input_values": (1, 8000)},
    },
    "ParakeetEncoder": {
        "num_mel_bins": 32, "subsampling_conv_channels": 8, "subsampling_factor": 4,
        "inputs": {"input_features": (1, 64, 32)},
    },
    "SEWDModel": {**_SEW, "share_att_key": True, "pos_att_type": ["p2c", "c2p"]},
    "SEWModel": _SEW,
    "Speech2TextModel": {
        "conv_channels": 16, "input_feat_per_channel": 16, "max_source_positions": 64,
        "inputs": {"input_features": (1, 64, 16)},
    },
    "UniSpeechModel": _WAVE,
    "UniSpeechSatModel": _WAVE,
    "UnivNetModel": {
        "num_mel_bins": 16, "model_hidden_channels": 8,
        "inputs": {"input_features": (1, 8, 16), "noise_sequence": (1, 8, 64)},
    },
    "VitsModel": {
        "hidden_size": 32, "flow_size": 32, "spectrogram_bins": 17, "upsample_initial_channel": 32,
        "upsample_rates": [4, 2], "upsample_kernel_sizes": [8, 4], "num_attention_heads": 2,
        "duration_predictor_filter_channels": 16,
    },
    "Wav2Vec2BertModel": {
        "feature_projection_input_dim": 16, "left_max_position_embeddings": 8,
        "right_max_position_embeddings": 4, "inputs": {"input_features": (1, 24, 16)},
    },
    "Wav2Vec2ConformerModel": {**_WAVE, "position_embeddings_type": "relative"},
    "Wav2Vec2ForCTC": {**_WAVE, "feat_extract_norm": "layer", "do_stable_layer_norm": True},
    "Wav2Vec2Model": _WAVE,
    "WavLMModel": _WAVE,
    "WhisperForConditionalGeneration": {
        "num_mel_bins": 16, "inputs": {"input_features": (1, 16, 64)},
    },
}  # fmt: skip

_BOTH = {"inputs": {"input_ids": 16, "pixel_values": (1, 3, 32, 32)}}

TOGETHER: dict[str, Mapping[str, Any]] = {
    "AlignModel": {**_BOTH, "projection_dim": 640},
    "AltCLIPModel": _BOTH,
    "BlipModel": _BOTH,
    "BridgeTowerModel": {**_BOTH, "vision_config": {"hidden_size": 64}},
    "BrosModel": {"hidden_size": 128, "inputs": {"bbox": (1, 16, 8)}},
    "CLIPModel": _BOTH,
    "CLIPTextModel": _PLAIN,
    "CLIPVisionModel": _PLAIN,
    "ChineseCLIPModel": _BOTH,
    "FlavaTextModel": _PLAIN,
    "GitModel": _BOTH,
    "GroupViTVisionModel": {
        "depths": [1, 1, 1], "num_group_tokens": [8, 4, 0], "num_output_groups": [8, 4, 4],
    },
    "LayoutLMv3Model": {
        "max_2d_position_embeddings": 64, "coordinate_size": 4, "shape_size": 8,
        "visual_embed": False, "has_spatial_attention_bias": True, "rel_pos_bins": 8,
    },
    "SiglipModel": _BOTH,
    "SiglipVisionModel": _PLAIN,
    "ViltModel": _BOTH,
    "XCLIPVisionModel": {
        "num_frames": 2, "mit_hidden_size": 32, "inputs": {"pixel_values": (2, 3, 32, 32)},
    },
}  # fmt: skip

ARCHITECTURES = (
    *transformers("sound", SOUND),
    *transformers("text with images", TOGETHER),
)
