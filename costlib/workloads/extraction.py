"""Tasks of a network: its fused subgraphs, each once, with how often it is called."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from costlib.hardware import Hardware
from costlib.tvm_compat import ms, nodes, tirx, tvm
from costlib.workloads.in_layouts import in_layouts
from costlib.workloads.layout_choice import Layouts
from costlib.workloads.sources import load_network
from costlib.workloads.task import Task

_UNIQUE_SUFFIX = re.compile(r"(\dd)?\d+(?=_|$)")
"""The digits that TVM appends to keep names apart, but not the "2d" of a "conv2d"."""


def extract_tasks(
    source: Any,
    hardware: Hardware | None = None,
    *,
    layouts: Layouts = "given",
    example_inputs: Sequence[Any] | Mapping[str, Any] | None = None,
) -> list[Task]:
    """List the tasks of a network.

    Parameters
    ----------
    source
        Whatever :func:`costlib.workloads.load_network` takes.
    hardware
        What to compile for; this machine by default.
    layouts
        In which layouts, see :func:`costlib.workloads.in_layouts.in_layouts`. ``"channels-last"``
        has the tasks that :func:`costlib.tune` tunes.
    example_inputs
        What a ``torch.nn.Module`` is called with.

    Returns
    -------
    list of Task
        Each workload once, with the number of times it is called; those that take most of
        the arithmetic first, one layout after the other. Subgraphs without any, such as a
        transpose, are included.
    """
    hardware = hardware or Hardware.local()
    network = load_network(source, example_inputs=example_inputs)
    found: dict[str, Task] = {}
    for version, prepared in in_layouts(network, hardware, layouts):
        for task in tasks_of(prepared, hardware.target):
            found.setdefault(task.workload_id, replace(task, source=version.name))
    return list(found.values())


def tasks_of(prepared: Any, target: dict[str, Any]) -> list[Task]:
    """List the tasks of a module that was prepared for a target, see :func:`extract_tasks`."""
    tasks: dict[str, Task] = {}
    for extracted in ms.relax_integration.extract_tasks(prepared, tvm.target.Target(target)):
        weight = int(extracted.weight)
        task = Task(_readable(extracted.task_name), extracted.dispatched[0], target, weight)
        known = tasks.get(task.workload_id)
        tasks[task.workload_id] = task if known is None else known.times(known.weight + weight)
    return sorted(tasks.values(), key=lambda task: (-task.weight * task.flops, task.workload_id))


def kernels_of(prepared: Any, target: dict[str, Any]) -> dict[str, Task]:
    """Name the task that each function of a prepared module is, if its extents are known."""
    found: dict[str, Task] = {}
    for variable, function in prepared.functions.items():
        if isinstance(function, tirx.PrimFunc) and _is_static(function):
            named = function.with_attr("global_symbol", "main").with_attr("tirx.noalias", True)
            mod = tvm.IRModule({"main": named})
            found[variable.name_hint] = Task(_readable(variable.name_hint), mod, target)
    return found


def _is_static(function: Any) -> bool:
    """Whether all that it takes are tensors whose extents are numbers."""
    shapes = [getattr(parameter.ty, "shape", None) for parameter in function.params]
    return all(
        shape is not None and all(isinstance(extent, nodes.IntImm) for extent in shape)
        for shape in shapes
    )


def _readable(name: str) -> str:
    """Turn ``fused_conv2d3_add4_relu21`` into ``conv2d_add_relu``."""
    return _UNIQUE_SUFFIX.sub(r"\1", str(name)).removeprefix("fused_")
