"""Kernels of oneDNN in the place of tuned programs, where they are measured to be faster."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from costlib.errors import InputError
from costlib.hardware import Hardware
from costlib.measure.config import CheckJob
from costlib.measure.measurer import Measurer
from costlib.space.onednn import by_onednn
from costlib.tuning.turns import Contestant, take_turns
from costlib.tvm_compat.api import entry_argument_shapes
from costlib.tvm_compat.onednn import find_onednn
from costlib.workloads.task import Task

Vendor = Literal["onednn"]

_LEAST_GAIN = 1.03
"""How many times as fast it must be: a library that a network needs has a price."""

_MOST_TURNS = 7

_log = logging.getLogger(__name__)


class VendorProgram(NamedTuple):
    """A program that calls oneDNN.

    Attributes
    ----------
    function
        It takes and returns what its task's does.
    latency_s
        Seconds of a call.
    """

    function: Any
    latency_s: float


def check_vendor(vendor: Vendor | None, hardware: Hardware, *, is_here: bool) -> None:
    """Raise :class:`InputError` if kernels of a vendor are asked for that cannot be measured."""
    if vendor is None:
        return
    if hardware.kind != "cpu" or hardware.is_simulated or not is_here:
        raise InputError("oneDNN is measured on this machine's CPU alone; leave out --vendor")
    find_onednn()


def faster_by_onednn(
    tasks: Sequence[Task], latency_s: Sequence[float], database: Any, measurer: Measurer
) -> dict[str, VendorProgram]:
    """Let oneDNN compute products, and take turns with the best programs that were found.

    Parameters
    ----------
    tasks, latency_s
        All tasks, and the best seconds of each.
    database
        The best programs.
    measurer
        Times both, on this machine.

    Returns
    -------
    dict
        Programs that are faster, by the workload ids of their tasks.
    """
    found = {}
    for task, known_s in zip(tasks, latency_s, strict=True):
        mod = by_onednn(task.mod, measurer.hardware.num_cores)
        if mod is None or not math.isfinite(known_s):
            continue
        sides = [_tuned(task, database, measurer), _called(task, mod, measurer)]
        if None in sides:
            continue
        tuned, called = (Contestant(run) for run in sides if run is not None)
        take_turns([tuned, called], _MOST_TURNS)
        _log.info("%s: %g s, by oneDNN %g s", task.title, tuned.latency_s, called.latency_s)
        if tuned.latency_s >= _LEAST_GAIN * called.latency_s:
            found[task.workload_id] = VendorProgram(
                mod["main"].without_attr("global_symbol"), called.latency_s
            )
    return found


def with_vendor(
    prepared: Any, kernels: Mapping[str, Task], programs: Mapping[str, VendorProgram]
) -> Any:
    """Put programs in the places of those functions of a network that compute their tasks."""
    result = prepared.clone() if programs else prepared
    for name, task in kernels.items():
        if task.workload_id in programs:
            result.update_func(prepared.get_global_var(name), programs[task.workload_id].function)
    return result


def _tuned(task: Task, database: Any, measurer: Measurer) -> Callable[[float], float] | None:
    schedule = database.query_schedule(task.mod, task.tvm_target(), task.name)
    if schedule is None:
        return _called(task, task.mod, measurer)
    path = measurer.server.folder / f"tuned-{task.workload_id}.so"
    (build,) = measurer.server.work([measurer.build_job(schedule.mod, path)])
    if build.error is not None:
        return None
    arguments = entry_argument_shapes(schedule.mod)
    return lambda _: measurer.run_program(task, None, path, arguments)[1] or math.inf


def _called(task: Task, mod: Any, measurer: Measurer) -> Callable[[float], float] | None:
    """Build a program with the arguments of its task; ``None`` unless it computes the same."""
    reference = measurer.server.folder / f"reference-{task.workload_id}.so"
    path = measurer.server.folder / f"vendor-{task.workload_id}.so"
    jobs = [
        measurer.build_job(built, place, keep_layout=True)
        for built, place in ((mod, path), (task.mod, reference))
    ]
    check = CheckJob(
        path=str(path),
        reference_path=str(reference),
        arguments=task.arguments,
        timeout_secs=measurer.config.run_timeout_secs + measurer.config.build_timeout_secs,
        memory_bytes=measurer.config.memory_bytes,
    )
    errors = [outcome.error for outcome in measurer.server.work(jobs)]
    if errors == [None, None]:
        errors = [measurer.run_job(check).error]
    if errors != [None] * len(errors):
        _log.info("%s by oneDNN: %s", task.title, next(filter(None, errors)))
        return None
    return lambda _: measurer.run_program(task, None, path, task.arguments)[1] or math.inf
