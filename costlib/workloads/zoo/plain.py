"""Networks that ``transformers`` does not have: classifiers, generators, video, text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from costlib.workloads.zoo.registry import NetworkSpec, Size, images, tokens

_NOISE = 100
_WIDTHS = (512, 256, 128, 64)
_VOCABULARY = 8192
_VGG_11 = (64, "M", 128, "M", 256, 256, "M", 512, 512, "M", 512, 512, "M")


def _own(name: str, make: Callable[[Any], Any], *rest: Any) -> NetworkSpec:
    def build(_: Size) -> Any:
        from costlib.workloads.zoo import modules  # It imports torch.

        return make(modules)

    return NetworkSpec(name, build, *rest)


def _squeezenet_int8(size: Size) -> Any:
    import torch

    from costlib.workloads.quantised_layers import quantised
    from costlib.workloads.zoo import modules

    example = torch.randn(size.batch, 3, size.extent, size.extent)
    return quantised(modules.randomise(modules.squeezenet(), example), example)


SPECS = (
    _own("densenet_small", lambda own: own.densenet((3, 6, 8, 6), growth=24)),
    _own("resnext_50", lambda own: own.ResNeXt((3, 4, 6, 3), groups=32, group_width=4)),
    _own("squeezenet", lambda own: own.squeezenet()),
    NetworkSpec("squeezenet_int8", _squeezenet_int8),
    _own("vgg_11", lambda own: own.vgg(_VGG_11)),
    _own("dcgan", lambda own: own.dcgan(_NOISE, _WIDTHS), images(_NOISE), Size(1, 1)),
    _own("r3d", lambda own: own.r3d((32, 64, 128)), images(3, 8), Size(1, 112)),
    _own(
        "textcnn",
        lambda own: own.TextConvolution(_VOCABULARY, 256, (1, 2, 4, 8)),
        tokens(_VOCABULARY),
        Size(1, 128),
        "s",
    ),
)
