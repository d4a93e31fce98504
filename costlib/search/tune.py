"""The whole path: from a network to a faster program with a pretrained cost model."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict

from costlib.data.parts import storage_errors
from costlib.errors import InputError
from costlib.hardware import Hardware
from costlib.hub import Bundle, load_pretrained
from costlib.measure.config import MeasureConfig
from costlib.measure.metaschedule import Builder, Runner
from costlib.search.comparison import Comparison, compare
from costlib.search.compiled import CompiledNetwork
from costlib.search.cost_model import PretrainedCostModel
from costlib.search.database import open_database
from costlib.tvm_compat import ms
from costlib.tvm_compat.api import commit_program, derived_object
from costlib.workloads import load_network, prepare_network
from costlib.workloads.extraction import tasks_of
from costlib.workloads.task import Task

LIBRARY = "network.so"
RESULT = "result.json"

_TRIALS_PER_ROUND = 8
"""Programs measured between two rounds of search, at most."""

_ROUNDS_PER_TASK = 2
"""Rounds that each task should get on average, if the budget allows."""


_NEGLIGIBLE = 5e-4
"""Tasks below this share of the untuned network's time are left as they are."""


class TaskResult(BaseModel):
    """What tuning did for one task.

    Attributes
    ----------
    latency_before_s, latency_after_s
        Seconds of one call, untuned and with the best program found; ``None`` if it did not run
        or was not tuned.
    """

    model_config = ConfigDict(frozen=True)

    name: str
    workload_id: str
    weight: int
    flops: float
    trials: int
    latency_before_s: float | None
    latency_after_s: float | None

    @property
    def gflops_per_s(self) -> float | None:
        """Throughput of the best program."""
        return self.flops / self.latency_after_s / 1e9 if self.latency_after_s else None


class CurvePoint(BaseModel):
    """One trial of a tuning run.

    Attributes
    ----------
    elapsed_s
        Seconds since the run began.
    task
        Index into the result's tasks.
    latency_s
        What was measured; ``None`` if the program failed.
    """

    model_config = ConfigDict(frozen=True)

    elapsed_s: float
    task: int
    latency_s: float | None


class TuneResult(Comparison):
    """What a tuning run found, with the whole-network figures of :class:`Comparison`.

    Attributes
    ----------
    trials
        Programs measured.
    elapsed_s
        Seconds that everything took.
    tasks, curve
        What was done for each task, and each trial in order.
    library
        The compiled network.
    """

    network: str
    bundle: str
    hardware_id: str
    seed: int
    trials: int
    elapsed_s: float
    tasks: tuple[TaskResult, ...]
    curve: tuple[CurvePoint, ...]
    library: str


@dataclass
class TuneProgress:
    """Where a tuning run stands; the same object is updated all along.

    Attributes
    ----------
    stage
        What is being done, in words.
    tasks
        The network's tasks.
    trials, total
        Programs measured, and to be measured.
    best_s
        Best latency of each task so far, in seconds; ``None`` if nothing ran yet.
    task_trials
        Programs measured of each task.
    elapsed_s
        Seconds since the run began.
    """

    stage: str
    total: int
    tasks: Sequence[Task] = ()
    trials: int = 0
    best_s: list[float | None] = field(default_factory=list)
    task_trials: list[int] = field(default_factory=list)
    elapsed_s: float = 0.0


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
    bundle = bundle if isinstance(bundle, Bundle) else load_pretrained(bundle or "cpu-gbdt")
    database = open_database(out)
    report("importing the network")
    network = load_network(source)
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
        recorder = _Recorder(progress, chosen, started, report)
        worthwhile = [tasks[i] for i in chosen]
        _search(worthwhile, trials, seed, bundle, hardware, builder, database, recorder, out)
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


def _search(
    tasks: Sequence[Task],
    trials: int,
    seed: int,
    bundle: Bundle,
    hardware: Hardware,
    builder: Any,
    database: Any,
    recorder: Any,
    out: Path,
) -> None:
    """MetaSchedule's evolutionary search and gradient task scheduler, with our parts."""
    per_round = max(1, min(_TRIALS_PER_ROUND, trials // (_ROUNDS_PER_TASK * len(tasks))))
    seeds = np.random.default_rng(seed).integers(1, 2**31 - 1, len(tasks) + 1)
    contexts = [
        ms.TuneContext(
            mod=task.mod,
            target=task.tvm_target(),
            space_generator="post-order-apply",
            search_strategy=ms.search_strategy.EvolutionarySearch(
                population_size=128, genetic_num_iters=3
            ),
            task_name=task.name,
            rand_state=int(task_seed),
            num_threads=os.cpu_count() or 1,
        ).clone()
        for task, task_seed in zip(tasks, seeds[1:], strict=True)
    ]
    ms.tune_tasks(
        tasks=contexts,
        task_weights=[float(task.weight) for task in tasks],
        work_dir=str(out),
        max_trials_global=trials,
        num_trials_per_iter=per_round,
        builder=builder,
        runner=Runner(builder),
        database=database,
        cost_model=PretrainedCostModel(bundle, hardware),
        measure_callbacks=[
            ms.measure_callback.AddToDatabase(),
            ms.measure_callback.UpdateCostModel(),
            recorder,
            ms.measure_callback.RemoveBuildArtifact(),
        ],
        task_scheduler=ms.task_scheduler.GradientBased(seed=int(seeds[0])),
    )


@derived_object
class _Recorder(ms.measure_callback.PyMeasureCallback):  # type: ignore[misc]
    """Notes each trial for the curve and the progress display."""

    def __init__(
        self,
        progress: TuneProgress,
        chosen: Sequence[int],
        started: float,
        report: Callable[[str], None],
    ) -> None:
        super().__init__()
        self.curve: list[CurvePoint] = []
        self._chosen = chosen
        self._progress = progress
        self._started = started
        self._report = report

    def apply(
        self,
        task_scheduler: Any,
        task_id: int,
        measure_candidates: list[Any],
        builder_results: list[Any],
        runner_results: list[Any],
    ) -> None:
        progress = self._progress
        task_id = self._chosen[task_id]
        for result in runner_results:
            failed = result.run_secs is None
            latency_s = None if failed else float(np.mean([float(s) for s in result.run_secs]))
            elapsed_s = time.monotonic() - self._started
            self.curve.append(CurvePoint(elapsed_s=elapsed_s, task=task_id, latency_s=latency_s))
            if latency_s is not None:
                progress.best_s[task_id] = min(progress.best_s[task_id] or latency_s, latency_s)
        progress.trials += len(runner_results)
        progress.task_trials[task_id] += len(runner_results)
        self._report("tuning")


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
