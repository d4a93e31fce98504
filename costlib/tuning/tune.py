"""The whole path: from networks to faster programs with a pretrained bundle."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from costlib.errors import InputError
from costlib.files import storage_errors
from costlib.hardware import Hardware
from costlib.hub import Bundle, load_pretrained
from costlib.hub.catalog import DEFAULT_BUNDLE
from costlib.measure.config import MeasureConfig
from costlib.measure.measurer import Measurer
from costlib.search.config import SearchConfig
from costlib.search.tasks.scheduler import OBJECTIVES, Objective, TaskScheduler
from costlib.tuning.comparison import compare
from costlib.tuning.compiled import CompiledNetwork
from costlib.tuning.database import write_database
from costlib.tuning.interrupt import Interruptible
from costlib.tuning.memory import Memory
from costlib.tuning.networks import NetworkSet
from costlib.tuning.result import NetworkResult, TaskResult, TuneProgress, TuneResult
from costlib.tuning.run import Batch, TuningRun
from costlib.tuning.run_folder import claim, library_name
from costlib.tuning.untuned import untuned_latencies, worth_tuning

if TYPE_CHECKING:
    from costlib.measure.fleet import Fleet

RESULT = "result.json"

COLD = "none"
"""The name of no bundle: a run that starts without models and priors."""

_UNKNOWN_S = 1e-3
"""Taken for a task that does not run untuned, where a reference is needed."""

_BATCHES_PER_TASK = 2
"""Batches that each task should get on average, if the budget allows."""

OnProgress = Callable[[TuneProgress], None]


def tune(
    *sources: Any,
    out: str | Path,
    trials: int = 64,
    minutes: float | None = None,
    objective: Objective = "sum",
    required_s: Sequence[float] = (),
    min_gain: float = 0.0,
    bundle: Bundle | str | Path | None = None,
    hardware: Hardware | None = None,
    seed: int = 0,
    resume: bool = False,
    try_layouts: bool = False,
    memory: str | Path | None = None,
    config: MeasureConfig | None = None,
    search: SearchConfig | None = None,
    fleet: Fleet | None = None,
    on_progress: OnProgress | None = None,
) -> TuneResult:
    """Tune networks with a pretrained bundle, compile them and compare them with PyTorch.

    Ctrl-C ends the search after the batch at work; what was found until then is compiled.

    Parameters
    ----------
    *sources
        Zoo names, operators, files or modules; see :func:`costlib.workloads.load_network`.
    out
        The run's folder: what was measured, the compiled networks, a MetaSchedule database of the
        best programs, the result.
    trials
        How many programs to measure, all sessions together.
    minutes
        Stop searching after so long.
    objective, required_s
        What to make small, see :class:`costlib.search.tasks.scheduler.TaskScheduler`; seconds
        that each network is required to take at most.
    min_gain
        Stop when another batch is expected to lower the objective by less than this share.
    bundle
        The bundle, its name or its folder; the default one if not given, ``"none"`` for none.
    hardware
        What to tune for; this machine's CPU, or what the fleet is, if not given.
    seed
        Seed of the search.
    resume
        Go on with the run in the folder.
    try_layouts
        Tune each network with convolutions in NHWC and in blocks of channels as well, and compile
        whichever turns out fastest; most of the trials go to that one.
    memory
        A folder that keeps the best programs of all runs that are given it; they are priors of
        the next.
    config
        Repeats, limits and racing.
    search
        How to search.
    fleet
        Measure on its devices of this hardware, not here.
    on_progress
        Called whenever there is something new to show.

    Raises
    ------
    InputError
        A setting makes no sense, the folder holds a run that is not resumed, or another one
        than this.
    """
    _check(sources, trials, objective, required_s)
    started = time.monotonic()
    progress = TuneProgress("loading", trials)

    def report(stage: str) -> None:
        progress.stage = stage
        progress.elapsed_s = time.monotonic() - started
        if on_progress is not None:
            on_progress(progress)

    out, loaded = Path(out), _load(bundle)
    hardware = hardware or (fleet.only_hardware() if fleet else Hardware.local())
    report("importing the network" if len(sources) == 1 else "importing the networks")
    networks = NetworkSet.load(sources, hardware, try_layouts=try_layouts)
    names = [network.name for network in networks.networks]
    bundle_name = loaded.name if loaded else COLD
    claim(out, resume=resume, networks=names, hardware_id=hardware.hardware_id, seed=seed)
    tasks = networks.tasks
    progress.tasks = tasks
    progress.best_s = [None] * len(tasks)
    progress.task_trials = [0] * len(tasks)
    report("starting the measuring process")
    reference = loaded.canary(hardware.hardware_id) if loaded else None
    devices = fleet.pool(hardware) if fleet else None
    with Measurer(hardware, config, reference, devices) as measurer:
        before_s = untuned_latencies(tasks, measurer)
        chosen = worth_tuning(tasks, before_s, hardware, trials)
        scheduler = _scheduler(networks, chosen, before_s, objective, required_s)
        report("deriving the design spaces")
        remembered = Memory(memory) if memory is not None else None
        run = TuningRun(
            [tasks[i] for i in chosen],
            scheduler,
            hardware,
            measurer,
            out,
            bundle=loaded,
            config=_with_batch(search or SearchConfig(), trials, len(chosen)),
            seed=seed,
            memory=remembered.bank() if remembered else None,
        )
        for task, one in run.recalled:
            progress.add(chosen[task], one.program.program_id, one.latency_s)
        report("tuning")

        def on_batch(batch: Batch) -> None:
            progress.search_s += batch.search_s
            progress.measure_s += batch.measure_s
            elapsed_s, task = time.monotonic() - started, chosen[batch.task]
            for one in batch.measurements:
                progress.add(task, one.program.program_id, one.latency_s, elapsed_s)
            report("tuning")

        with Interruptible() as interruptible:
            stopped = run.run(
                trials,
                deadline=None if minutes is None else started + 60 * minutes,
                min_gain=min_gain,
                interrupted=interruptible.asked,
                on_batch=on_batch,
            )
        if remembered:
            remembered.add(run.searches, hardware)
        report("compiling")
        database = write_database(out, tasks, before_s, run.searches)
        latency_s = [
            min(s or math.inf, b or math.inf)
            for s, b in zip(progress.best_s, before_s, strict=True)
        ]
        compared = _compile(networks, latency_s, out, database, hardware, measurer, seed, report)
    result = TuneResult(
        networks=tuple(compared),
        bundle=bundle_name,
        hardware_id=hardware.hardware_id,
        seed=seed,
        trials=progress.trials,
        elapsed_s=time.monotonic() - started,
        search_s=progress.search_s,
        measure_s=progress.measure_s,
        stopped=stopped,
        tasks=tuple(_task_results(networks, progress, before_s)),
        curve=tuple(progress.curve),
    )
    with storage_errors(out):
        (out / RESULT).write_text(result.model_dump_json(indent=2) + "\n")
    report("done")
    return result


def _scheduler(
    networks: NetworkSet,
    chosen: Sequence[int],
    before_s: Sequence[float | None],
    objective: Objective,
    required_s: Sequence[float],
) -> TaskScheduler:
    """Divide the trials among the chosen tasks."""
    calls = networks.calls[:, chosen].astype("float64")
    tasks = [networks.tasks[i] for i in chosen]
    untuned_s = calls @ np.array([before_s[i] or _UNKNOWN_S for i in chosen])
    return TaskScheduler(
        calls,
        objective,
        required_s=[required_s[source] for source in networks.source_of if required_s],
        reference_s=[untuned_s[networks.given(i)] for i in range(len(calls))],
        alternatives=networks.source_of,
        flops=[task.flops for task in tasks],
        similar=[task.name for task in tasks],
    )


def _compile(
    networks: NetworkSet,
    latency_s: Sequence[float],
    out: Path,
    database: Any,
    hardware: Hardware,
    measurer: Measurer,
    seed: int,
    report: Callable[[str], None],
) -> list[NetworkResult]:
    """Compile the fastest version of each network and compare it with what it was before.

    That is: with the network as it was given, untuned, and with PyTorch.
    """
    compared = []
    untuned = measurer.server.folder / "untuned-network.so"
    sources = len(set(networks.source_of))
    for number in networks.fastest(latency_s):
        network, given = networks.networks[number], networks.given(number)
        library = out / library_name(networks.networks[given].name, sources)
        CompiledNetwork.build(networks.prepared[given], hardware).save(untuned)
        CompiledNetwork.build(networks.prepared[number], hardware, database).save(library)
        report(f"comparing {network.name}")
        figures = compare(network, untuned, library, measurer, seed).model_dump()
        compared.append(NetworkResult(network=network.name, library=str(library), **figures))
    return compared


def _check(
    sources: Sequence[Any], trials: int, objective: str, required_s: Sequence[float]
) -> None:
    if not sources:
        raise InputError("name at least one network, operator or file to tune")
    if trials < 1:
        raise InputError(f"trials is {trials}; it must be at least 1")
    if objective not in OBJECTIVES:
        raise InputError(f"no objective is called '{objective}'; use {', '.join(OBJECTIVES)}")
    wanted = len(sources) if objective == "requirement" else 0
    if len(required_s) != wanted:
        raise InputError(
            f"the objective '{objective}' takes {wanted} required latencies, one for each "
            f"network; {len(required_s)} were given"
            if wanted
            else f"the objective '{objective}' takes no required latency; use 'requirement'"
        )


def _load(bundle: Bundle | str | Path | None) -> Bundle | None:
    if isinstance(bundle, Bundle):
        return bundle
    return None if bundle == COLD else load_pretrained(bundle or DEFAULT_BUNDLE)


def _with_batch(config: SearchConfig, trials: int, tasks: int) -> SearchConfig:
    """Take smaller batches where the budget is small, so that the scheduler has a choice."""
    most = max(1, trials // (_BATCHES_PER_TASK * max(tasks, 1)))
    return config.model_copy(update={"batch": min(config.batch, most)})


def _task_results(
    networks: NetworkSet, progress: TuneProgress, before_s: Sequence[float | None]
) -> Sequence[TaskResult]:
    return [
        TaskResult(
            name=task.name,
            workload_id=task.workload_id,
            calls=networks.calls_of(number),
            flops=task.flops,
            trials=progress.task_trials[number],
            latency_before_s=before_s[number],
            latency_after_s=progress.best_s[number],
        )
        for number, task in enumerate(progress.tasks)
    ]
