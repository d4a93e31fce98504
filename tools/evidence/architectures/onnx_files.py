"""ONNX models: some of the others, exported by PyTorch, each in another opset."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch import nn
from torch.utils._pytree import tree_leaves

from tools.evidence.architectures.architecture import Architecture, Example

EXPORTED = {
    "torchvision.resnet18": 7,
    "torchvision.squeezenet1_1": 8,
    "torchvision.shufflenet_v2_x0_5": 9,
    "torchvision.mobilenet_v2": 10,
    "torchvision.mnasnet0_5": 11,
    "torchvision.lraspp_mobilenet_v3_large": 11,
    "torchvision.densenet121": 12,
    "torchvision.fcn_resnet50": 12,
    "transformers.XLMModel": 13,
    "transformers.ElectraModel": 14,
    "transformers.OpenAIGPTLMHeadModel": 14,
    "transformers.XLNetModel": 15,
    "transformers.T5Model": 15,
    "timm.convnext_atto": 16,
    "timm.mobilenetv3_small_050": 16,
    "timm.vit_tiny_patch16_224": 17,
    "transformers.CLIPTextModel": 17,
    "transformers.SegformerForSemanticSegmentation": 17,
    "diffusers.UNet2DModel": 18,
    "timm.swin_tiny_patch4_window7_224": 18,
    "transformers.Wav2Vec2Model": 18,
    "transformers.HubertModel": 20,
}
"""Opsets, by the name of what is exported."""


class Flat(nn.Module):
    """A model that takes tensors in order and returns them so."""

    def __init__(self, module: Any, names: Sequence[str], constants: Mapping[str, Any]) -> None:
        super().__init__()
        self.module = module
        self.names = names
        self.constants = constants

    def forward(self, *tensors: Any) -> Any:
        """Return the tensors among the results."""
        named = dict(zip(self.names, tensors, strict=False))
        args = tensors[len(named) :]
        found = self.module(*args, **named, **self.constants)
        return tuple(x for x in tree_leaves(found) if isinstance(x, torch.Tensor))


def _example(original: Architecture, opset: int) -> Example:
    import onnx

    module, inputs = original.make()
    named = inputs if isinstance(inputs, dict) else {}
    tensors = {key: value for key, value in named.items() if isinstance(value, torch.Tensor)}
    constants = {key: value for key, value in named.items() if key not in tensors}
    args = tuple(tensors.values()) if named else tuple(inputs or ())
    file = io.BytesIO()
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        flat = Flat(module.eval(), list(tensors), constants)
        torch.onnx.export(flat, args, file, opset_version=opset, dynamo=False)
    return Example(onnx.load_from_string(file.getvalue()))


def exported(others: Iterable[Architecture]) -> Iterable[Architecture]:
    """Name the ONNX models, given the others."""
    by_name = {found.name: found for found in others}
    for name, opset in EXPORTED.items():
        make = partial(_example, by_name[name], opset)
        yield Architecture("onnx", f"{by_name[name].model}, opset {opset}", "ONNX", make)
