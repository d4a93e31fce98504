"""The whole path: from networks to faster programs with a pretrained bundle."""

from __future__ import annotations

import logging
import math
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from costlib.errors import InputError
from costlib.files import write_file
from costlib.hardware import Hardware
from costlib.hub import Bundle
from costlib.places import held, refuse_others
from costlib.search.tasks.scheduler import TaskScheduler
from costlib.tuning.budget import for_budget
from costlib.tuning.bundles import COLD, bundle_for
from costlib.tuning.compiling import Compiler
from costlib.tuning.config import TuneConfig
from costlib.tuning.database import write_database
from costlib.tuning.engines.catalogue import ENGINES, check_engines
from costlib.tuning.interrupt import Interruptible
from costlib.tuning.left import WRONG, outcome_to_leave, reasons_to_leave
from costlib.tuning.memory import Memory
from costlib.tuning.networks import NetworkSet
from costlib.tuning.progress import Progress, TuneProgress
from costlib.tuning.ranges import RangeResult, with_trials
from costlib.tuning.result import FURTHER_TRIALS, RESULT, TaskResult, TuneResult
from costlib.tuning.run import Batch, TuningRun
from costlib.tuning.session import Baseline, Session, as_begun, check_place, points_for
from costlib.tuning.workplace import compiler_for, measurer_for, tuned_for
from costlib.workloads.ranges.dimension import Dims
from costlib.workloads.task import Task

if TYPE_CHECKING:
    from costlib.measure.fleet import Fleet

_UNKNOWN_S = 1e-3
"""Taken for a task that does not run untuned, where a reference is needed."""


_log = logging.getLogger(__name__)


