"""Detectors, segmenters and estimators of depth, as far as their shapes do not depend on data."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

import torch
from torch import nn

from tools.evidence.architectures.architecture import Architecture, Example
from tools.evidence.architectures.hugging_face import shaped, transformers

_BACKBONE = {
    "model_type": "resnet", "hidden_sizes": [16, 16, 32, 32], "depths": [1, 1, 1, 1],
    "embedding_size": 16, "out_features": ["stage2", "stage3", "stage4"],
}  # fmt: skip
_LAST = _BACKBONE | {"out_features": ["stage4"]}
_ALL = _BACKBONE | {"out_features": ["stage1", "stage2", "stage3", "stage4"]}
_SWIN = {
    "model_type": "swin", "image_size": 64, "embed_dim": 16, "depths": [1, 1, 1, 1],
    "num_heads": [2, 2, 2, 2], "window_size": 4,
    "out_features": ["stage1", "stage2", "stage3", "stage4"],
}  # fmt: skip
_HYBRID = {
    "backbone_config": _BACKBONE | {"model_type": "rt_detr_resnet"},
    "encoder_in_channels": [16, 32, 32], "decoder_in_channels": [32, 32, 32],
    "num_queries": 4, "encoder_layers": 1, "uneven": True,
}  # fmt: skip
_IMAGE = {"inputs": {"pixel_values": (1, 3, 64, 64)}}

DETECTION: dict[str, Mapping[str, Any]] = {
    "ConditionalDetrForObjectDetection": {"backbone_config": _LAST, "num_queries": 10, **_IMAGE},
    "DFineForObjectDetection": {
        **_HYBRID, "backbone_config": {
            "model_type": "hgnet_v2", "embedding_size": 16, "hidden_sizes": [16, 16, 32, 32],
            "depths": [1, 1, 1, 1], "stem_channels": [3, 8, 16],
            "stage_in_channels": [16, 16, 16, 32],
            "stage_mid_channels": [8, 8, 8, 8], "stage_out_channels": [16, 16, 32, 32],
            "stage_num_blocks": [1, 1, 1, 1], "stage_numb_of_layers": [1, 1, 1, 1],
            "out_features": ["stage2", "stage3", "stage4"],
        }, **_IMAGE,
    },
    "DabDetrForObjectDetection": {
        "backbone_config": _LAST, "num_queries": 10, "hidden_size": 32, **_IMAGE,
    },
    "DeformableDetrForObjectDetection": {
        "backbone_config": _BACKBONE, "num_queries": 10, "encoder_n_points": 2,
        "decoder_n_points": 2, "num_feature_levels": 3, **_IMAGE,
    },
    "DetrForObjectDetection": {"backbone_config": _LAST, "num_queries": 10, **_IMAGE},
    "OwlViTModel": {"inputs": {"input_ids": 16, "pixel_values": (1, 3, 32, 32)}},
    "RTDetrForObjectDetection": {**_HYBRID, **_IMAGE},
    "RTDetrV2ForObjectDetection": {**_HYBRID, **_IMAGE},
    "TableTransformerForObjectDetection": {"backbone_config": _LAST, "num_queries": 10, **_IMAGE},
    "VitDetModel": {"image_size": 64, "window_size": 4, "window_block_indices": [0], **_IMAGE},
    "YolosForObjectDetection": {
        "image_size": [64, 64], "patch_size": 16, "num_detection_tokens": 5, **_IMAGE,
    },
}  # fmt: skip

SEGMENTATION: dict[str, Mapping[str, Any]] = {
    "BeitForSemanticSegmentation": {
        "num_hidden_layers": 4, "out_indices": [0, 1, 2, 3], "semantic_loss_ignore_index": 255,
        "use_auxiliary_head": False, "image_size": 64, "patch_size": 16,
    },
    "CLIPSegModel": {"inputs": {"input_ids": 16, "pixel_values": (1, 3, 32, 32)}},
    "DPTForDepthEstimation": {
        "num_hidden_layers": 4, "backbone_out_indices": [0, 1, 2, 3], "fusion_hidden_size": 16,
        "neck_hidden_sizes": [8, 8, 16, 16],
    },
    "DepthAnythingForDepthEstimation": {
        "backbone_config": {
            "model_type": "dinov2", "image_size": 56, "patch_size": 14, "hidden_size": 32,
            "num_hidden_layers": 4, "num_attention_heads": 4, "apply_layernorm": True,
            "out_features": ["stage1", "stage2", "stage3", "stage4"],
            "reshape_hidden_states": False,
        },
        "reassemble_hidden_size": 32, "patch_size": 14, "neck_hidden_sizes": [8, 8, 16, 16],
        "fusion_hidden_size": 16, "inputs": {"pixel_values": (1, 3, 56, 56)},
    },
    "EomtForUniversalSegmentation": {
        "num_hidden_layers": 4, "num_blocks": 1, "num_queries": 5, "num_upscale_blocks": 1,
    },
    "GLPNForDepthEstimation": {
        "depths": [1, 1, 1, 1], "hidden_sizes": [16, 16, 32, 32], "decoder_hidden_size": 16,
        "num_attention_heads": [1, 2, 2, 2], **_IMAGE,
    },
    "Mask2FormerModel": {
        "backbone_config": _SWIN, "feature_size": 32, "mask_feature_size": 32, "hidden_dim": 32,
        "encoder_feedforward_dim": 32, "dim_feedforward": 32, "num_queries": 5, **_IMAGE,
    },
    "MaskFormerModel": {
        "backbone_config": _SWIN, "fpn_feature_size": 32, "mask_feature_size": 32,
        "decoder_config": {
            "model_type": "detr", "d_model": 32, "num_queries": 5, "decoder_layers": 1,
            "encoder_layers": 1, "decoder_ffn_dim": 32, "decoder_attention_heads": 4,
            "backbone_config": _LAST,
        }, **_IMAGE,
    },
    "MobileViTForSemanticSegmentation": {
        "patch_size": 2, "hidden_sizes": [16, 24, 32], "image_size": 64,
        "neck_hidden_sizes": [8, 16, 16, 24, 32, 32, 64],
    },
    "SamVisionModel": {
        "image_size": 64, "patch_size": 16, "window_size": 2, "global_attn_indexes": [1],
        "output_channels": 16, "mlp_dim": 64, **_IMAGE,
    },
    "SegformerForSemanticSegmentation": {
        "depths": [1, 1, 1, 1], "hidden_sizes": [16, 16, 32, 32],
        "num_attention_heads": [1, 2, 2, 2], "decoder_hidden_size": 32, **_IMAGE,
    },
    "UperNetForSemanticSegmentation": {
        "backbone_config": _ALL, "hidden_size": 32, "auxiliary_in_channels": 32,
        "auxiliary_channels": 16, "inputs": {"pixel_values": (1, 3, 128, 128)},
    },
}  # fmt: skip


class Head(nn.Module):
    """A backbone with a pyramid of features, and a head over all its levels."""

    def __init__(self, backbone: nn.Module, head: nn.Module | None = None) -> None:
        super().__init__()
        self.backbone = backbone
        self.head = head

    def forward(self, images: Any) -> Any:
        """Return the features of all levels, or what the head makes of them."""
        features = list(self.backbone(images).values())
        return features if self.head is None else self.head(features)


def _pyramid() -> nn.Module:
    from torchvision.models.detection.backbone_utils import resnet_fpn_backbone

    found: nn.Module = resnet_fpn_backbone(
        backbone_name="resnet18", weights=None, norm_layer=nn.BatchNorm2d
    )
    return found


def _with_head(head: str) -> Callable[[], Example]:
    def make() -> Example:
        from torchvision.models.detection import fcos, retinanet, rpn

        heads: dict[str, Callable[[], Any]] = {
            "RetinaNet": lambda: retinanet.RetinaNetHead(256, 9, 5),
            "FCOS": lambda: fcos.FCOSHead(256, 1, 5),
            "RPN": lambda: rpn.RPNHead(256, 3),
            "FPN": lambda: None,
        }
        return Example(Head(_pyramid(), heads[head]()).eval(), (shaped((1, 3, 64, 64)),))

    return make


class SsdLite(nn.Module):
    """SSDLite without what turns its scores into boxes."""

    def __init__(self) -> None:
        super().__init__()
        from torchvision.models.detection import ssdlite320_mobilenet_v3_large

        whole = ssdlite320_mobilenet_v3_large(weights=None, weights_backbone=None, num_classes=5)
        self.backbone = whole.backbone
        self.head = whole.head

    def forward(self, images: Any) -> Any:
        """Return scores and offsets."""
        return self.head(list(self.backbone(images).values()))


def _ssd_lite() -> Example:
    return Example(SsdLite().eval(), (shaped((1, 3, 320, 320)),))


class Regions(nn.Module):
    """What a second stage reads of the features of given boxes."""

    def __init__(self) -> None:
        super().__init__()
        self.boxes = nn.Buffer(torch.tensor([[0, 1.0, 1.0, 9.0, 9.0], [0, 2.0, 3.0, 12.0, 10.0]]))

    def forward(self, features: Any) -> Any:
        """Return a small tensor for each box."""
        from torchvision.ops import roi_align

        return roi_align(features, self.boxes, (3, 3), 1.0, 2)


def _roi_align() -> Example:
    return Example(Regions(), (shaped((1, 4, 16, 16)),))


def _flow() -> Example:
    from torchvision.models.optical_flow import raft_small

    images = (shaped((1, 3, 128, 128)), shaped((1, 3, 128, 128)))
    return Example(_Flow(raft_small(weights=None)), images)


class _Flow(nn.Module):
    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, one: Any, other: Any) -> Any:
        return self.model(one, other, num_flow_updates=2)


def _segmenter(name: str) -> Example:
    from torchvision.models import get_model

    model = get_model(name, weights=None, weights_backbone=None, num_classes=5)
    return Example(model, (shaped((1, 3, 64, 64)),))


_DETECTION, _SEGMENTATION = "detection", "segmentation, depth and flow"


def _torchvision() -> Iterable[Architecture]:
    for head in ("FPN", "RPN", "RetinaNet", "FCOS"):
        yield Architecture("torchvision", f"{head} on ResNet-18", _DETECTION, _with_head(head))
    yield Architecture("torchvision", "SSDLite, scores", _DETECTION, _ssd_lite)
    yield Architecture("torchvision", "RoIAlign", _DETECTION, _roi_align)
    for name in ("deeplabv3_mobilenet_v3_large", "fcn_resnet50", "lraspp_mobilenet_v3_large"):
        yield Architecture("torchvision", name, _SEGMENTATION, partial(_segmenter, name))
    yield Architecture("torchvision", "raft_small", _SEGMENTATION, _flow)


ARCHITECTURES = (
    *transformers(_DETECTION, DETECTION),
    *transformers(_SEGMENTATION, SEGMENTATION),
    *_torchvision(),
)
