"""The programs of a network chosen where they run: in the network, not each alone.

A program is tuned by calling it again and again, with its weights in the nearest cache and what it
reads just where it was. In a network its weights come from memory, its input from the cache of
another core, and what it leaves behind is in the way of the next. So the best few programs of each
task are compiled into the network, a rank at a time, and each kernel is timed in its place.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from costlib.errors import InputError, MeasureError
from costlib.measure.measurer import Measurer
from costlib.scratch import ScratchFolder
from costlib.tuning.traces import Traced, quiet_s
from costlib.tuning.turns import Contestant, take_turns
from costlib.tvm_compat import ms
from costlib.workloads.task import Task

_RANKS = 4
"""So many programs of a task compete."""

_WITHIN = 1.3
"""A program that took so much longer than the best, alone, does not compete."""

_MARGIN = 0.97
"""Another program must take less than this share of what the best takes, in the network."""

_TURNS, _SECS = 4, 0.15
"""How often each rank's network is timed, and for how long, in turns."""

_MOST_DUEL_TURNS = 9

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Placed:
    """Programs that are faster in the network than those that are faster alone.

    Attributes
    ----------
    database
        A MetaSchedule database with the chosen program of each task.
    latency_s
        Seconds that a chosen program took alone, by the workload id of its task; those of tasks
        that keep their best are not in it.
    gain
        What the network took before, relative to what it takes with them, in turns.
    """

    database: Any
    latency_s: dict[str, float]
    gain: float


def place(
    database: Any,
    tasks: Sequence[Task],
    measurer: Measurer,
    build: Callable[[Any, Path], object],
) -> Placed | None:
    """Choose the programs of a network's tasks in the network.

    Parameters
    ----------
    database
        A MetaSchedule database with the best programs of each task.
    tasks
        The network's.
    measurer
        Runs it, on this machine.
    build
        Compiles the network with the best programs of a database, to a file.

    Returns
    -------
    Placed or None
        ``None`` if no other choice is faster than the best program of each task, or the compiled
        network does not tell, or does not run.
    """
    try:
        return _placed(database, tasks, measurer, build)
    except (InputError, MeasureError) as error:
        _log.info("programs are not chosen in the network: %s", error)
        return None


def _placed(
    database: Any,
    tasks: Sequence[Task],
    measurer: Measurer,
    build: Callable[[Any, Path], object],
) -> Placed | None:
    ranked = {task.workload_id: _records(database, task) for task in tasks}
    count = max(map(len, ranked.values()), default=0)
    if count < 2:
        return None
    with ScratchFolder() as folder:
        libraries = [folder / f"rank-{rank}.so" for rank in range(count)]
        for rank, library in enumerate(libraries):
            chosen = {key: records[min(rank, len(records) - 1)] for key, records in ranked.items()}
            build(_database(chosen.values()), library)
        networks = [Traced(library, measurer, folder) for library in libraries]
        taken_s = _task_seconds(networks)
        better = {}
        for key, records in ranked.items():
            seconds = [taken.get(key, math.inf) for taken in taken_s[: len(records)]]
            rank = int(np.argmin(seconds)) if seconds else 0
            if rank and seconds[rank] < _MARGIN * seconds[0]:
                better[key] = records[rank]
        if not better:
            return None
        best = {key: records[0] for key, records in ranked.items() if records}
        placed = _database((best | better).values())
        library = folder / "placed.so"
        build(placed, library)
        old, new = (
            Contestant(networks[0].plain),
            Contestant(Traced(library, measurer, folder).plain),
        )
        take_turns([old, new], _MOST_DUEL_TURNS)
        if new.latency_s >= old.latency_s:
            return None
    gain = old.latency_s / new.latency_s
    return Placed(placed, {key: _seconds(record) for key, record in better.items()}, gain)


def fastest_version(builds: Sequence[Callable[[Path], object]], measurer: Measurer) -> int:
    """Compile versions of a network, and run them in turns.

    Parameters
    ----------
    builds
        Each compiles a version to a file.
    measurer
        Runs them, on this machine.

    Returns
    -------
    int
        The fastest; the first if one of them does not run, or does not tell.
    """
    with ScratchFolder() as folder:
        libraries = [folder / f"version-{number}.so" for number in range(len(builds))]
        try:
            for build, library in zip(builds, libraries, strict=True):
                build(library)
            versions = [Contestant(Traced(one, measurer, folder).plain) for one in libraries]
            take_turns(versions, _MOST_DUEL_TURNS)
        except (InputError, MeasureError) as error:
            _log.info("the versions of a network are not timed: %s", error)
            return 0
    return int(np.argmin([one.latency_s for one in versions]))


def _records(database: Any, task: Task) -> list[Any]:
    """Return the best records of a task that took about the same, the fastest first."""
    found = list(database.get_top_k(database.commit_workload(task.mod), _RANKS))
    return [record for record in found if _seconds(record) <= _WITHIN * _seconds(found[0])]


def _seconds(record: Any) -> float:
    return float(np.mean([float(secs) for secs in record.run_secs]))


def _database(records: Any) -> Any:
    chosen = ms.database.MemoryDatabase()
    for record in records:
        chosen.commit_workload(record.workload.mod)
        chosen.commit_tuning_record(record)
    return chosen


def _task_seconds(networks: Sequence[Traced]) -> list[dict[str, float]]:
    """Time networks in turns; return what the calls of each task take together in each of them."""
    taken: list[dict[str, float]] = [{} for _ in networks]
    for _ in range(_TURNS):
        for network, best in zip(networks, taken, strict=True):
            _, times = network.traced(_SECS)
            sums: dict[str, float] = {}
            for kernel, seconds in zip(network.kernels, quiet_s(times), strict=False):
                sums[kernel.workload_id] = sums.get(kernel.workload_id, 0.0) + float(seconds)
            for key, seconds in sums.items():
                best[key] = min(best.get(key, math.inf), seconds)
    return taken
