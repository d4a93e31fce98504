"""costlib: offline-trained cost models and transfer learning for Apache TVM.

The whole path in a few lines::

    import costlib

    bundle = costlib.load_pretrained("pretrained/cpu-gbdt")
    result = costlib.tune("bert_tiny", bundle=bundle, trials=64, out="runs/bert_tiny")

Everything is imported on first use, so ``import costlib`` itself costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_EXPORTS = {
    "CostlibError": "costlib.errors",
    "Dataset": "costlib.data.dataset",
    "Hardware": "costlib.hardware",
    "Task": "costlib.workloads.task",
    "collect": "costlib.collecting.collect",
    "extract_tasks": "costlib.workloads",
    "load_pretrained": "costlib.hub",
    "train": "costlib.hub.train",
    "tune": "costlib.tuning.tune",
}

__all__ = sorted([*_EXPORTS, "__version__"])

if TYPE_CHECKING:
    from costlib.collecting.collect import collect as collect
    from costlib.data.dataset import Dataset as Dataset
    from costlib.errors import CostlibError as CostlibError
    from costlib.hardware import Hardware as Hardware
    from costlib.hub import load_pretrained as load_pretrained
    from costlib.hub.train import train as train
    from costlib.tuning.tune import tune as tune
    from costlib.workloads import extract_tasks as extract_tasks
    from costlib.workloads.task import Task as Task


def __getattr__(name: str) -> Any:
    if name not in _EXPORTS:
        raise AttributeError(f"module 'costlib' has no attribute '{name}'")
    value = getattr(importlib.import_module(_EXPORTS[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__all__)
