"""A run's folder as a page needs it: finished, at work, killed, empty, or of an older version."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import polars as pl
from pydantic import ValidationError

from costlib.canary_times import CanaryTimes
from costlib.data.completeness import check_complete
from costlib.data.dataset import Dataset
from costlib.data.task_tables import stored_tasks, title_of
from costlib.errors import DatasetError, InputError
from costlib.hardware import Hardware
from costlib.report.page import Link
from costlib.report.progress import with_progress
from costlib.report.units import Unit, unit_for
from costlib.schema import Origin
from costlib.space.design_space import DesignSpace
from costlib.tuning.profile import NetworkProfile, read_profile
from costlib.tuning.result import RESULT, CurvePoint, TaskResult, TuneResult, read_result
from costlib.tuning.session import RUN, TASKS, Baseline
from costlib.tuning.trials import TRIALS
from costlib.workloads.title import short_id, task_title

_COLUMNS = [
    "workload_id", "program_id", "sketch_id", "decisions", "status", "latency_s", "run_secs",
    "origin", "seed", "hardware", "measured_at", "cache",
]  # fmt: skip


@dataclass(frozen=True)
class FoundRun:
    """What a run's folder holds.

    Attributes
    ----------
    folder
        Where it is.
    result
        Its result; of a run that has none, what its trials say.
    trials
        See :func:`costlib.report.progress.with_progress`.
    dataset
        What it measured; ``None`` if that is gone, or nothing was measured yet.
    unfinished
        Why there is no result; empty if there is one.
    """

    folder: Path
    result: TuneResult
    trials: pl.DataFrame
    dataset: Dataset | None
    unfinished: str = ""

    @property
    def is_simulated(self) -> bool:
        """Whether its latencies are made up."""
        known = self.dataset.hardware() if self.dataset is not None else {}
        return self.result.simulated or any(one.is_simulated for one in known.values())

    @cached_property
    def profiles(self) -> Sequence[NetworkProfile]:
        """Where its networks' time goes, of those of which that was noted."""
        return read_profile(self.folder).networks

    @cached_property
    def titles(self) -> dict[str, str]:
        """What each task is called, by its workload id."""
        names = {task.workload_id: task.title for task in self.result.tasks}
        if not all(names.values()):
            known = _titles(self.dataset)
            for task in self.result.tasks:
                one = task.workload_id
                names[one] = names[one] or known.get(one) or task_title(task.name, (), one)
        return names

    def of(self, task: TaskResult) -> pl.DataFrame:
        """Return the trials of a task."""
        return self._by_task.get(task.workload_id, self.trials.clear())

    def link(self, workload_id: str) -> Link:
        """Return what leads to a task of the run."""
        return Link(self.titles[workload_id], f"#{anchor(workload_id)}")

    @cached_property
    def hardware(self) -> Hardware:
        """What it was tuned for.

        Raises
        ------
        DatasetError
            Its dataset does not say.
        """
        known = self.dataset.hardware() if self.dataset is not None else {}
        if self.result.hardware_id not in known:
            raise DatasetError(f"{self.folder} does not say what {self.result.hardware_id} is")
        return known[self.result.hardware_id]

    def canary(self) -> CanaryTimes | None:
        """Return what the canaries took when it began, if it is noted."""
        return self.dataset.canary(self.result.hardware_id) if self.dataset is not None else None

    def space(self, workload_id: str) -> DesignSpace | None:
        """Return the design space of a task; ``None`` if its module is not known."""
        if workload_id not in self._spaces and self.dataset is not None:
            tasks = stored_tasks(self.dataset, [workload_id], self.hardware)
            self._spaces.update((workload_id, DesignSpace(task)) for task in tasks)
        return self._spaces.get(workload_id)

    @cached_property
    def _spaces(self) -> dict[str, DesignSpace]:
        return {}

    @cached_property
    def _by_task(self) -> dict[str, pl.DataFrame]:
        parts = self.trials.partition_by("workload_id", as_dict=True)
        return {str(key[0]): rows for key, rows in parts.items()}

    @cached_property
    def tasks(self) -> list[TaskResult]:
        """The tasks, that which took most time untuned first."""
        return sorted(self.result.tasks, key=time_before_s, reverse=True)

    @cached_property
    def unit(self) -> Unit:
        """The unit of all latencies on its page."""
        networks, tasks = self.result.networks, self.result.tasks
        latencies_s = [s for one in networks for s in (one.latency_before_s, one.latency_after_s)]
        of_tasks = (s for task in tasks for s in (task.latency_before_s, task.latency_after_s))
        return unit_for([*latencies_s, *of_tasks])


LEFT = "left"
"""What the section of the tasks that stayed as they were is linked by."""


def anchor(workload_id: str) -> str:
    """Return what the section of a task is linked by."""
    return f"task-{short_id(workload_id)}"


