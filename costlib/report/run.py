"""The report of a tuning run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from pydantic import ValidationError

from costlib.data.borrowing import borrowed
from costlib.data.completeness import check_complete
from costlib.data.dataset import Dataset
from costlib.data.task_tables import task_of
from costlib.errors import CostlibError, InputError
from costlib.hub import load_pretrained
from costlib.report.against import comparison
from costlib.report.curve import curve_figure
from costlib.report.figures import panels
from costlib.report.page import Fold, Page, Picture, Section, Table
from costlib.report.trials import by_origin, spending_figure, tasks_figure, with_progress
from costlib.space.design_space import DesignSpace
from costlib.space.program import Program
from costlib.training.batches import assemble, workload_rows
from costlib.training.metrics import pairwise_accuracy, rank_correlation
from costlib.tuning.result import NetworkResult, TaskResult, TuneResult
from costlib.tuning.session import RESULT
from costlib.tuning.trials import TRIALS
from costlib.tvm_compat.api import schedule_steps

_SCRIPTS = 5
"""Tasks whose best program is shown."""


def run_report(folder: Path, against: Path | None = None) -> Page:
    """Describe a run that has come to an end.

    Parameters
    ----------
    folder
        What ``costlib tune --out`` was given.
    against
        Another run to compare with, or MetaSchedule's.

    Raises
    ------
    InputError
        It holds no finished run.
    DatasetError
        What it measured is incomplete.
    """
    result = read_result(folder)
    dataset = Dataset.open(folder / TRIALS)
    check_complete(dataset)
    trials = with_progress(dataset.scan().filter(hardware=result.hardware_id).collect())
    origins = by_origin(trials).to_dicts()
    tasks = sorted(result.tasks, key=_time_before_s, reverse=True)
    return Page(
        title=f"Tuning of {', '.join(one.network for one in result.networks)}",
        text=f"{result.trials} programs measured on {result.hardware_id}; {result.stopped}.",
        facts=[
            ("trials", str(result.trials)),
            ("bundle", result.bundle),
            ("seed", str(result.seed)),
            ("last session", f"{result.elapsed_s:.0f} s"),
            ("searching", f"{result.search_s:.0f} s"),
            ("building and running", f"{result.measure_s:.0f} s"),
        ],
        sections=[
            Section(
                "Networks",
                "As a whole, with all their tasks. Faster is against PyTorch, which gets its best "
                "number of threads. A question mark: the machine was too busy to say.",
                [
                    Table(_NETWORKS, [_network_row(one) for one in result.networks]),
                    Picture("curve", "latency of each network by trials", curve_figure(result)),
                ],
            ),
            Section(
                "Where the trials went",
                "A task's share of the time, untuned and tuned, and its share of the trials.",
                [
                    Picture("spending", "share of time and of trials", spending_figure(tasks)),
                    Table(_TASKS, [_task_row(task) for task in tasks]),
                ],
            ),
            Section(
                "Trial by trial",
                "Each measured program of the tasks that took most time untuned.",
                [Picture("tasks", "latency of each trial", tasks_figure(trials, tasks))],
            ),
            *([] if against is None else [comparison(trials, tasks, against)]),
            Section(
                "What each part of the search gave",
                "By where a program came from: how often it became its task's best, and for how "
                "many tasks it still was at the end.",
                [Table(_ORIGINS, [_origin_row(row) for row in origins])],
            ),
            _predictions(result, dataset),
            _best_programs(trials, dataset, tasks, result.hardware_id),
        ],
    )


def read_result(folder: Path) -> TuneResult:
    """Read what a run came to; raise :class:`InputError` if there is no such thing."""
    try:
        return TuneResult.model_validate_json((folder / RESULT).read_text())
    except FileNotFoundError:
        raise InputError(f"{folder} holds no finished run: it has no {RESULT}") from None
    except (OSError, UnicodeDecodeError, ValidationError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"{folder / RESULT} cannot be read: {reason}") from None


_NETWORKS = ("network", ">PyTorch", ">tuned", ">faster", ">untuned", ">difference of outputs")
_TASKS = (
    "task", ">calls", ">trials", ">untuned", ">tuned", ">faster", ">GFLOP/s", "left as it is: why",
)  # fmt: skip
_ORIGINS = (
    "origin", ">trials", ">failed", ">became best", ">best at the end", ">median latency / best",
)  # fmt: skip


def _network_row(one: NetworkResult) -> list[str]:
    return [
        one.network,
        _ms(one.pytorch_latency_s) + "?" * ("PyTorch" in one.doubtful),
        _ms(one.latency_after_s) + "?" * ("tuned" in one.doubtful),
        _times(one.pytorch_latency_s, one.latency_after_s),
        _ms(one.latency_before_s) + "?" * ("untuned" in one.doubtful),
        f"{one.max_abs_error:.1e}",
    ]


def _task_row(task: TaskResult) -> list[str]:
    return [
        task.name,
        "+".join(map(str, task.calls.values())),
        str(task.trials),
        _ms(task.latency_before_s),
        _ms(task.latency_after_s),
        _times(task.latency_before_s, task.latency_after_s),
        f"{task.gflops_per_s:.1f}" if task.gflops_per_s else "-",
        task.left or "",
    ]


def _origin_row(row: dict[str, Any]) -> list[str]:
    ratio = row["median_ratio"]
    counts = [str(row[name]) for name in ("trials", "failed", "better", "final")]
    return [row["origin"], *counts, "-" if ratio is None else f"{ratio:.2f}"]


def _predictions(result: TuneResult, dataset: Dataset) -> Section:
    title = "Predicted against measured"
    try:
        bundle = load_pretrained(result.bundle)
        model = bundle.statement_model()
        with borrowed(dataset) as copy:
            data = assemble(copy, hardware=[result.hardware_id])
    except CostlibError as error:
        return Section(title, f"There is nothing to compare: {error}")
    scores = np.asarray(model.predict(data.batch))
    names = {task.workload_id: task.name for task in result.tasks}
    figure, (axes,) = panels(1, 1, 7, 4.5)
    rows = []
    for number, (workload_id, _) in enumerate(data.tasks):
        own = data.groups == number
        if own.sum() < 2:
            continue
        axes.plot(scores[own] - scores[own].max(), data.labels[own], ".", alpha=0.6)
        pairs = pairwise_accuracy(scores[own], data.latency_s[own])
        correlation = rank_correlation(scores[own], data.latency_s[own])
        name = names.get(workload_id, workload_id)
        rows.append([name, int(own.sum()), f"{pairs:.2f}", f"{correlation:.2f}"])
    axes.set(
        xlabel="score of the bundle's model, from the task's highest",
        ylabel="share of the task's best throughput",
    )
    return Section(
        title,
        f"Scores by {result.bundle} as it was before the run, without what the run has taught it. "
        "The programs that were measured are those it thought well of: telling them apart is "
        "harder than telling random ones apart.",
        [
            Picture("predictions", "score and throughput of each program", figure),
            Table(("task", ">programs", ">pairs in order", ">rank correlation"), rows),
        ],
    )


def _best_programs(
    trials: pl.DataFrame, dataset: Dataset, tasks: Sequence[TaskResult], hardware_id: str
) -> Section:
    hardware = dataset.hardware()[hardware_id]
    workloads = workload_rows(dataset)
    parts: list[Table | Picture | Fold] = []
    for task in [task for task in tasks if task.latency_after_s][:_SCRIPTS]:
        best = trials.filter(pl.col("is_final") & (pl.col("workload_id") == task.workload_id))
        if best.is_empty():
            continue
        row = best.row(0, named=True)
        program = Program.from_row(row["workload_id"], row["sketch_id"], row["decisions"])
        schedule = DesignSpace(task_of(workloads[task.workload_id], hardware)).lower(program)
        if schedule is None:
            continue
        found = f"trial {row['trial']}, {row['origin']}, {_ms(task.latency_after_s)}"
        steps = "\n".join(schedule_steps(schedule))
        parts.append(Fold(f"{task.name}: what was changed ({found})", steps))
        parts.append(Fold(f"{task.name}: the program", schedule.mod.script(show_meta=False)))
    text = "Of the tasks that took most time untuned: each step of the schedule, and what it makes."
    return Section("Best programs", text, parts)


def _time_before_s(task: TaskResult) -> float:
    return (task.latency_before_s or task.latency_after_s or 0.0) * sum(task.calls.values())


def _ms(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds * 1e3:.3f} ms"


def _times(before_s: float | None, after_s: float | None) -> str:
    return f"{before_s / after_s:.2f}x" if before_s and after_s else "-"
