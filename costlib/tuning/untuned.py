"""What tasks take before they are tuned, and which of them are worth it."""

from __future__ import annotations

import math
from collections.abc import Sequence

from costlib.hardware import Hardware
from costlib.measure.known_good import check_machine
from costlib.measure.measurer import Measurer
from costlib.tvm_compat.networks import scheduled_by_default
from costlib.workloads.task import Task

_OPERATIONS_PER_LANE_S = 8e9
"""Of a tuned program: two fused multiply-adds in each lane, at 2 GHz."""

_GLANCED_AT_S = 2e-3
"""What takes much longer is called once or twice: tuning will make it many times faster anyway."""


def untuned_latencies(tasks: Sequence[Task], measurer: Measurer) -> list[float | None]:
    """Return the latency of each untuned program in seconds; ``None`` if it does not run.

    That is the unscheduled one; on a GPU, where that cannot run, one that TVM schedules by default.

    Raises
    ------
    MeasureError
        The machine is at fault for what does not run.
    """
    paths = [measurer.server.folder / f"untuned-{i}.so" for i in range(len(tasks))]
    builds = [
        measurer.build_job(
            scheduled_by_default(task.mod, task.tvm_target()), path, keep_layout=True
        )
        for task, path in zip(tasks, paths, strict=True)
    ]
    measurer.server.work(builds)
    latencies_s = [
        measurer.run_program(task, None, path, task.arguments, _GLANCED_AT_S)[1]
        for task, path in zip(tasks, paths, strict=True)
    ]
    if None in latencies_s:
        check_machine(measurer)
    return latencies_s


def worth_tuning(
    tasks: Sequence[Task], before_s: Sequence[float | None], hardware: Hardware, trials: int
) -> list[int]:
    """Return the indices of the tasks that deserve one of the trials.

    These are the tasks whose share of the time is at least ``1 / trials``: of the time that is left
    when whatever computes a lot runs as fast as the hardware allows. What an untuned network takes
    says little: its matrix products may be hundreds of times slower than tuned, and a softmax that
    is lost beside them is a tenth of the tuned network. A task that does not run untuned counts.
    """
    peak = _OPERATIONS_PER_LANE_S * max(hardware.num_cores, 1) * max(hardware.vector_bits / 32, 1)
    taken_s = [
        math.inf if s is None else t.weight * s for t, s in zip(tasks, before_s, strict=True)
    ]
    expected_s = sum(min(s, t.weight * t.flops / peak) for t, s in zip(tasks, taken_s, strict=True))
    return [i for i, s in enumerate(taken_s) if s * trials >= expected_s]
