"""Architectures of neural networks, small and with random weights."""

from __future__ import annotations

from tools.evidence.architectures import (
    caches,
    dense,
    diffusion,
    language,
    onnx_files,
    sound,
    vision,
)
from tools.evidence.architectures.architecture import Architecture

_MODULES = (language, caches, vision, dense, sound, diffusion)
_TORCH = tuple(found for module in _MODULES for found in module.ARCHITECTURES)

ARCHITECTURES: tuple[Architecture, ...] = (*_TORCH, *onnx_files.exported(_TORCH))
"""All of them; names are unique."""
