"""Layers of PyTorch that compute in integers of 8 bits."""

from __future__ import annotations

import torch
from torch import nn

from costlib.workloads.torch_operators import declare_quantised


class _Quantised(nn.Module):  # type: ignore[misc]
    """A product or convolution of 8-bit integers, as PyTorch's pt2e writes it.

    Parameters
    ----------
    layer
        The one in float32.
    low, high
        Between which its input lies.
    """

    def __init__(self, layer: nn.Conv2d | nn.Linear, low: float, high: float) -> None:
        super().__init__()
        self.scale = max(high - low, 1e-6) / 255
        self.zero = round(-low / self.scale)
        weight = layer.weight.detach()
        scales = weight.abs().flatten(1).amax(1) / 127
        codes = (weight / scales.view(-1, *[1] * (weight.ndim - 1))).round().to(torch.int8)
        self.register_buffer("codes", codes)
        self.register_buffer("scales", scales)
        self.register_buffer("zeros", torch.zeros(len(scales), dtype=torch.int64))
        self.bias = layer.bias
        self.window: tuple[object, ...] | None = None
        if isinstance(layer, nn.Conv2d):
            self.window = layer.stride, layer.padding, layer.dilation, layer.groups

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        known = torch.ops.quantized_decomposed
        step = self.scale, self.zero, 0, 255, torch.uint8
        x = known.dequantize_per_tensor(known.quantize_per_tensor(x, *step), *step)
        weight = known.dequantize_per_channel(
            self.codes, self.scales, self.zeros, 0, -127, 127, torch.int8
        )
        if self.window is None:
            return nn.functional.linear(x, weight, self.bias)
        return nn.functional.conv2d(x, weight, self.bias, *self.window)


def quantised(model: nn.Module, example: torch.Tensor) -> nn.Module:
    """Quantise the products and convolutions inside a model, by what they take for an example."""
    declare_quantised()
    ranges: dict[nn.Module, tuple[float, float]] = {}

    def note(layer: nn.Module, inputs: tuple[torch.Tensor]) -> None:
        ranges[layer] = min(0.0, float(inputs[0].min())), max(0.0, float(inputs[0].max()))

    layers = [layer for layer in model.modules() if isinstance(layer, (nn.Conv2d, nn.Linear))]
    hooks = [layer.register_forward_pre_hook(note) for layer in layers]
    with torch.no_grad():
        model(example)
    for hook in hooks:
        hook.remove()
    for parent in list(model.modules()):
        for name, layer in list(parent.named_children()):
            if layer in ranges:
                setattr(parent, name, _Quantised(layer, *ranges[layer]))
    return model
