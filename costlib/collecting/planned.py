"""Carry out a collection plan: its tasks, its hardware, its held-out networks, its mutations."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from costlib.collecting.collect import CollectProgress, collect
from costlib.collecting.mutations import record_mutations
from costlib.collecting.plan import CollectionPlan, HardwarePlan
from costlib.data.dataset import HELD_OUT_FOLDER, Dataset
from costlib.data.failures import failed_workloads
from costlib.data.splits import WorkloadKey, overlapping
from costlib.data.task_tables import recorded_tasks, register_workloads, stored_tasks
from costlib.errors import InputError
from costlib.hardware import Hardware, find_hardware
from costlib.hub.bundle import Bundle
from costlib.hub.catalog import load_pretrained
from costlib.measure.config import MeasureConfig
from costlib.space.design_space import DesignSpace
from costlib.workloads import extract_tasks
from costlib.workloads.layout import CHANNELS_LAST
from costlib.workloads.layout_choice import Layouts
from costlib.workloads.task import Task

if TYPE_CHECKING:
    from costlib.measure.fleet import Fleet

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class PlanProgress:
    """Where a planned collection stands.

    Attributes
    ----------
    step, steps
        Which part of the plan is at work, counted from 1, and how many there are.
    what
        What this part is, e.g. ``"held-out tasks on amd-epyc-..."``.
    done, total
        Programs of this part that are done and wanted.
    task
        The task at work.
    """

    step: int
    steps: int
    what: str
    done: int
    total: int
    task: str


@dataclass(frozen=True)
class _Part:
    what: str
    out: Path
    tasks: Sequence[Task]
    hardware: Hardware
    programs_per_task: int


def collect_plan(
    plan: CollectionPlan,
    out: str | Path,
    *,
    bundle: Bundle | None = None,
    retry_failed: bool = False,
    config: MeasureConfig | None = None,
    fleet: Fleet | None = None,
    on_progress: Callable[[PlanProgress], None] | None = None,
) -> Dataset:
    """Carry out a plan, or what is left of it.

    The first hardware is measured first, training tasks before held-out ones. Tasks are taken
    from the dataset where an earlier call has noted them.

    Parameters
    ----------
    plan
        The plan.
    out
        The dataset's folder; held-out tasks go to a dataset inside it.
    bundle
        Searches, writes and scores in the place of the plan's model, which is loaded by its name
        if this is not given.
    retry_failed
        Measure failed programs again first, as :func:`collect` does.
    config
        Repeats, limits and racing.
    fleet
        Measure on its devices, one kind after the other, as the plan's first hardware says.
    on_progress
        Called after each batch.

    Returns
    -------
    Dataset
        The dataset, open.
    """
    if bundle is None and plan.model is not None and plan.takes_a_bundle:
        bundle = load_pretrained(plan.model)
    deadline = None if plan.minutes is None else time.monotonic() + 60 * plan.minutes
    dataset = Dataset.create(out)
    wanted = (
        [(entry, _hardware(entry)) for entry in plan.hardware]
        if fleet is None
        else [(plan.hardware[0], hardware) for hardware in fleet.hardware()]
    )
    parts = [part for pair in wanted for part in _parts(plan, *pair, dataset)]
    if not parts:
        raise InputError("the plan leaves nothing to measure: all its programs_per_task are 0")
    main = parts[0].hardware
    steps = len(parts) + bool(plan.mutations.parents)
    for number, part in enumerate(parts, start=1):
        minutes = _minutes_until(deadline)
        if minutes == 0:
            return dataset
        collect(
            part.tasks,
            part.out,
            programs_per_task=part.programs_per_task,
            hardware=part.hardware,
            seed=plan.seed,
            mix=plan.mix,
            bundle=bundle,
            minutes=minutes,
            retry_failed=retry_failed,
            config=config,
            fleet=fleet,
            on_progress=_shown(on_progress, number, steps, part.what),
        )
    if plan.mutations.parents and bundle is not None:
        show = _shown(on_progress, steps, steps, f"mutations on {main.hardware_id}")
        record_mutations(
            dataset,
            main,
            bundle,
            parents=plan.mutations.parents,
            seed=plan.seed,
            deadline=deadline,
            on_progress=lambda done, total: show(CollectProgress(done, total, "", 0)),
        )
    return dataset


def retry_all_failed(
    out: str | Path,
    hardware: Sequence[Hardware],
    *,
    minutes: float | None = None,
    config: MeasureConfig | None = None,
    fleet: Fleet | None = None,
    on_progress: Callable[[PlanProgress], None] | None = None,
) -> Dataset:
    """Measure all programs of a dataset again that failed, and nothing else.

    Parameters
    ----------
    out
        The dataset's folder. Held-out tasks inside it are not left out.
    hardware
        Whose failures to take. Failures of workloads without a module, as in foreign logs, are
        left as they are.
    minutes, config, fleet, on_progress
        As in :func:`collect`.

    Returns
    -------
    Dataset
        The dataset, open.
    """
    deadline = None if minutes is None else time.monotonic() + 60 * minutes
    dataset = Dataset.open(out)
    places = [place for place in (dataset, dataset.held_out()) if place is not None]
    found = [
        (place, one, stored_tasks(place, failed_workloads(place, one.hardware_id), one))
        for one in hardware
        for place in places
    ]
    parts = [(place, one, tasks) for place, one, tasks in found if tasks]
    if not parts:
        names = " and ".join(one.hardware_id for one in hardware)
        _log.warning("%s holds no failure of %s that can be measured again", out, names)
    for number, (place, one, tasks) in enumerate(parts, start=1):
        collect(
            tasks,
            place.path,
            programs_per_task=1,  # Which a task with a failure has.
            hardware=one,
            minutes=_minutes_until(deadline),
            retry_failed=True,
            config=config,
            fleet=fleet,
            on_progress=_shown(on_progress, number, len(parts), f"failures on {one.hardware_id}"),
        )
    return dataset


def _minutes_until(deadline: float | None) -> float | None:
    return None if deadline is None else max(0.0, deadline - time.monotonic()) / 60


def _shown(
    on_progress: Callable[[PlanProgress], None] | None, step: int, steps: int, what: str
) -> Callable[[CollectProgress], None]:
    def show(progress: CollectProgress) -> None:
        if on_progress is not None:
            task, done, total = progress.task, progress.done, progress.total
            on_progress(PlanProgress(step, steps, what, done, total, task))

    return show


def _hardware(entry: HardwarePlan) -> Hardware:
    return find_hardware(entry.target, mcpu=entry.mcpu, num_cores=entry.cores)


def _parts(
    plan: CollectionPlan, entry: HardwarePlan, hardware: Hardware, dataset: Dataset
) -> list[_Part]:
    """What to measure on one hardware: training tasks, then held-out ones."""
    training = _tasks(plan.sources, dataset, hardware, plan.layouts, plan.min_flops)
    parts = []
    if plan.held_out.networks:
        nested = Dataset.create(dataset.path / HELD_OUT_FOLDER)
        held_out = _tasks(plan.held_out.networks, nested, hardware, plan.layouts, 0)
        banned = overlapping(map(_key, training), map(_key, held_out))
        if banned:
            _log.warning("%d tasks are like held-out ones and not trained on", len(banned))
        training = [task for task in training if task.workload_id not in banned]
        if entry.held_out:
            count = plan.held_out.programs_per_task
            what = f"held-out tasks on {hardware.hardware_id}"
            parts = [_Part(what, nested.path, held_out, hardware, count)]
    count = plan.programs_per_task if entry.programs_per_task is None else entry.programs_per_task
    if count:
        what = f"training tasks on {hardware.hardware_id}"
        parts.insert(0, _Part(what, dataset.path, training, hardware, count))
    return parts


def _tasks(
    sources: Sequence[str],
    dataset: Dataset,
    hardware: Hardware,
    layouts: Layouts,
    min_flops: float,
) -> list[Task]:
    """The tunable tasks of all sources, extracted where the dataset does not know them."""
    tasks: list[Task] = []
    for source in sources:
        found = _noted(source, dataset, hardware, layouts)
        if not found:
            extracted = extract_tasks(source, hardware, layouts=layouts)
            found = [task for task in extracted if DesignSpace(task).is_tunable]
            for task in extracted:
                if task not in found:
                    _log.warning("%s of %s is left out: it has nothing to tune", task.title, source)
            register_workloads(dataset, found, {task.workload_id for task in found})
        tasks += found
    kept = [task for task in tasks if task.flops >= min_flops]
    if len(kept) < len(tasks):
        few = f"{len(tasks) - len(kept)} of {len(tasks)} tasks"
        _log.warning("%s are left out: they have less than %g FLOP (min_flops)", few, min_flops)
    return kept


def _noted(source: str, dataset: Dataset, hardware: Hardware, layouts: Layouts) -> list[Task]:
    """The tasks that an earlier call noted for a source; none if there may be others."""
    if layouts == "all":
        return []
    last = [f"{source}+{CHANNELS_LAST}"] if layouts == "channels-last" else []
    found = (recorded_tasks(dataset, name, hardware) for name in (*last, source))
    return next(filter(None, found), [])


def _key(task: Task) -> WorkloadKey:
    return WorkloadKey.of(task.workload_id, task.name, [shape for _, shape in task.arguments])
