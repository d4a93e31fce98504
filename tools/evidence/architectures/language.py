"""Models of text and of time series, from ``transformers``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tools.evidence.architectures.hugging_face import transformers

_PLAIN: dict[str, Any] = {}
_WINDOWED = {"layer_types": ["full_attention", "sliding_attention"], "local_attention": 8}
_MAMBA = {"state_size": 8, "conv_kernel": 4, "time_step_rank": 4}
_MAMBA2 = {
    "mamba_d_state": 8, "mamba_n_heads": 4, "mamba_d_head": 16, "mamba_n_groups": 1,
    "mamba_chunk_size": 16,
}  # fmt: skip

ENCODERS: dict[str, Mapping[str, Any]] = {
    "AlbertModel": _PLAIN,
    "BertForMaskedLM": _PLAIN,
    "BertModel": _PLAIN,
    "BigBirdModel": {"attention_type": "original_full"},
    "CamembertModel": _PLAIN,
    "CanineModel": {"local_transformer_stride": 8},
    "ConvBertModel": _PLAIN,
    "Data2VecTextModel": _PLAIN,
    "DebertaModel": {"relative_attention": True},
    "DebertaV2Model": {
        "relative_attention": True, "pos_att_type": ["p2c", "c2p"],
    },
    "DistilBertModel": _PLAIN,
    "ElectraModel": _PLAIN,
    "ErnieModel": _PLAIN,
    "EsmModel": {"position_embedding_type": "rotary", "mask_token_id": 4},
    "EuroBertModel": _PLAIN,
    "FNetModel": _PLAIN,
    "FlaubertModel": {"emb_dim": 32},
    "FunnelModel": {"block_sizes": [1, 1, 1], "d_head": 8},
    "IBertModel": _PLAIN,
    "LayoutLMModel": {"max_2d_position_embeddings": 64},
    "LongformerModel": {"attention_window": 8},
    "LukeModel": {"entity_vocab_size": 50, "entity_emb_size": 16},
    "MPNetModel": _PLAIN,
    "MegatronBertModel": _PLAIN,
    "MobileBertModel": {"embedding_size": 32, "intra_bottleneck_size": 32},
    "ModernBertModel": _WINDOWED,
    "MraModel": {"block_per_row": 1},
    "NystromformerModel": {"segment_means_seq_len": 16, "num_landmarks": 4},
    "PerceiverModel": {"d_latents": 32, "num_latents": 8, "inputs": {"inputs": (1, 16, 32)}},
    "RemBertModel": {"input_embedding_size": 16, "output_embedding_size": 16},
    "RoCBertModel": {"enable_pronunciation": False, "enable_shape": False},
    "RoFormerModel": _PLAIN,
    "RobertaModel": _PLAIN,
    "RobertaPreLayerNormModel": _PLAIN,
    "SplinterModel": _PLAIN,
    "SqueezeBertModel": {"embedding_size": 32},
    "TapasModel": _PLAIN,
    "XLMModel": {"emb_dim": 32},
    "XLMRobertaModel": _PLAIN,
    "XLMRobertaXLModel": _PLAIN,
    "XLNetModel": {"d_head": 8},
    "XmodModel": {"default_language": "en_XX"},
    "YosoModel": _PLAIN,
}  # fmt: skip

DECODERS: dict[str, Mapping[str, Any]] = {
    "ApertusForCausalLM": _PLAIN,
    "ArceeForCausalLM": _PLAIN,
    "BioGptForCausalLM": _PLAIN,
    "BitNetForCausalLM": _PLAIN,
    "BloomForCausalLM": _PLAIN,
    "CTRLModel": {"dff": 64},
    "CodeGenForCausalLM": {"rotary_dim": 4},
    "Cohere2ForCausalLM": _PLAIN,
    "CohereForCausalLM": _PLAIN,
    "DiffLlamaForCausalLM": _PLAIN,
    "Ernie4_5ForCausalLM": _PLAIN,
    "Exaone4ForCausalLM": _PLAIN,
    "FalconForCausalLM": _PLAIN,
    "GPT2LMHeadModel": _PLAIN,
    "GPTBigCodeForCausalLM": _PLAIN,
    "GPTJForCausalLM": {"rotary_dim": 4},
    "GPTNeoForCausalLM": {"attention_types": [[["global", "local"], 1]]},
    "GPTNeoXForCausalLM": _PLAIN,
    "Gemma2ForCausalLM": {"query_pre_attn_scalar": 8},
    "Gemma3ForCausalLM": {"query_pre_attn_scalar": 8},
    "GemmaForCausalLM": _PLAIN,
    "Glm4ForCausalLM": _PLAIN,
    "GlmForCausalLM": _PLAIN,
    "GraniteForCausalLM": _PLAIN,
    "HeliumForCausalLM": _PLAIN,
    "HunYuanDenseV1ForCausalLM": _PLAIN,
    "Lfm2ForCausalLM": {"layer_types": ["conv", "full_attention"]},
    "LlamaForCausalLM": _PLAIN,
    "MiniCPM3ForCausalLM": {"num_key_value_heads": 4},
    "MistralForCausalLM": _PLAIN,
    "ModernBertDecoderForCausalLM": _WINDOWED,
    "MptForCausalLM": _PLAIN,
    "NanoChatForCausalLM": _PLAIN,
    "NemotronForCausalLM": _PLAIN,
    "OPTForCausalLM": {"word_embed_proj_dim": 32},
    "Olmo2ForCausalLM": _PLAIN,
    "OlmoForCausalLM": _PLAIN,
    "OpenAIGPTLMHeadModel": _PLAIN,
    "PersimmonForCausalLM": _PLAIN,
    "Phi3ForCausalLM": _PLAIN,
    "PhiForCausalLM": _PLAIN,
    "Qwen2ForCausalLM": _PLAIN,
    "Qwen3ForCausalLM": _PLAIN,
    "SeedOssForCausalLM": _PLAIN,
    "SmolLM3ForCausalLM": _PLAIN,
    "StableLmForCausalLM": _PLAIN,
    "Starcoder2ForCausalLM": _PLAIN,
    "VaultGemmaForCausalLM": {"query_pre_attn_scalar": 8},
    "XGLMForCausalLM": {"attention_heads": 4},
}

EXPERTS: dict[str, Mapping[str, Any]] = {
    "DbrxForCausalLM": {
        "attn_config": {"rope_theta": 10000.0, "clip_qkv": 8.0},
        "ffn_config": {"ffn_hidden_size": 32, "moe_num_experts": 4, "moe_top_k": 2},
    },
    "DeepseekV2ForCausalLM": {
        "kv_lora_rank": 16, "q_lora_rank": None, "qk_nope_head_dim": 8, "qk_rope_head_dim": 8,
        "v_head_dim": 8, "first_k_dense_replace": 1, "n_group": 1, "topk_group": 1,
        "num_key_value_heads": 4,
    },
    "DeepseekV3ForCausalLM": {
        "kv_lora_rank": 16, "q_lora_rank": 16, "qk_nope_head_dim": 8, "qk_rope_head_dim": 8,
        "v_head_dim": 8, "first_k_dense_replace": 1, "n_group": 2, "topk_group": 1,
        "num_key_value_heads": 4,
    },
    "Dots1ForCausalLM": {"first_k_dense_replace": 1, "n_shared_experts": 1},
    "Ernie4_5_MoeForCausalLM": {"moe_num_experts": 4, "moe_k": 2},
    "FlexOlmoForCausalLM": _PLAIN,
    "Glm4MoeForCausalLM": {"n_group": 1, "topk_group": 1, "first_k_dense_replace": 1},
    "GptOssForCausalLM": _PLAIN,
    "GraniteMoeForCausalLM": _PLAIN,
    "GraniteMoeSharedForCausalLM": {"shared_intermediate_size": 32},
    "JetMoeForCausalLM": {"kv_channels": 8},
    "MiniMaxForCausalLM": {"layer_types": ["linear_attention", "full_attention"], "block_size": 8},
    "MixtralForCausalLM": _PLAIN,
    "NllbMoeModel": {"router_ignore_padding_tokens": False},
    "OlmoeForCausalLM": _PLAIN,
    "PhimoeForCausalLM": _PLAIN,
    "Qwen2MoeForCausalLM": {"shared_expert_intermediate_size": 32},
    "Qwen3MoeForCausalLM": _PLAIN,
    "SwitchTransformersModel": {"masked": True, "use_cache": False},
}  # fmt: skip

STATE_SPACES: dict[str, Mapping[str, Any]] = {
    "BambaForCausalLM": {**_MAMBA2, "attn_layer_indices": [1]},
    "FalconH1ForCausalLM": {**_MAMBA2, "mamba_d_ssm": 64},
    "FalconMambaForCausalLM": _MAMBA,
    "GraniteMoeHybridForCausalLM": {**_MAMBA2, "layer_types": ["mamba", "attention"]},
    "JambaForCausalLM": {
        "mamba_d_state": 8, "mamba_dt_rank": 4, "use_mamba_kernels": False,
        "attn_layer_offset": 1, "attn_layer_period": 2, "expert_layer_period": 2,
    },
    "Mamba2ForCausalLM": {"state_size": 8, "num_heads": 4, "head_dim": 16, "n_groups": 1},
    "MambaForCausalLM": _MAMBA,
    "Qwen3NextForCausalLM": {
        "layer_types": ["linear_attention", "full_attention"], "linear_key_head_dim": 8,
        "linear_value_head_dim": 8, "linear_num_key_heads": 2, "linear_num_value_heads": 4,
        "shared_expert_intermediate_size": 32,
    },
    "RecurrentGemmaForCausalLM": {"lru_width": 32, "block_types": ["recurrent", "attention"]},
    "RwkvForCausalLM": {"attention_hidden_size": 32, "context_length": 32, "rescale_every": 0},
    "Zamba2ForCausalLM": {
        "mamba_d_state": 8, "n_mamba_heads": 4, "mamba_ngroups": 1, "chunk_size": 16,
        "layers_block_type": ["mamba", "hybrid"], "num_mem_blocks": 1, "use_mamba_kernels": False,
    },
    "ZambaForCausalLM": {
        "mamba_d_state": 8, "mamba_dt_rank": 4, "n_mamba_heads": 2, "use_mamba_kernels": False,
        "num_hidden_layers": 4, "layers_block_type": ["mamba", "hybrid"] * 2,
        "attention_head_dim": 16, "attention_hidden_size": 64,
    },
    "xLSTMForCausalLM": {"chunk_size": 16, "autocast_kernel_dtype": "float32"},
}  # fmt: skip

BOTH: dict[str, Mapping[str, Any]] = {
    "BartModel": _PLAIN,
    "BigBirdPegasusModel": {"attention_type": "original_full"},
    "BlenderbotModel": _PLAIN,
    "BlenderbotSmallModel": _PLAIN,
    "FSMTModel": {"src_vocab_size": 120, "tgt_vocab_size": 120, "langs": ["en", "de"]},
    "LEDModel": {
        "attention_window": 8, "max_encoder_position_embeddings": 64,
        "max_decoder_position_embeddings": 64,
    },
    "LongT5Model": {"local_radius": 4, "encoder_attention_type": "local", "masked": True},
    "M2M100Model": _PLAIN,
    "MBartModel": _PLAIN,
    "MT5Model": _PLAIN,
    "MarianModel": _PLAIN,
    "MvpModel": _PLAIN,
    "PLBartModel": _PLAIN,
    "PegasusModel": _PLAIN,
    "PegasusXModel": {"num_global_tokens": 4, "block_size": 8},
    "ProphetNetModel": {"num_encoder_attention_heads": 4, "num_decoder_attention_heads": 4},
    "T5ForConditionalGeneration": _PLAIN,
    "T5Model": _PLAIN,
    "UMT5Model": _PLAIN,
}  # fmt: skip

_SERIES = {"context_length": 16, "prediction_length": 4, "num_time_features": 1}

TIME_SERIES: dict[str, Mapping[str, Any]] = {
    "PatchTSMixerModel": {
        "context_length": 32, "patch_length": 8, "num_input_channels": 2, "patch_stride": 8,
        "inputs": {"past_values": (1, 32, 2)},
    },
    "PatchTSTModel": {
        "context_length": 32, "patch_length": 8, "num_input_channels": 2, "patch_stride": 8,
        "inputs": {"past_values": (1, 32, 2)},
    },
    "TimeSeriesTransformerModel": {
        **_SERIES, "lags_sequence": [1, 2, 3],
        "inputs": {
            "past_values": (1, 19), "past_time_features": (1, 19, 1),
            "past_observed_mask": (1, 19), "future_values": (1, 4),
            "future_time_features": (1, 4, 1),
        },
    },
}  # fmt: skip

ARCHITECTURES = (
    *transformers("encoders", ENCODERS),
    *transformers("decoders", DECODERS),
    *transformers("mixtures of experts", EXPERTS),
    *transformers("state spaces and recurrences", STATE_SPACES),
    *transformers("encoders with decoders", BOTH),
    *transformers("time series", TIME_SERIES),
)
