"""The PyTorch layers behind :mod:`costlib.workloads.operators`."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import nn

Arguments = Mapping[str, int]


def build_layer(name: str, arguments: Arguments) -> nn.Module:
    """Return the layer of an operator; the arguments are its extents and options."""
    if name in _FUNCTIONS:
        return _Function(_FUNCTIONS[name])
    layer = _LAYERS[name](arguments)
    relu = arguments.get("relu") or name == "conv2d_bias_relu"
    return nn.Sequential(layer, nn.ReLU()) if relu else layer


class _Function(nn.Module):  # type: ignore[misc]
    def __init__(self, function: Callable[..., torch.Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
        return self.function(*inputs)


_FUNCTIONS: dict[str, Callable[..., torch.Tensor]] = {
    "batch_matmul": torch.matmul,
    "gelu": nn.functional.gelu,
    "matmul": torch.matmul,
    "max": lambda x: x.amax(-1),
    "mean": lambda x: x.mean(-1),
    "softmax": lambda x: x.softmax(-1),
    "sum": lambda x: x.sum(-1),
    "transpose": lambda x: x.t().contiguous(),
}


def _conv(kind: type[nn.Module]) -> Callable[[Arguments], nn.Module]:
    return lambda a: kind(
        *(a[name] for name in ("C", "O", "K", "stride", "pad")),
        **{name: a.get(name, 1) for name in ("dilation", "groups")},
        bias=bool(a.get("bias", 1)),
    )


def _pool(kind: type[nn.Module]) -> Callable[[Arguments], nn.Module]:
    return lambda a: kind(a["K"], a["stride"], a["pad"])


_LAYERS: dict[str, Callable[[Arguments], nn.Module]] = {
    "avg_pool2d": _pool(nn.AvgPool2d),
    "conv1d": _conv(nn.Conv1d),
    "conv1d_transpose": _conv(nn.ConvTranspose1d),
    "conv2d": _conv(nn.Conv2d),
    "conv2d_bias_relu": _conv(nn.Conv2d),
    "conv2d_transpose": _conv(nn.ConvTranspose2d),
    "conv3d": _conv(nn.Conv3d),
    "dense": lambda a: nn.Linear(a["K"], a["N"], bias=bool(a["bias"])),
    "depthwise_conv2d": lambda a: _conv(nn.Conv2d)({**a, "O": a["C"], "groups": a["C"]}),
    "dilated_conv2d": _conv(nn.Conv2d),
    "grouped_conv2d": _conv(nn.Conv2d),
    "layer_norm": lambda a: nn.LayerNorm(a["N"]),
    "max_pool2d": _pool(nn.MaxPool2d),
}
