"""The held-out networks that searches are raced on, and their tasks."""

from __future__ import annotations

from costlib.hardware import Hardware
from costlib.space.design_space import DesignSpace
from costlib.workloads import extract_tasks
from costlib.workloads.task import Task

NETWORKS = ("bert_tiny", "mobilenet_v2", "bert_base", "resnet_50", "resnext_50")


def heaviest(network: str, hardware: Hardware, count: int) -> list[Task]:
    """Return the tunable tasks of a network with the most operations, each of weight 1."""
    return [task.times(1) for task in tunable(network, hardware)[:count]]


def tunable(network: str, hardware: Hardware) -> list[Task]:
    """Return the tasks of a network that there is something to decide about."""
    return [t for t in extract_tasks(network, hardware) if DesignSpace(t).is_tunable]
