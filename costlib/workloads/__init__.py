"""Workloads: networks and single operators, and the weighted tasks they consist of.

- :mod:`~costlib.workloads.zoo`: networks by name; :mod:`~costlib.workloads.operators`:
  single operators by name and shape; :mod:`~costlib.workloads.importers`: files;
- :mod:`~costlib.workloads.inference`: the pipeline every network goes through;
- :mod:`~costlib.workloads.extraction`: its fused subgraphs, as tasks.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from costlib.hardware import Hardware
from costlib.workloads.extraction import tasks_of
from costlib.workloads.inference import prepare
from costlib.workloads.network import InputSpec, Network, TorchReference
from costlib.workloads.operators import list_operators
from costlib.workloads.sources import load_network
from costlib.workloads.task import Task, workload_id
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


def prepare_network(network: Network, hardware: Hardware | None = None) -> Any:
    """Run the inference pipeline on a network.

    Parameters
    ----------
    network
        What :func:`load_network` returns.
    hardware
        What to prepare it for; this machine by default.

    Returns
    -------
    IRModule
        Its functions are those of the tasks that :func:`extract_tasks` lists: what was
        tuned for them can be applied to it and compiled.
    """
    return prepare(network.mod, (hardware or Hardware.local()).target)


def extract_tasks(source: Any, hardware: Hardware | None = None) -> list[Task]:
    """List the tasks of a network.

    Parameters
    ----------
    source
        Whatever :func:`load_network` takes, or a :class:`Network`.
    hardware
        What to compile for; this machine by default.

    Returns
    -------
    list of Task
        Each workload once, with the number of times it is called; those that take most of
        the arithmetic first. Subgraphs without any, such as a transpose, are included.
    """
    hardware = hardware or Hardware.local()
    network = load_network(source)
    tasks = tasks_of(prepare_network(network, hardware), hardware.target)
    return [replace(task, source=network.name) for task in tasks]
