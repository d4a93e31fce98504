"""Which tasks find their weights in memory rather than in a cache when their network runs.

A network reads each of its weights once. If all of them together exceed the last cache, none is
left there by the next call. A program that is timed alone finds its weights where its last call
left them, and a search for the fastest one chooses those that make the most of it. Its calls
therefore take turns with copies of the weights, which exceed the cache as the network's do. What it
reads else was just written by the task before, and stays where it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from costlib.hardware import Hardware
from costlib.measure.config import ColdWeights, MeasureConfig
from costlib.schema import CacheState
from costlib.workloads.task import Task

_BEYOND_THE_CACHE = 2
"""How many times its size the copies of the weights are, so that nothing of them is left there."""

_LEAST_BYTES = 1 << 15
"""Weights that are fewer come from memory in less time than tells programs apart."""

_SHARE_OF_MEMORY = 0.25
"""Of what a run may take, for the copies."""


def as_called(
    tasks: Sequence[Task], network_bytes: Sequence[int], hardware: Hardware, config: MeasureConfig
) -> list[Task]:
    """Note with each task what it finds in the caches.

    Parameters
    ----------
    tasks
        The tasks.
    network_bytes
        Of each task, the size of all weights of its network.
    hardware
        What they run on.
    config
        Whether that is measured, and how much memory that may take.
    """
    if not config.cold_weights or hardware.kind != "cpu" or not hardware.cache_bytes:
        return list(tasks)
    cache_bytes = hardware.cache_bytes[-1]
    most = _SHARE_OF_MEMORY * config.memory_bytes - _BEYOND_THE_CACHE * cache_bytes
    return [
        replace(task, cache=CacheState.COLD_WEIGHTS)
        if nbytes > cache_bytes and _LEAST_BYTES <= task.weight_bytes <= most
        else task
        for task, nbytes in zip(tasks, network_bytes, strict=True)
    ]


def copies_of_weights(task: Task, hardware: Hardware) -> ColdWeights | None:
    """Return how a task's weights are kept out of the caches; ``None`` if they are not."""
    if task.cache is CacheState.WARM:
        return None
    nbytes = _BEYOND_THE_CACHE * hardware.cache_bytes[-1]
    return ColdWeights(arguments=task.weights, nbytes=nbytes)
