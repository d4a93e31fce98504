"""What tasks take before they are tuned, and which of them are worth it."""

from __future__ import annotations

import math
from collections.abc import Sequence

from costlib.measure.measurer import Measurer
from costlib.workloads.task import Task

_NEGLIGIBLE = 5e-4
"""Tasks below this share of the untuned networks' time are left as they are."""


def untuned_latencies(tasks: Sequence[Task], measurer: Measurer) -> list[float | None]:
    """Return the latency of each unscheduled program in seconds; ``None`` if it does not run."""
    paths = [measurer.server.folder / f"untuned-{i}.so" for i in range(len(tasks))]
    builds = [
        measurer.build_job(t.mod, p, keep_layout=True) for t, p in zip(tasks, paths, strict=True)
    ]
    measurer.server.work(builds)
    return [
        measurer.run_library(path, task.arguments)[1]
        for task, path in zip(tasks, paths, strict=True)
    ]


def worth_tuning(tasks: Sequence[Task], before_s: Sequence[float | None]) -> list[int]:
    """Return the indices of the tasks that matter; one that does not run untuned does."""
    shares = [math.inf if s is None else s * t.weight for s, t in zip(before_s, tasks, strict=True)]
    total = sum(share for share in shares if share < math.inf)
    return [i for i, share in enumerate(shares) if share >= _NEGLIGIBLE * total]
