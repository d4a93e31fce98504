"""Models of images: ``timm``, ``torchvision`` and ``transformers``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from tools.evidence.architectures.architecture import Architecture, Example
from tools.evidence.architectures.hugging_face import shaped, transformers

_PLAIN: dict[str, Any] = {}
_SIZE = 64
_LARGE = {
    "bat_resnext26ts": 256, "efficientformer_l1": 224, "halonet26t": 256, "inception_v4": 96,
}  # fmt: skip
"""Those whose blocks need a larger image."""

_FOUR = {"img_size": 64}
_SHALLOW = {"depth": 2}
_CUT = {"depths": (1, 1, 1, 1)}

TIMM_CONVOLUTIONAL: dict[str, Mapping[str, Any]] = {
    "bat_resnext26ts": _PLAIN, "botnet26t_256": _FOUR, "convmixer_768_32": _PLAIN,
    "convnext_atto": _CUT, "convnextv2_atto": _CUT, "cs3darknet_s": _PLAIN,
    "cspresnet50": _PLAIN, "darknet53": _PLAIN, "densenet121": {"block_config": (2, 2, 2, 2)},
    "dla46_c": _PLAIN, "dpn48b": _PLAIN, "eca_nfnet_l0": _PLAIN, "edgenext_xx_small": _PLAIN,
    "efficientnet_b0": _PLAIN, "efficientnet_lite0": _PLAIN, "ese_vovnet19b_dw": _PLAIN,
    "fastvit_t8": _PLAIN, "focalnet_tiny_srf": _PLAIN, "gcresnet33ts": _PLAIN,
    "ghostnet_100": _PLAIN, "halonet26t": _PLAIN, "hardcorenas_a": _PLAIN, "hgnetv2_b0": _PLAIN,
    "hrnet_w18_small": _PLAIN, "inception_v4": _PLAIN, "inception_next_atto": _PLAIN,
    "lambda_resnet26t": _FOUR, "lcnet_050": _PLAIN, "legacy_seresnet18": _PLAIN,
    "mambaout_femto": _CUT, "mixnet_s": _PLAIN, "mnasnet_small": _PLAIN, "mobilenetv2_050": _PLAIN,
    "mobilenetv3_small_050": _PLAIN, "mobilenetv4_conv_small": _PLAIN,
    "mobilenetv4_hybrid_medium": _PLAIN, "mobileone_s0": _PLAIN, "nf_regnet_b0": _PLAIN,
    "poolformer_s12": _PLAIN, "regnetx_002": _PLAIN, "regnety_002": _PLAIN,
    "regnetz_b16": _PLAIN, "repghostnet_050": _PLAIN, "repvgg_a0": _PLAIN, "repvit_m0_9": _PLAIN,
    "res2net50_26w_4s": {"layers": (1, 1, 1, 1)}, "resnest14d": _PLAIN, "resnet18": _PLAIN,
    "resnet26t": _PLAIN, "resnetblur50": {"layers": (1, 1, 1, 1)},
    "resnetv2_50": {"layers": (1, 1, 1, 1)}, "resnext50_32x4d": {"layers": (1, 1, 1, 1)},
    "rexnet_100": _PLAIN, "selecsls42b": _PLAIN, "seresnext26d_32x4d": _PLAIN, "skresnet18": _PLAIN,
    "starnet_s1": _PLAIN, "tinynet_e": _PLAIN, "tresnet_m": {"layers": (1, 1, 1, 1)},
    "vgg11": _PLAIN, "xception41": _PLAIN,
}  # fmt: skip

TIMM_TRANSFORMERS: dict[str, Mapping[str, Any]] = {
    "beit_base_patch16_224": {**_FOUR, **_SHALLOW, "embed_dim": 96, "num_heads": 4},
    "cait_xxs24_224": {**_FOUR, **_SHALLOW}, "caformer_s18": _PLAIN,
    "coat_lite_tiny": {**_FOUR, "serial_depths": (1, 1, 1, 1)},
    "coatnet_nano_rw_224": _FOUR, "convformer_s18": _PLAIN,
    "convit_tiny": {**_FOUR, **_SHALLOW, "local_up_to_layer": 1},
    "crossvit_9_240": {"img_size": 120}, "davit_tiny": _CUT,
    "deit3_small_patch16_224": {**_FOUR, **_SHALLOW},
    "deit_tiny_distilled_patch16_224": {**_FOUR, **_SHALLOW},
    "efficientformer_l1": _PLAIN, "efficientformerv2_s0": _FOUR, "efficientvit_b0": _PLAIN,
    "efficientvit_m0": _FOUR, "eva02_tiny_patch14_224": {"img_size": 56, **_SHALLOW},
    "gcvit_xxtiny": _FOUR, "gmlp_s16_224": _FOUR,
    "hiera_tiny_224": {**_FOUR, "stages": (1, 1, 1, 1)}, "levit_128s": _FOUR,
    "maxvit_pico_rw_256": _FOUR, "mixer_s16_224": _FOUR,
    "mobilevit_xxs": _PLAIN, "mobilevitv2_050": _PLAIN, "mvitv2_tiny": {**_FOUR},
    "nest_tiny": {"img_size": 128}, "nextvit_small": _PLAIN,
    "pit_ti_224": {**_FOUR, "depth": (1, 1, 1)}, "pvt_v2_b0": _PLAIN,
    "resmlp_12_224": _FOUR, "sequencer2d_s": {**_FOUR, "layers": (1, 1, 1, 1)},
    "shvit_s1": _PLAIN, "swiftformer_xs": _PLAIN,
    "swin_tiny_patch4_window7_224": {"img_size": 56, **_CUT},
    "swinv2_tiny_window8_256": {**_FOUR, **_CUT}, "tiny_vit_5m_224": _PLAIN,
    "tnt_s_patch16_224": {**_FOUR, **_SHALLOW}, "twins_pcpvt_small": {**_FOUR, **_CUT},
    "twins_svt_small": {**_FOUR, **_CUT}, "visformer_tiny": _FOUR,
    "vit_relpos_small_patch16_224": {**_FOUR, **_SHALLOW},
    "vit_small_patch14_reg4_dinov2": {"img_size": 56, **_SHALLOW},
    "vit_tiny_patch16_224": {**_FOUR, **_SHALLOW}, "volo_d1_224": _FOUR,
    "xcit_nano_12_p16_224": {**_FOUR, **_SHALLOW},
}  # fmt: skip

TORCHVISION: dict[str, tuple[int, ...]] = {
    "alexnet": (1, 3, 96, 96), "convnext_tiny": (1, 3, 64, 64), "densenet121": (1, 3, 64, 64),
    "efficientnet_b0": (1, 3, 64, 64), "efficientnet_v2_s": (1, 3, 64, 64),
    "googlenet": (1, 3, 96, 96), "inception_v3": (1, 3, 128, 128), "mnasnet0_5": (1, 3, 64, 64),
    "mobilenet_v2": (1, 3, 64, 64), "mobilenet_v3_small": (1, 3, 64, 64),
    "regnet_x_400mf": (1, 3, 64, 64), "resnet18": (1, 3, 64, 64),
    "shufflenet_v2_x0_5": (1, 3, 64, 64), "squeezenet1_1": (1, 3, 64, 64),
    "vgg11_bn": (1, 3, 64, 64), "wide_resnet50_2": (1, 3, 64, 64),
    "mc3_18": (1, 3, 8, 32, 32), "r2plus1d_18": (1, 3, 8, 32, 32), "r3d_18": (1, 3, 8, 32, 32),
}  # fmt: skip
TORCHVISION_TRANSFORMERS: dict[str, tuple[int, ...]] = {
    "swin_t": (1, 3, 64, 64), "swin_v2_t": (1, 3, 64, 64),
    "swin3d_t": (1, 3, 4, 64, 64),
}  # fmt: skip

CONVOLUTIONAL: dict[str, Mapping[str, Any]] = {
    "BitModel": {"num_groups": 8, "hidden_sizes": [16, 32], "depths": [1, 1]},
    "ConvNextModel": {"hidden_sizes": [16, 32], "depths": [1, 1], "num_stages": 2},
    "ConvNextV2Model": {"hidden_sizes": [16, 32], "depths": [1, 1], "num_stages": 2},
    "EfficientNetModel": {"width_coefficient": 1.0, "depth_coefficient": 1.0, "hidden_dim": 1280},
    "FocalNetModel": {"embed_dim": 16, "depths": [1, 1], "focal_levels": [2, 2]},
    "LevitModel": {"inputs": {"pixel_values": (1, 3, 64, 64)}},
    "MobileNetV1Model": _PLAIN,
    "MobileNetV2Model": _PLAIN,
    "PoolFormerModel": {"depths": [1, 1, 1, 1], "hidden_sizes": [16, 16, 32, 32]},
    "RegNetModel": {"hidden_sizes": [16, 32], "depths": [1, 1], "groups_width": 8},
    "ResNetModel": {"hidden_sizes": [16, 32], "depths": [1, 1]},
}

_STAGES = {"depths": [1, 1], "embed_dim": 16, "num_heads": [2, 2], "window_size": 4}
TRANSFORMERS: dict[str, Mapping[str, Any]] = {
    "BeitModel": {"use_relative_position_bias": True},
    "CvtModel": _PLAIN,
    "DeiTModel": _PLAIN,
    "Dinov2Model": _PLAIN,
    "Dinov2WithRegistersModel": _PLAIN,
    "DonutSwinModel": {**_STAGES, "patch_size": 4},
    "HieraModel": {
        "image_size": [64, 64], "embed_dim": 16, "depths": [1, 1, 1, 1],
        "inputs": {"pixel_values": (1, 3, 64, 64)},
    },
    "IJepaModel": _PLAIN,
    "ImageGPTModel": _PLAIN,
    "MobileViTModel": {
        "patch_size": 2, "hidden_sizes": [16, 24, 32], "image_size": 64,
        "neck_hidden_sizes": [8, 16, 16, 24, 32, 32, 64],
    },
    "MobileViTV2Model": {"patch_size": 2, "image_size": 64},
    "PvtModel": {"depths": [1, 1, 1, 1], "image_size": 64},
    "PvtV2Model": {"depths": [1, 1, 1, 1], "image_size": 64},
    "SwiftFormerModel": {"image_size": 64},
    "Swin2SRModel": {**_STAGES, "patch_size": 1},
    "SwinModel": {**_STAGES, "patch_size": 4},
    "Swinv2Model": {**_STAGES, "patch_size": 4, "pretrained_window_sizes": [0, 0]},
    "TimesformerModel": {"num_frames": 2, "inputs": {"pixel_values": (1, 2, 3, 32, 32)}},
    "VideoMAEModel": {"num_frames": 4, "inputs": {"pixel_values": (1, 4, 3, 32, 32)}},
    "ViTMSNModel": _PLAIN,
    "ViTModel": _PLAIN,
    "VivitModel": {
        "num_frames": 4, "tubelet_size": [2, 8, 8], "inputs": {"pixel_values": (1, 4, 3, 32, 32)},
    },
    "DINOv3ViTModel": _PLAIN,
    "DINOv3ConvNextModel": {"depths": [1, 1, 1, 1], "hidden_sizes": [16, 16, 32, 32]},
}  # fmt: skip


def _timm(family: str, models: Mapping[str, Mapping[str, Any]]) -> Iterable[Architecture]:
    for name, settings in models.items():
        yield Architecture("timm", name, family, partial(_timm_example, name, settings))


def _timm_example(name: str, settings: Mapping[str, Any]) -> Example:
    import timm

    size = settings.get("img_size", _LARGE.get(name, _SIZE))
    model = timm.create_model(name, pretrained=False, num_classes=10, **settings)
    return Example(model, (shaped((1, 3, size, size)),))


def _torchvision(family: str, models: Mapping[str, tuple[int, ...]]) -> Iterable[Architecture]:
    for name, shape in models.items():
        yield Architecture("torchvision", name, family, partial(_torchvision_example, name, shape))


def _torchvision_example(name: str, shape: tuple[int, ...]) -> Example:
    from torchvision.models import get_model

    extra = {"init_weights": True} if name in ("googlenet", "inception_v3") else {}
    model = get_model(name, weights=None, num_classes=10, **extra)
    return Example(model, (shaped(shape),))


def _vision_transformer() -> Example:
    from torchvision.models import VisionTransformer

    return Example(VisionTransformer(32, 8, 2, 4, 32, 64), (shaped((1, 3, 32, 32)),))


def _maxvit() -> Example:
    from torchvision.models import MaxVit

    model = MaxVit((64, 64), 16, 2, [16, 32, 64], [1, 1, 1], 8, 0.0, num_classes=10)
    return Example(model, (shaped((1, 3, 64, 64)),))


_CONVOLUTIONAL, _TRANSFORMERS = "images: convolutional", "images: transformers"
ARCHITECTURES = (
    *_timm(_CONVOLUTIONAL, TIMM_CONVOLUTIONAL),
    *_torchvision(_CONVOLUTIONAL, TORCHVISION),
    *transformers(_CONVOLUTIONAL, CONVOLUTIONAL),
    *_timm(_TRANSFORMERS, TIMM_TRANSFORMERS),
    *_torchvision(_TRANSFORMERS, TORCHVISION_TRANSFORMERS),
    Architecture("torchvision", "MaxVit", _TRANSFORMERS, _maxvit),
    Architecture("torchvision", "VisionTransformer", _TRANSFORMERS, _vision_transformer),
    *transformers(_TRANSFORMERS, TRANSFORMERS),
)
