"""Networks that ``transformers`` does not have, in plain PyTorch."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import nn

CLASSES = 1000


def randomise(model: nn.Module, *example: torch.Tensor) -> nn.Module:
    """Redraw convolutions and batch norms so that activations neither vanish nor explode.

    With the usual initial values the outputs of deep networks are so small that comparing
    them shows nothing, and batch norms do nothing at all: now they bring what they get for the
    example to a scale of about one. The model, changed in place, is in evaluation mode.
    """
    hooks = []
    for layer in model.eval().modules():
        if isinstance(layer, nn.modules.conv._ConvNd):
            nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
        elif isinstance(layer, nn.modules.batchnorm._BatchNorm):
            hooks.append(layer.register_forward_pre_hook(_randomise_norm))
    if hooks:
        with torch.no_grad():
            model(*example)
    for hook in hooks:
        hook.remove()
    return model


def _randomise_norm(norm: nn.Module, inputs: tuple[torch.Tensor]) -> None:
    power = inputs[0].square().mean()
    nn.init.uniform_(norm.weight, 0.5, 1.5)
    nn.init.normal_(norm.bias, std=0.1)
    norm.running_mean.normal_().mul_(0.1 * power.sqrt())
    norm.running_var.uniform_(0.5, 1.5).mul_(power)


class ResNeXt(nn.Module):  # type: ignore[misc]
    """Bottleneck residual network with grouped 3x3 convolutions.

    Parameters
    ----------
    depths
        Blocks in each of the four stages.
    groups, group_width
        Groups of the 3x3 convolutions, and channels in each in the first stage.
    """

    def __init__(self, depths: Sequence[int], groups: int, group_width: int) -> None:
        super().__init__()
        layers = [*_conv_norm(3, 64, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
        channels = 64
        for stage, depth in enumerate(depths):
            inner, outer = groups * group_width * 2**stage, 256 * 2**stage
            for block in range(depth):
                stride = 2 if stage > 0 and block == 0 else 1
                main = [*_conv_norm(channels, inner, 1), nn.ReLU()]
                main += [*_conv_norm(inner, inner, 3, stride, groups=groups), nn.ReLU()]
                main += _conv_norm(inner, outer, 1)
                same = stride == 1 and channels == outer
                shortcut = [] if same else _conv_norm(channels, outer, 1, stride)
                layers.append(_Residual(main, shortcut))
                channels = outer
        self.layers = nn.Sequential(*layers, *_classifier(channels))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return logits of shape ``b x 1000`` for images ``b x 3 x h x w``."""
        return self.layers(x)


class _Residual(nn.Module):  # type: ignore[misc]
    """The sum of two branches, then a ReLU."""

    def __init__(self, main: list[nn.Module], shortcut: list[nn.Module]) -> None:
        super().__init__()
        self.main = nn.Sequential(*main)
        self.shortcut = nn.Sequential(*shortcut)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.main(x) + self.shortcut(x))


