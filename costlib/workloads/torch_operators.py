"""Operators that PyTorch declares only when a module of its own is imported."""

from __future__ import annotations

import importlib


def declare_quantised() -> None:
    """Declare the operators of quantised programs, without which none can be loaded or called."""
    importlib.import_module("torch.ao.quantization.fx._decomposed")
