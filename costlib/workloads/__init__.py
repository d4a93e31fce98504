"""Workloads: networks and single operators, and the weighted tasks they consist of.

- :mod:`~costlib.workloads.zoo`: networks by name; :mod:`~costlib.workloads.operators`:
  single operators by name and shape; :mod:`~costlib.workloads.importers`: files;
- :mod:`~costlib.workloads.inference`: the pipeline every network goes through;
- :mod:`~costlib.workloads.extraction`: its fused subgraphs, as tasks.
"""

from __future__ import annotations

from costlib.workloads.extraction import extract_tasks
from costlib.workloads.inference import prepare_network
from costlib.workloads.network import InputSpec, Network
from costlib.workloads.operators import list_operators
from costlib.workloads.sources import load_network
from costlib.workloads.task import Task, workload_id
from costlib.workloads.torch_reference import TorchReference
from costlib.workloads.zoo import HELD_OUT, list_networks

__all__ = [
    "HELD_OUT",
    "InputSpec",
    "Network",
    "Task",
    "TorchReference",
    "extract_tasks",
    "list_networks",
    "list_operators",
    "load_network",
    "prepare_network",
    "workload_id",
]