def calls(task: TaskResult) -> int:
    """Return how often all networks together call a task."""
    return sum(task.calls.values())


def time_before_s(task: TaskResult) -> float:
    """Return the seconds that all calls of a task take untuned, or tuned if that does not run."""
    return (task.latency_before_s or task.latency_after_s or 0.0) * calls(task)


def time_now_s(task: TaskResult) -> float:
    """Return the seconds that all calls of a task take now: with the faster of both programs."""
    return (task.latency_s or 0.0) * calls(task)


def is_run(folder: Path) -> bool:
    """Whether a folder is, or is about to become, that of a run."""
    return (folder / TRIALS).is_dir() or (folder / RUN).is_file() or (folder / RESULT).is_file()


def find_run(folder: Path) -> FoundRun:
    """Read what a run's folder holds, whatever state it is in.

    Raises
    ------
    InputError
        It is no run's.
    DatasetError
        What it measured is damaged.
    """
    if not is_run(folder):
        raise InputError(f"{folder} is not a run")
    dataset = Dataset.open(folder / TRIALS) if (folder / TRIALS / "dataset.json").exists() else None
    if dataset is not None:
        check_complete(dataset)
    trials = with_progress(_measured(dataset))
    why = "it has not come to its end"
    if (folder / RESULT).exists():
        try:
            return FoundRun(folder, read_result(folder), trials, dataset)
        except InputError as error:
            why = f"{error}, so that only its trials are shown"
    return FoundRun(folder, _result_so_far(folder, dataset, trials), trials, dataset, why)


def _measured(dataset: Dataset | None) -> pl.DataFrame:
    if dataset is None:
        return pl.DataFrame(schema=dict.fromkeys(_COLUMNS, pl.String)).cast(
            {"latency_s": pl.Float64, "run_secs": pl.List(pl.Float64), "measured_at": pl.Datetime}
        )
    return dataset.scan().select(_COLUMNS).collect()


def _titles(dataset: Dataset | None) -> dict[str, str]:
    """Titles of a dataset's workloads, by their ids."""
    if dataset is None:
        return {}
    rows = dataset.scan("workloads").select("workload_id", "name", "arguments").collect()
    return {row["workload_id"]: title_of(row) for row in rows.iter_rows(named=True)}


def _result_so_far(folder: Path, dataset: Dataset | None, trials: pl.DataFrame) -> TuneResult:
    """What a run's folder says without a result: nothing of networks as a whole."""
    tasks = _tasks_so_far(folder, dataset, trials)
    numbers = {task.workload_id: number for number, task in enumerate(tasks)}
    counted = trials.filter(pl.col("origin") != str(Origin.CHECKED))
    measured_at = pl.col("measured_at")
    points = counted.select(
        "workload_id",
        "latency_s",
        "best_s",
        elapsed_s=(measured_at - measured_at.min()).dt.total_milliseconds() / 1e3,
    )
    curve = [
        CurvePoint(elapsed_s=elapsed_s, task=numbers[one], latency_s=latency_s, best_s=best_s)
        for one, latency_s, best_s, elapsed_s in points.iter_rows()
    ]
    hardware = trials["hardware"].unique().to_list()
    return TuneResult(
        networks=(),
        bundle="",
        hardware_id=hardware[0] if hardware else "",
        seed=int(trials["seed"][0]) if len(trials) else 0,
        trials=len(curve),
        elapsed_s=curve[-1].elapsed_s if curve else 0.0,
        search_s=0.0,
        measure_s=0.0,
        stopped="",
        tasks=tuple(tasks),
        curve=tuple(curve),
    )


def _tasks_so_far(folder: Path, dataset: Dataset | None, trials: pl.DataFrame) -> list[TaskResult]:
    if dataset is None:
        return []
    try:
        untuned_s = Baseline.model_validate_json((folder / TASKS).read_bytes()).untuned_s
    except (OSError, ValidationError):
        untuned_s = {}
    rows = dataset.scan("workloads").select("workload_id", "name", "flops").collect()
    calls_of: dict[str, dict[str, int]] = {}
    for network, workload_id, weight in dataset.scan("networks").collect().iter_rows():
        calls_of.setdefault(workload_id, {})[network] = weight
    progress = trials.group_by("workload_id").agg(pl.len(), pl.col("best_s").last())
    known = {one: (count, best_s) for one, count, best_s in progress.iter_rows()}
    return [
        TaskResult(
            name=name,
            workload_id=workload_id,
            calls=calls_of.get(workload_id, {"": 1}),
            flops=flops or 0.0,
            trials=known.get(workload_id, (0, None))[0],
            latency_before_s=untuned_s.get(workload_id),
            latency_after_s=known.get(workload_id, (0, None))[1],
        )
        for workload_id, name, flops in rows.iter_rows()
    ]
