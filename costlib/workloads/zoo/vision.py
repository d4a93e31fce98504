"""Image classifiers with convolutions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from costlib.workloads.zoo.registry import NetworkSpec, Size, images
from costlib.workloads.zoo.wrap import first_output


def _resnet(layer: str, depths: list[int], widths: list[int]) -> Any:
    from transformers import ResNetConfig, ResNetForImageClassification

    config = ResNetConfig(layer_type=layer, depths=depths, hidden_sizes=widths, num_labels=1000)
    return first_output(ResNetForImageClassification(config), "logits")


def _resnet_basic(*depths: int) -> Any:
    return _resnet("basic", list(depths), [64, 128, 256, 512])


def _resnet_bottleneck(*depths: int) -> Any:
    return _resnet("bottleneck", list(depths), [256, 512, 1024, 2048])


def _mobilenet_v1() -> Any:
    from transformers import MobileNetV1Config, MobileNetV1ForImageClassification

    config = MobileNetV1Config(num_labels=1000, tf_padding=False)
    return first_output(MobileNetV1ForImageClassification(config), "logits")


def _mobilenet_v2() -> Any:
    from transformers import MobileNetV2Config, MobileNetV2ForImageClassification

    config = MobileNetV2Config(num_labels=1000, tf_padding=False)
    return first_output(MobileNetV2ForImageClassification(config), "logits")


def _regnet_y_400mf() -> Any:
    from transformers import RegNetConfig, RegNetForImageClassification

    config = RegNetConfig(
        layer_type="y",
        depths=[1, 3, 6, 6],
        hidden_sizes=[48, 104, 208, 440],
        groups_width=8,
        num_labels=1000,
    )
    return first_output(RegNetForImageClassification(config), "logits")


def _efficientnet_b0() -> Any:
    from transformers import EfficientNetConfig, EfficientNetForImageClassification

    config = EfficientNetConfig(
        width_coefficient=1.0,
        depth_coefficient=1.0,
        image_size=224,
        hidden_dim=1280,
        num_labels=1000,
    )
    return first_output(EfficientNetForImageClassification(config), "logits")


def _convnext_tiny() -> Any:
    from transformers import ConvNextConfig, ConvNextForImageClassification

    return first_output(ConvNextForImageClassification(ConvNextConfig(num_labels=1000)), "logits")


def _resnext_50() -> Any:
    from costlib.workloads.zoo.modules import ResNeXt

    return ResNeXt(depths=(3, 4, 6, 3), groups=32, group_width=4)


def _densenet_small() -> Any:
    from costlib.workloads.zoo.modules import densenet

    return densenet(depths=(3, 6, 8, 6), growth=24)


def _vgg_11() -> Any:
    from costlib.workloads.zoo.modules import vgg

    return vgg((64, "M", 128, "M", 256, 256, "M", 512, 512, "M", 512, 512, "M"))


def _squeezenet() -> Any:
    from costlib.workloads.zoo.modules import squeezenet

    return squeezenet()


_BUILDERS: dict[str, Callable[[], Any]] = {
    "convnext_tiny": _convnext_tiny,
    "densenet_small": _densenet_small,
    "efficientnet_b0": _efficientnet_b0,
    "mobilenet_v1": _mobilenet_v1,
    "mobilenet_v2": _mobilenet_v2,
    "regnet_y_400mf": _regnet_y_400mf,
    "resnet_18": lambda: _resnet_basic(2, 2, 2, 2),
    "resnet_34": lambda: _resnet_basic(3, 4, 6, 3),
    "resnet_50": lambda: _resnet_bottleneck(3, 4, 6, 3),
    "resnet_101": lambda: _resnet_bottleneck(3, 4, 23, 3),
    "resnext_50": _resnext_50,
    "squeezenet": _squeezenet,
    "vgg_11": _vgg_11,
}


def _spec(name: str, make: Callable[[], Any]) -> NetworkSpec:
    return NetworkSpec(name, "cnn", lambda _: make(), images, Size(1, 224), "r")


SPECS = tuple(_spec(name, make) for name, make in _BUILDERS.items())
