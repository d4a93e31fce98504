"""Tasks of a network: its fused subgraphs, each once, with how often it is called."""

from __future__ import annotations

import re
from typing import Any

from costlib.tvm_compat import ms, tvm
from costlib.workloads.task import Task

_UNIQUE_SUFFIX = re.compile(r"(\dd)?\d+(?=_|$)")
"""The digits that TVM appends to keep names apart, but not the "2d" of a "conv2d"."""


def tasks_of(prepared: Any, target: dict[str, Any]) -> list[Task]:
    """List the tasks of a module from :func:`~costlib.workloads.inference.prepare`.

    Parameters
    ----------
    prepared
        The module.
    target
        The target it was prepared for, as a dictionary.

    Returns
    -------
    list of Task
        Those that take most of the arithmetic first; each workload once.
    """
    tasks: dict[str, Task] = {}
    for extracted in ms.relax_integration.extract_tasks(prepared, tvm.target.Target(target)):
        weight = int(extracted.weight)
        task = Task(_readable(extracted.task_name), extracted.dispatched[0], target, weight)
        known = tasks.get(task.workload_id)
        tasks[task.workload_id] = task if known is None else known.times(known.weight + weight)
    return sorted(tasks.values(), key=lambda task: (-task.weight * task.flops, task.workload_id))


def _readable(name: str) -> str:
    """Turn ``fused_conv2d3_add4_relu21`` into ``conv2d_add_relu``."""
    return _UNIQUE_SUFFIX.sub(r"\1", str(name)).removeprefix("fused_")
