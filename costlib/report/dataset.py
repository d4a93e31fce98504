"""The page of a dataset."""

from __future__ import annotations

from typing import Any

import polars as pl

from costlib.data import coverage
from costlib.data.dataset import Dataset
from costlib.data.summary import DatasetSummary, summarize
from costlib.data.task_tables import kind_of, title_of
from costlib.report.coverage import draw_best_so_far, draw_programs, draw_slowness
from costlib.report.figures import finish, panel, plain_ticks, whole_ticks
from costlib.report.page import Bar, Gallery, Page, Picture, Section, Sentence, Table
from costlib.report.units import Unit, counted, plain, share, unit_for
from costlib.schema import Status

_TASKS = 100
"""Tasks with a row of their own."""

_HARDWARE = ("hardware", ">programs", ">failed", ">tasks", "from", "to")
_OPERATORS = (
    "operator", "tasks", ">programs", ">failed", ">fastest", ">slowest", ">median ratio",
)  # fmt: skip
_FAILURES = ("status", ">programs", "most frequent error")


def dataset_report(dataset: Dataset) -> Page:
    """Describe what a dataset covers; one that is empty has a page as well."""
    summary = summarize(dataset)
    tasks = _tasks(dataset)
    unit = unit_for([*tasks["best_s"].to_list(), None])
    failures = coverage.failures(dataset)
    sections = [
        _pictures(dataset),
        _operators(tasks, unit),
        Section("Hardware", parts=[Table(_HARDWARE, coverage.by_hardware(dataset).rows())]),
        _networks(summary),
        _failures(failures),
        _task_table(tasks, unit),
    ]
    return Page(
        title=f"Dataset {dataset.path.resolve().name}",
        text="Held-out tasks are counted apart and are in no table or picture.",
        facts=[
            ("measurements", f"{summary.measurements:,}"),
            ("tasks", f"{summary.tasks:,}"),
            ("programs", f"{summary.programs:,}"),
            ("hardware", str(len(summary.hardware))),
            ("held-out measurements", f"{summary.heldout_measurements:,}"),
            ("programs mutated", f"{summary.mutation_parents:,}"),
        ],
        sections=[section for section in sections if section is not None],
        verdict=_verdict(summary, tasks),
    )


def _tasks(dataset: Dataset) -> pl.DataFrame:
    """Return a row for each task: what it is, and what was measured of it."""
    latency_s = pl.col("latency_s")
    measured = (
        dataset.scan()
        .group_by("workload_id")
        .agg(
            programs=pl.len(),
            failed=(pl.col("status") != str(Status.OK)).sum(),
            best_s=latency_s.min(),
            median_ratio=latency_s.median() / latency_s.min(),
        )
    )
    rows = dataset.scan("workloads").select("workload_id", "name", "arguments")
    found = rows.join(measured, on="workload_id").sort("programs", descending=True).collect()
    tasks = found.select("workload_id", "name", "arguments").to_dicts()
    return found.drop("arguments").with_columns(
        title=pl.Series(map(title_of, tasks), dtype=pl.String),
        kind=pl.Series(map(kind_of, tasks), dtype=pl.String),
    )


def _verdict(summary: DatasetSummary, tasks: pl.DataFrame) -> list[Sentence]:
    if not summary.measurements:
        return [["It holds no measurements."]]
    failed = summary.measurements - summary.ok
    kinds = tasks["kind"].value_counts(sort=True)
    most = ", ".join(f"{kind} ({count:,})" for kind, count in kinds.head(3).iter_rows())
    few = int((tasks["programs"] < 2).sum())
    sentences: list[Sentence] = [
        [
            f"{counted(summary.tasks, 'task')} with {summary.measurements_per_task_median:g} "
            f"measurements each in the median, on {counted(len(summary.hardware), 'machine')}."
        ],
        [f"{share(failed / summary.measurements)} of the measurements failed."],
        [f"{counted(len(kinds), 'kind')} of operators, most often {most}."],
    ]
    if few:
        sentences.append([f"{counted(few, 'task')} cannot be ranked: one program each."])
    if not summary.heldout_tasks:
        sentences.append(["No tasks are held out to judge a model on."])
    return sentences


def _pictures(dataset: Dataset) -> Section | None:
    pictures = []
    counts = coverage.programs_per_task(dataset)
    if counts.n_unique() > 1:
        figure, axes = panel()
        draw_programs(axes, counts)
        whole_ticks(axes.yaxis)
        finish(axes, "programs per task")
        pictures.append(Picture("programs", "tasks by their number of programs", figure))
    ratios = coverage.slowness(dataset)
    if ratios.n_unique() > 1:
        figure, axes = panel()
        draw_slowness(axes, ratios)
        whole_ticks(axes.yaxis)
        finish(axes, "spread of latency")
        pictures.append(Picture("spread", "latencies relative to the best of the task", figure))
    shares = coverage.best_so_far(dataset)
    if len(shares) > 1:
        figure, axes = panel()
        draw_best_so_far(axes, shares)
        whole_ticks(axes.xaxis)
        plain_ticks(axes.yaxis)
        finish(axes, "best so far")
        pictures.append(Picture("best-so-far", "best so far, as measured", figure))
    return Section("Coverage", parts=[Gallery(pictures)]) if pictures else None


def _operators(tasks: pl.DataFrame, unit: Unit) -> Section:
    kinds = (
        tasks.group_by("kind")
        .agg(
            pl.len().alias("tasks"),
            pl.col("programs", "failed").sum(),
            fastest=pl.col("best_s").min(),
            slowest=pl.col("best_s").max(),
            median_ratio=pl.col("median_ratio").median(),
        )
        .sort(["tasks", "programs", "kind"], descending=[True, True, False])
    )
    rows = [_operator_row(row, kinds["tasks"][0], unit) for row in kinds.to_dicts()]
    text = (
        "Latencies are of the best program of a task; the ratio is that of its median program's "
        "latency to it, the median over tasks."
    )
    return Section("Operators", text, [Table(_OPERATORS, rows)])


def _operator_row(row: dict[str, Any], most: int, unit: Unit) -> list[object]:
    ratio = row["median_ratio"]
    return [
        row["kind"],
        Bar(row["tasks"] / most, f"{row['tasks']:,}"),
        f"{row['programs']:,}",
        f"{row['failed']:,}",
        unit.text(row["fastest"]),
        unit.text(row["slowest"]),
        "-" if ratio is None else plain(ratio),
    ]


def _networks(summary: DatasetSummary) -> Section | None:
    if not summary.tasks_by_network:
        return None
    rows = list(summary.tasks_by_network.items())[:_TASKS]
    return Section("Networks", parts=[Table(("network", ">tasks"), rows)])


def _failures(failures: pl.DataFrame) -> Section | None:
    return (
        None
        if failures.is_empty()
        else Section("Failures", "", [Table(_FAILURES, failures.rows())])
    )


def _task_table(tasks: pl.DataFrame, unit: Unit) -> Section:
    rows = [
        [
            row["title"],
            f"{row['programs']:,}",
            f"{row['failed']:,}",
            unit.text(row["best_s"]),
            "-" if row["median_ratio"] is None else plain(row["median_ratio"]),
        ]
        for row in tasks.head(_TASKS).iter_rows(named=True)
    ]
    text = f"The {_TASKS} with most programs, of {len(tasks):,}." if len(tasks) > _TASKS else ""
    columns = ("task", ">programs", ">failed", ">best", ">median ratio")
    return Section("Tasks", text, [Table(columns, rows)])
