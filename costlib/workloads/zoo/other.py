"""Generators, video and convolutions over text: operators that classifiers lack."""

from __future__ import annotations

from typing import Any

from costlib.workloads.network import InputSpec
from costlib.workloads.zoo.registry import NetworkSpec, Size, tokens

_NOISE = 100
_VOCABULARY = 8192


def _dcgan(_: Size) -> Any:
    from costlib.workloads.zoo.modules import dcgan_generator

    return dcgan_generator(_NOISE, (512, 256, 128, 64))


def _r3d(_: Size) -> Any:
    from costlib.workloads.zoo.modules import r3d

    return r3d((32, 64, 128))


def _textcnn(_: Size) -> Any:
    from costlib.workloads.zoo.modules import TextConvolution

    return TextConvolution(_VOCABULARY, 256, (1, 2, 4, 8))


def _noise(size: Size) -> tuple[InputSpec, ...]:
    return (InputSpec("x", "float32", (size.batch, _NOISE, size.extent, size.extent)),)


def _clip(size: Size) -> tuple[InputSpec, ...]:
    return (InputSpec("x", "float32", (size.batch, 3, 8, size.extent, size.extent)),)


SPECS = (
    NetworkSpec("dcgan", "generator", _dcgan, _noise, Size(1, 1), "r"),
    NetworkSpec("r3d", "video", _r3d, _clip, Size(1, 112), "r"),
    NetworkSpec("textcnn", "cnn", _textcnn, tokens(_VOCABULARY), Size(1, 128), "s"),
)
