"""Workloads: networks and single operators, and the weighted tasks they consist of.

- :mod:`~costlib.workloads.zoo`: networks by name; :mod:`~costlib.workloads.operators`:
  single operators by name and shape; :mod:`~costlib.workloads.importers`: files;
- :mod:`~costlib.workloads.inference`: the pipeline every network goes through;
- :mod:`~costlib.workloads.extraction`: its fused subgraphs, as tasks.

What tasks are called is known without TVM, so names are looked up here when first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from costlib.workloads.extraction import extract_tasks as extract_tasks
    from costlib.workloads.inference import prepare_network as prepare_network
    from costlib.workloads.network import InputSpec as InputSpec
    from costlib.workloads.network import Network as Network
    from costlib.workloads.operators import list_operators as list_operators
    from costlib.workloads.sources import load_network as load_network
    from costlib.workloads.task import Task as Task
    from costlib.workloads.task import workload_id as workload_id
    from costlib.workloads.torch_reference import TorchReference as TorchReference
    from costlib.workloads.zoo import HELD_OUT as HELD_OUT
    from costlib.workloads.zoo import list_networks as list_networks

_EXPORTS = {
    "HELD_OUT": "costlib.workloads.zoo",
    "InputSpec": "costlib.workloads.network",
    "Network": "costlib.workloads.network",
    "Task": "costlib.workloads.task",
    "TorchReference": "costlib.workloads.torch_reference",
    "extract_tasks": "costlib.workloads.extraction",
    "list_networks": "costlib.workloads.zoo",
    "list_operators": "costlib.workloads.operators",
    "load_network": "costlib.workloads.sources",
    "prepare_network": "costlib.workloads.inference",
    "workload_id": "costlib.workloads.task",
}

__all__ = sorted(_EXPORTS)


def __getattr__(name: str) -> Any:
    if name not in _EXPORTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_EXPORTS[name]), name)
