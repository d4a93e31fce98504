"""The networks of a tuning run, and the tasks that they share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from costlib.hardware import Hardware
from costlib.workloads import Network, load_network, prepare_network
from costlib.workloads.extraction import tasks_of
from costlib.workloads.task import Task


@dataclass(frozen=True)
class NetworkSet:
    """Networks that are tuned together.

    Attributes
    ----------
    networks, prepared
        The networks as imported, and as Relax modules that are ready to be compiled.
    tasks
        The tasks of all of them, each once; the weight is that of all networks together.
    calls
        int64 `networks x tasks`: how often a network calls a task.
    """

    networks: Sequence[Network]
    prepared: Sequence[Any]
    tasks: Sequence[Task]
    calls: np.ndarray[Any, np.dtype[np.int64]]

    @classmethod
    def load(cls, sources: Sequence[Any], hardware: Hardware) -> NetworkSet:
        """Import networks, see :func:`costlib.workloads.load_network`."""
        networks = [load_network(source) for source in sources]
        prepared = [prepare_network(network, hardware) for network in networks]
        extracted = [tasks_of(module, hardware.target) for module in prepared]
        distinct = {task.workload_id: task for tasks in extracted for task in tasks}
        calls = np.zeros((len(networks), len(distinct)), "int64")
        places = {workload_id: place for place, workload_id in enumerate(distinct)}
        for row, tasks in zip(calls, extracted, strict=True):
            for task in tasks:
                row[places[task.workload_id]] = task.weight
        weights = calls.sum(0).tolist()
        merged = [task.times(w) for task, w in zip(distinct.values(), weights, strict=True)]
        return cls(networks, prepared, merged, calls)

    def calls_of(self, task: int) -> dict[str, int]:
        """Return how often each network calls a task."""
        return {
            network.name: int(count)
            for network, count in zip(self.networks, self.calls[:, task], strict=True)
            if count
        }