def tune(
    *sources: Any,
    out: str | Path,
    trials: int | None = None,
    minutes: float | None = None,
    bundle: Bundle | str | Path | None = None,
    hardware: Hardware | None = None,
    seed: int = 0,
    resume: bool = False,
    config: TuneConfig | None = None,
    fleet: Fleet | None = None,
    example_inputs: Sequence[Any] | Mapping[str, Any] | None = None,
    dim: Dims | None = None,
    on_progress: Callable[[TuneProgress], None] | None = None,
) -> TuneResult:
    """Tune networks with a pretrained bundle, compile them and compare them with PyTorch.

    Ctrl-C, SIGTERM or SIGHUP ends the search after the batch at work; what was found until then is
    compiled. A second one aborts. What was measured is kept, and ``resume`` goes on with it.

    Parameters
    ----------
    *sources
        Zoo names, operators, files or modules; see :func:`costlib.workloads.load_network`.
    out
        The run's folder: what was measured, the compiled networks, a MetaSchedule database of the
        best programs, the result.
    trials
        How many programs to measure, all sessions together;
        :attr:`costlib.tuning.networks.NetworkSet.usual_trials` if not given.
    minutes
        Stop searching after so long.
    bundle
        The bundle, its name or its folder; ``"none"`` for none. If not given, a shipped one that
        has seen such hardware.
    hardware
        What to tune for; this machine's CPU, or what the fleet is, if not given. Of a simulated
        one, see :meth:`costlib.hardware.Hardware.simulated`, all latencies are made up: programs
        are built for it, and nothing is measured.
    seed
        Seed of the search.
    resume
        Go on with the run in the folder; there must be one.
    config
        What to reach, and how.
    fleet
        Measure on its devices of this hardware, not here.
    example_inputs
        What the ``torch.nn.Module`` among the sources is called with.
    dim
        Ranges of dimensions by their names, both ends included: ``{"sequence": (16, 128)}``; see
        :mod:`costlib.workloads.ranges`. A program that was exported with dynamic shapes has
        those that it was exported with.
    on_progress
        Called whenever there is something new to show.

    Raises
    ------
    InputError
        A setting makes no sense; the folder holds something else, a run that is not resumed or
        another one than this, or no run to resume; or another process is at work there.
    StorageError
        Something cannot be written; what was measured is kept.
    DifferentNetworkError
        A network computes something else than its original; nothing has been measured then,
        unless it is the tuned one.
    """
    config = config or TuneConfig()
    _check(sources, trials, config)
    hardware = tuned_for(hardware, fleet, config)
    folder = Path(out)
    refuse_others(folder, "a run")
    with held(folder, "tuned"):
        check_place(folder, resume=resume)
        memory = None if config.memory is None else Memory(config.memory, hardware.family)
        progress = Progress(on_progress)
        deadline = None if minutes is None else time.monotonic() + 60 * minutes
        loaded = bundle_for(bundle, hardware)
        progress.report("importing the network" if len(sources) == 1 else "importing the networks")
        known = loaded.canary(hardware.hardware_id) if loaded else None
        with measurer_for(hardware, config.measure, known, fleet) as measurer:
            begun_with = points_for(folder, trials)
            networks = NetworkSet.load(
                sources,
                hardware,
                layouts=config.layouts,
                weights=config.weights,
                dtype=config.dtype,
                dims=dim,
                trials=begun_with,
                fixed_for="--simulate" if hardware.is_simulated else config.fixed_for,
                example_inputs=example_inputs,
            ).as_called(hardware, as_begun(folder, config.measure))
            session = Session(
                *(folder, networks.names, hardware, seed),
                resume=resume,
                cold=networks.has_cold_weights,
                has_ranges=bool(networks.ranges),
                points_for=begun_with,
            )
            progress.begin(networks.tasks, trials := trials or networks.usual_trials)
            progress.report("starting the measuring process")
            measurer.server.wait()
            compiler = compiler_for(hardware)(
                networks, hardware, measurer, progress.report, config.against, config.vendor
            )
            compiler.compare_untuned(allow_different=config.allow_different)
            progress.report("timing the tasks as they are")
            baseline = session.baseline(networks.tasks, measurer, trials)
            progress.report("deriving the design spaces")
            left = reasons_to_leave(networks.tasks, baseline)
            chosen = [i for i, reason in enumerate(left) if reason is None]
            lesser = [n for n, i in enumerate(chosen) if i in networks.lesser_tasks]
            run = TuningRun(
                [networks.tasks[i] for i in chosen],
                _scheduler(networks, chosen, baseline, config),
                hardware,
                measurer,
                session.trials,
                bundle=loaded,
                config=for_budget(config.search, trials, len(chosen) - len(lesser)),
                seed=seed,
                memory=memory.bank() if memory else None,
                lesser=lesser,
            )
            progress.report("tuning")
            stopped = _searched(run, trials, deadline, config.min_gain, progress, chosen)
            expected_gain = run.expected_gain(FURTHER_TRIALS)
            for number, search in zip(chosen, run.searches, strict=True):
                left[number] = outcome_to_leave(search)
            progress.report("writing the database")
            before_s = [baseline.untuned_s[task.workload_id] for task in networks.tasks]
            database = write_database(session.folder, networks.tasks, before_s, run.searches)
            best_s = progress.state.best_s
            latency_s = [
                min(s or math.inf, b or math.inf) for s, b in zip(best_s, before_s, strict=True)
            ]
            compared, wrong = compiler.compile_tuned(latency_s, session.folder, database)
            right = [search for search in run.searches if search.task.workload_id not in wrong]
            if wrong:
                write_database(session.folder, networks.tasks, before_s, right)
            if memory:
                memory.add(right, hardware)
            left = [
                WRONG if task.workload_id in wrong else reason
                for task, reason in zip(networks.tasks, left, strict=True)
            ]
        tasks = _task_results(compiler, progress.state, before_s, left)
        result = TuneResult(
            networks=() if hardware.is_simulated else tuple(compared),
            untimed=tuple(compared) if hardware.is_simulated else (),
            simulated=hardware.is_simulated,
            ranges=tuple(_ranges(compiler.ranges, tasks)),
            bundle=loaded.name if loaded else COLD,
            hardware_id=hardware.hardware_id,
            seed=seed,
            config=config.model_dump(mode="json"),
            trials=progress.state.trials,
            elapsed_s=progress.elapsed_s(),
            search_s=progress.state.search_s,
            measure_s=progress.state.measure_s,
            stopped=stopped,
            tasks=tuple(tasks),
            curve=tuple(progress.state.curve),
            expected_gain=expected_gain,
        )
        write_file(session.folder / RESULT, (result.model_dump_json(indent=2) + "\n").encode())
        progress.report("done")
        return result


