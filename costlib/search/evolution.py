"""MetaSchedule's evolutionary search and gradient task scheduler, with costlib's parts."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from costlib.hardware import Hardware
from costlib.hub import Bundle
from costlib.measure.metaschedule import Runner
from costlib.search.cost_model import PretrainedCostModel
from costlib.search.result import CurvePoint, TuneProgress
from costlib.tvm_compat import ms
from costlib.tvm_compat.api import derived_object
from costlib.workloads.task import Task

_TRIALS_PER_ROUND = 8
"""Programs measured between two rounds of search, at most."""

_ROUNDS_PER_TASK = 2
"""Rounds that each task should get on average, if the budget allows."""


def search(
    tasks: Sequence[Task],
    trials: int,
    seed: int,
    bundle: Bundle,
    hardware: Hardware,
    builder: Any,
    database: Any,
    recorder: Any,
    folder: Path,
) -> None:
    """Measure ``trials`` programs of the tasks, each round where it promises most.

    Parameters
    ----------
    tasks
        What to tune.
    trials
        How many programs to measure in all.
    seed
        Seed of the search.
    bundle, hardware
        The cost model, and what it scores programs for.
    builder
        A :class:`costlib.measure.metaschedule.Builder`.
    database
        Where measured programs go.
    recorder
        A :class:`Recorder`, told of each trial.
    folder
        Where MetaSchedule writes its logs.
    """
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
        work_dir=str(folder),
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
class Recorder(ms.measure_callback.PyMeasureCallback):  # type: ignore[misc]
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
        """Take up a batch of results; MetaSchedule calls this after each round."""
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
