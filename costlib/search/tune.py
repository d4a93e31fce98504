"""The whole path: from a network to a faster program with a pretrained cost model."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from costlib.data.parts import storage_errors
from costlib.errors import InputError
from costlib.hardware import Hardware
from costlib.hub import Bundle, load_pretrained
from costlib.hub.catalog import DEFAULT_BUNDLE
from costlib.measure.config import MeasureConfig
from costlib.measure.metaschedule import Builder
from costlib.search.comparison import compare
from costlib.search.compiled import CompiledNetwork
from costlib.search.database import open_database
from costlib.search.evolution import Recorder, search
from costlib.search.result import TaskResult, TuneProgress, TuneResult
from costlib.tvm_compat.api import commit_program
from costlib.workloads import load_network, prepare_network
from costlib.workloads.extraction import tasks_of
from costlib.workloads.task import Task

LIBRARY = "network.so"
RESULT = "result.json"

_NEGLIGIBLE = 5e-4
"""Tasks below this share of the untuned network's time are left as they are."""


OnProgress = Callable[[TuneProgress], None]


def tune(
    source: Any,
    *,
    out: str | Path,
    trials: int = 64,
    bundle: Bundle | str | Path | None = None,
    hardware: Hardware | None = None,
    seed: int = 0,
    config: MeasureConfig | None = None,
    on_progress: OnProgress | None = None,
) -> TuneResult:
    """Tune a network with a pretrained cost model, compile it and compare it with PyTorch.

    Parameters
    ----------
    source
        A zoo name, an operator, a file or a module; see :func:`costlib.workloads.load_network`.
    out
        The run's folder: a MetaSchedule database, the compiled network, the result. A database
        that is there already is made use of and added to.
    trials
        How many programs to measure.
    bundle
        The bundle, its name or its folder; the default one if not given.
    hardware
        What to tune for; this machine's CPU if not given.
    seed
        Seed of the search.
    config
        Repeats, limits and racing.
    on_progress
        Called whenever there is something new to show.
    """
    if trials < 1:
        raise InputError(f"trials is {trials}; it must be at least 1")
    started = time.monotonic()
    progress = TuneProgress("loading", trials)

    def report(stage: str) -> None:
        progress.stage = stage
        progress.elapsed_s = time.monotonic() - started
        if on_progress is not None:
            on_progress(progress)

    out = Path(out)
    hardware = hardware or Hardware.local()
    bundle = bundle if isinstance(bundle, Bundle) else load_pretrained(bundle or DEFAULT_BUNDLE)
    report("importing the network")
    network = load_network(source)
    database = open_database(out)
    prepared = prepare_network(network, hardware)
    tasks = tasks_of(prepared, hardware.target)
    progress.tasks = tasks
    progress.best_s = [None] * len(tasks)
    progress.task_trials = [0] * len(tasks)
    report("starting the measuring process")
    builder = Builder(hardware, config, bundle.canary(hardware.hardware_id))
    with builder.measurer as measurer:
        before_s = _untuned_latencies(tasks, measurer)
        _commit_untuned(tasks, before_s, database)
        chosen = _worth_tuning(tasks, before_s)
        report("tuning")
        recorder = Recorder(progress, chosen, started, report)
        worthwhile = [tasks[i] for i in chosen]
        search(worthwhile, trials, seed, bundle, hardware, builder, database, recorder, out)
        report("compiling")
        untuned = measurer.server.folder / "untuned-network.so"
        CompiledNetwork.build(prepared, hardware).save(untuned)
        CompiledNetwork.build(prepared, hardware, database).save(out / LIBRARY)
        report("comparing with PyTorch")
        comparison = compare(network, untuned, out / LIBRARY, measurer.server, seed)
    result = TuneResult(
        network=network.name,
        bundle=bundle.name,
        hardware_id=hardware.hardware_id,
        seed=seed,
        trials=progress.trials,
        elapsed_s=time.monotonic() - started,
        tasks=tuple(_task_results(progress, before_s)),
        curve=tuple(recorder.curve),
        library=str(out / LIBRARY),
        **comparison.model_dump(),
    )
    with storage_errors(out):
        (out / RESULT).write_text(result.model_dump_json(indent=2) + "\n")
    report("done")
    return result


def _untuned_latencies(tasks: Sequence[Task], measurer: Any) -> list[float | None]:
    """Latency of each unscheduled program, in seconds; ``None`` if it does not run."""
    paths = [measurer.server.folder / f"untuned-{i}.so" for i in range(len(tasks))]
    builds = [
        measurer.build_job(t.mod, p, keep_layout=True) for t, p in zip(tasks, paths, strict=True)
    ]
    measurer.server.work(builds)
    return [
        measurer.run_library(path, task.arguments)[1]
        for task, path in zip(tasks, paths, strict=True)
    ]


def _commit_untuned(tasks: Sequence[Task], before_s: Sequence[float | None], database: Any) -> None:
    """Let each program as it is compete: for a tiny task it may be the fastest."""
    for task, latency_s in zip(tasks, before_s, strict=True):
        if latency_s is not None:
            commit_program(database, task.mod, task.tvm_target(), latency_s)


def _worth_tuning(tasks: Sequence[Task], before_s: Sequence[float | None]) -> list[int]:
    """Indices of the tasks that matter; one that could not be run untuned does."""
    shares = [math.inf if s is None else s * t.weight for s, t in zip(before_s, tasks, strict=True)]
    total = sum(share for share in shares if share < math.inf)
    return [i for i, share in enumerate(shares) if share >= _NEGLIGIBLE * total]


def _task_results(progress: TuneProgress, before_s: Sequence[float | None]) -> Sequence[TaskResult]:
    return [
        TaskResult(
            name=task.name,
            workload_id=task.workload_id,
            weight=task.weight,
            flops=task.flops,
            trials=trials,
            latency_before_s=before,
            latency_after_s=after,
        )
        for task, trials, before, after in zip(
            progress.tasks, progress.task_trials, before_s, progress.best_s, strict=True
        )
    ]
