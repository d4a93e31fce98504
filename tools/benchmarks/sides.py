"""The two sides of most races (:mod:`tools.benchmarks.race`): stock MetaSchedule and costlib."""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

import numpy as np

from costlib.hardware import Hardware
from costlib.hub.bundle import Bundle
from costlib.hub.priors import PriorBank
from costlib.measure.measurer import Measurer
from costlib.metaschedule import Builder, Runner
from costlib.search.config import SearchConfig
from costlib.search.strategy import Strategy
from costlib.search.tasks.scheduler import TaskScheduler
from costlib.tuning.run import Batch, TuningRun
from costlib.tuning.trials import Trials
from costlib.tvm_compat import ms
from costlib.tvm_compat.api import derived_object
from costlib.workloads.task import Task
from tools.benchmarks.race import Arm, Turns
from tools.evidence.protocol import STOCK_BATCH


def stock(tasks: Sequence[Task], trials: int, per_task: int, seed: int, measurer: Measurer) -> Arm:
    """MetaSchedule as it comes: evolutionary search, ``XGBModel``, gradient task scheduler."""
    if find_spec("xgboost") is None:  # Before anything is measured.
        sys.exit("stock's cost model is missing: pip install -e '.[bench]'")

    def run(arm: Arm, turns: Turns) -> None:
        builder = Builder(measurer=cast("Measurer", _Timed(measurer, arm)))
        seeds = np.random.default_rng(seed).integers(1, 2**31 - 1, len(tasks) + 1)
        np.random.seed(seed)  # Until it has learnt enough XGBModel predicts from here.
        contexts = [
            ms.TuneContext(
                mod=task.mod,
                target=task.tvm_target(),
                space_generator="post-order-apply",
                search_strategy="evolutionary",
                task_name=task.name,
                rand_state=int(number),
                num_threads=measurer.hardware.num_cores,
            ).clone()
            for task, number in zip(tasks, seeds[1:], strict=True)
        ]
        with tempfile.TemporaryDirectory() as folder:
            ms.tune_tasks(
                tasks=contexts,
                task_weights=[float(task.weight) for task in tasks],
                work_dir=folder,
                max_trials_global=trials,
                max_trials_per_task=per_task,
                num_trials_per_iter=min(STOCK_BATCH, per_task),
                builder=builder,
                runner=Runner(builder),
                database="memory",
                cost_model="xgb",
                measure_callbacks=[
                    _TakesTurns(arm, turns),
                    ms.measure_callback.AddToDatabase(),
                    ms.measure_callback.UpdateCostModel(),
                    ms.measure_callback.RemoveBuildArtifact(),
                ],
                task_scheduler=ms.task_scheduler.GradientBased(seed=int(seeds[0])),
            )

    return Arm("stock", run)


def ours(
    name: str,
    tasks: Sequence[Task],
    trials: int,
    seed: int,
    measurer: Measurer,
    bundle: Bundle | None,
    config: SearchConfig,
    *,
    memory: PriorBank | None = None,
    keep: Callable[[Sequence[Strategy]], None] | None = None,
) -> Arm:
    """costlib's search, in a folder that is thrown away; ``keep`` is told of its end."""

    def run(arm: Arm, turns: Turns) -> None:
        scheduler = TaskScheduler(
            np.array([[float(task.weight) for task in tasks]]),
            flops=[task.flops for task in tasks],
            similar=[task.name for task in tasks],
        )

        def on_batch(batch: Batch) -> None:
            arm.measure_s += batch.measure_s
            arm.note(
                batch.task,
                [m.latency_s for m in batch.measurements],
                [p.candidate.schedule for p in batch.proposals],
                [m.program for m in batch.measurements],
            )
            arm.end(turns)
            arm.begin(turns)

        with tempfile.TemporaryDirectory() as folder:
            tuning = TuningRun(
                tasks,
                scheduler,
                measurer.hardware,
                measurer,
                Trials(Path(folder), measurer.hardware, seed),
                bundle=bundle,
                config=config,
                seed=seed,
                memory=memory,
            )
            tuning.run(trials, on_batch=on_batch)
            if keep is not None:
                keep(tuning.searches)

    settings = config.model_dump(mode="json", exclude_defaults=True)
    return Arm(name, run, settings if bundle else settings | {"bundle": "none"})


@derived_object
class _TakesTurns(ms.measure_callback.PyMeasureCallback):  # type: ignore[misc]
    """Notes a batch, lets the others work, and goes on when it is this arm's turn again."""

    def __init__(self, arm: Arm, turns: Turns) -> None:
        super().__init__()
        self._arm = arm
        self._turns = turns

    def apply(
        self,
        task_scheduler: Any,
        task_id: int,
        measure_candidates: list[Any],
        builder_results: list[Any],
        runner_results: list[Any],
    ) -> None:
        """Take up a batch of results."""
        latencies = [
            None if r.run_secs is None else float(np.mean([float(s) for s in r.run_secs]))
            for r in runner_results
        ]
        self._arm.note(task_id, latencies, [one.sch for one in measure_candidates])
        self._arm.end(self._turns)
        self._arm.begin(self._turns)


class _Timed:
    """A measurer that adds what it takes to an arm's account."""

    def __init__(self, measurer: Measurer, arm: Arm) -> None:
        self.hardware: Hardware = measurer.hardware
        self.server = _TimedServer(measurer.server, arm)
        self._measurer = measurer
        self._arm = arm
        self.build_job = measurer.build_job

    def run_library(self, *arguments: Any) -> Any:
        """Run a library."""
        started = time.perf_counter()
        result = self._measurer.run_library(*arguments)
        self._arm.measure_s += time.perf_counter() - started
        return result


class _TimedServer:
    def __init__(self, server: Any, arm: Arm) -> None:
        self.folder = server.folder
        self._server = server
        self._arm = arm

    def work(self, jobs: Any) -> Any:
        """Do jobs."""
        started = time.perf_counter()
        result = self._server.work(jobs)
        self._arm.measure_s += time.perf_counter() - started
        return result