class _Fire(nn.Module):  # type: ignore[misc]
    """SqueezeNet's block: squeeze to few channels, expand by 1x1 and 3x3 side by side."""

    def __init__(self, channels: int, squeezed: int, expanded: int) -> None:
        super().__init__()
        self.squeeze = nn.Conv2d(channels, squeezed, 1)
        self.narrow = nn.Conv2d(squeezed, expanded, 1)
        self.wide = nn.Conv2d(squeezed, expanded, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.relu(self.squeeze(x))
        return torch.cat([torch.relu(self.narrow(x)), torch.relu(self.wide(x))], 1)


def squeezenet() -> nn.Module:
    """SqueezeNet 1.1."""
    return nn.Sequential(
        nn.Conv2d(3, 64, 3, 2),
        nn.ReLU(),
        nn.MaxPool2d(3, 2),
        _Fire(64, 16, 64),
        _Fire(128, 16, 64),
        nn.MaxPool2d(3, 2),
        _Fire(128, 32, 128),
        _Fire(256, 32, 128),
        nn.MaxPool2d(3, 2),
        _Fire(256, 48, 192),
        _Fire(384, 48, 192),
        _Fire(384, 64, 256),
        _Fire(512, 64, 256),
        nn.Conv2d(512, CLASSES, 1),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
    )


class _DenseLayer(nn.Module):  # type: ignore[misc]
    """A layer of DenseNet: what it computes is appended to the channels of its input."""

    def __init__(self, channels: int, growth: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.BatchNorm2d(channels),
            nn.ReLU(),
            *_conv_norm(channels, 4 * growth, 1),
            nn.ReLU(),
            nn.Conv2d(4 * growth, growth, 3, padding=1, bias=False),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cat([x, self.body(x)], 1)


def densenet(depths: Sequence[int], growth: int) -> nn.Module:
    """DenseNet: blocks of dense layers, channels and extent halved between them."""
    channels = 2 * growth
    layers = [*_conv_norm(3, channels, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    for number, depth in enumerate(depths):
        for _ in range(depth):
            layers.append(_DenseLayer(channels, growth))
            channels += growth
        layers += [nn.BatchNorm2d(channels), nn.ReLU()]
        if number < len(depths) - 1:
            layers += [nn.Conv2d(channels, channels // 2, 1, bias=False), nn.AvgPool2d(2)]
            channels //= 2
    return nn.Sequential(*layers, *_classifier(channels))


def vgg(plan: Sequence[int | str]) -> nn.Module:
    """VGG without its giant dense layers: 3x3 convolutions by width, ``"M"`` for pooling."""
    layers: list[nn.Module] = []
    channels = 3
    for width in plan:
        if isinstance(width, str):
            layers.append(nn.MaxPool2d(2))
        else:
            layers += [nn.Conv2d(channels, width, 3, padding=1), nn.ReLU()]
            channels = width
    return nn.Sequential(*layers, *_classifier(channels))


def dcgan(noise: int, widths: Sequence[int]) -> nn.Module:
    """DCGAN's generator: noise ``b x noise x 1 x 1`` to images ``b x 3 x 64 x 64``."""
    layers: list[nn.Module] = []
    for i, (channels, width) in enumerate(pairwise([noise, *widths])):
        stride, padding = (1, 0) if i == 0 else (2, 1)
        layers += [nn.ConvTranspose2d(channels, width, 4, stride, padding, bias=False)]
        layers += [nn.BatchNorm2d(width), nn.ReLU()]
    return nn.Sequential(*layers, nn.ConvTranspose2d(widths[-1], 3, 4, 2, 1), nn.Tanh())


def r3d(widths: Sequence[int]) -> nn.Module:
    """Residual network over clips ``b x 3 x t x h x w``, one block a width."""
    layers: list[nn.Module] = [
        nn.Conv3d(3, widths[0], (3, 7, 7), (1, 2, 2), (1, 3, 3), bias=False),
        nn.BatchNorm3d(widths[0]),
        nn.ReLU(),
    ]
    for i, (channels, width) in enumerate(pairwise([widths[0], *widths])):
        stride = 1 if i == 0 else 2
        main = [*_conv_norm(channels, width, 3, stride, dims=3), nn.ReLU()]
        main += _conv_norm(width, width, 3, dims=3)
        shortcut = _conv_norm(channels, width, 1, stride, dims=3)
        layers.append(_Residual(main, shortcut if i > 0 else []))
    head = [nn.AdaptiveAvgPool3d(1), nn.Flatten(), nn.Linear(widths[-1], 400)]
    return nn.Sequential(*layers, *head)


class TextConvolution(nn.Module):  # type: ignore[misc]
    """Dilated 1-D convolutions over embedded tokens, as in WaveNet-like encoders."""

    def __init__(self, vocabulary: int, width: int, dilations: Sequence[int]) -> None:
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        layers: list[nn.Module] = []
        for dilation in dilations:
            layers += [nn.Conv1d(width, width, 3, 1, dilation, dilation), nn.ReLU()]
        self.layers = nn.Sequential(*layers)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return ``b x width x s`` for token ids ``b x s``."""
        return self.layers(self.embed(x).transpose(1, 2))


def _conv_norm(
    channels: int, width: int, kernel: int, stride: int = 1, *, groups: int = 1, dims: int = 2
) -> list[nn.Module]:
    conv, norm = (nn.Conv2d, nn.BatchNorm2d) if dims == 2 else (nn.Conv3d, nn.BatchNorm3d)
    padding = kernel // 2
    return [conv(channels, width, kernel, stride, padding, 1, groups, bias=False), norm(width)]


def _classifier(channels: int) -> list[nn.Module]:
    return [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, CLASSES)]