def _searched(
    run: TuningRun,
    trials: int,
    deadline: float | None,
    min_gain: float,
    progress: Progress,
    chosen: Sequence[int],
) -> str:
    """Search, and look at the best programs once more; return why it stopped."""

    def show(batch: Batch) -> None:
        progress.add(batch._replace(task=chosen[batch.task]))

    with Interruptible(progress.report) as interruptible:
        stopped = run.run(
            trials,
            deadline=deadline,
            min_gain=min_gain,
            interrupted=interruptible.asked,
            on_batch=show,
        )
        progress.report("checking the best programs")
        run.check_best(interruptible.asked, show)
    return stopped


def _scheduler(
    networks: NetworkSet, chosen: Sequence[int], baseline: Baseline, config: TuneConfig
) -> TaskScheduler:
    """Divide the trials among the chosen tasks."""
    calls = networks.calls[:, chosen].astype("float64")
    tasks: list[Task] = [networks.tasks[i] for i in chosen]
    untuned_s = calls @ np.array([baseline.untuned_s[t.workload_id] or _UNKNOWN_S for t in tasks])
    required_s = config.required_s
    return TaskScheduler(
        calls,
        config.objective,
        required_s=[required_s[source] for source in networks.source_of if required_s],
        reference_s=[untuned_s[networks.given(i)] for i in range(len(calls))],
        alternatives=networks.source_of,
        flops=[task.flops for task in tasks],
        similar=[task.name for task in tasks],
    )


def _check(sources: Sequence[Any], trials: int | None, config: TuneConfig) -> None:
    if not sources:
        raise InputError("name at least one network, operator or file to tune")
    if trials is not None and trials < 1:
        raise InputError(f"trials is {trials}; it must be at least 1")
    objective, required_s = config.objective, config.required_s
    wanted = len(sources) if objective == "requirement" else 0
    if len(required_s) != wanted:
        raise InputError(
            f"the objective '{objective}' takes {wanted} required latencies, one for each "
            f"network; {len(required_s)} were given"
            if wanted
            else f"the objective '{objective}' takes no required latency; use 'requirement'"
        )
    check_engines(config.against)
    for name in config.against:
        if (missing := ENGINES[name].missing()) is not None:
            _log.warning("%s: %s", ENGINES[name].title, missing)
    if not all(math.isfinite(seconds) and seconds > 0 for seconds in required_s):
        raise InputError("a required latency must be a positive number")


def _ranges(found: Sequence[RangeResult], tasks: Sequence[TaskResult]) -> list[RangeResult]:
    trials: Counter[str] = Counter()
    for task in tasks:
        trials.update(dict.fromkeys(task.calls, task.trials))
    return [with_trials(one, trials) for one in found]


def _task_results(
    compiler: Compiler,
    progress: TuneProgress,
    before_s: Sequence[float | None],
    left: Sequence[str | None],
) -> Sequence[TaskResult]:
    return [
        TaskResult(
            name=task.name,
            workload_id=task.workload_id,
            calls=compiler.networks.calls_of(number),
            flops=task.flops,
            trials=progress.task_trials[number],
            latency_before_s=before_s[number],
            latency_after_s=progress.best_s[number],
            left=left[number],
            title=task.title,
            vendor_s=compiler.vendor_s(task),
        )
        for number, task in enumerate(progress.tasks)
    ]
