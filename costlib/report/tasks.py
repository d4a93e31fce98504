"""A run's tasks: the table of all, and a section for each that counts."""

from __future__ import annotations

import polars as pl

from costlib.report.found_run import LEFT, FoundRun, anchor, calls, time_before_s, time_now_s
from costlib.report.page import Bar, Fold, Gallery, Part, Picture, Place, Section, Table
from costlib.report.trials import trials_figure
from costlib.report.units import counted, plain, share
from costlib.space.program import Program
from costlib.tuning.result import TaskResult
from costlib.tvm_compat.api import schedule_steps

_ROWS = 100
"""Tasks with a row in the table that is open."""

_SECTIONS = 24
"""Tasks with a section of their own; others have a row in one that is folded."""

_PICTURES = 12
_SCRIPTS = 5
"""Tasks whose trials are drawn, and whose best program is shown."""

_COLUMNS = (
    "task", ">calls", "trials", "share of time, untuned", "share of time, now",
    ">untuned", ">tuned", ">faster", ">GFLOP/s",
)  # fmt: skip


def tasks_section(run: FoundRun) -> Section:
    """Say of each task what it took, takes, and got."""
    tasks = run.tasks
    text = (
        "Each call of a task, and the shares of all calls. The heaviest before tuning come first."
    )
    totals = (
        sum(task.trials for task in tasks),
        sum(map(time_before_s, tasks)),
        sum(map(time_now_s, tasks)),
    )
    rows = [_row(run, task, totals) for task in tasks[:_ROWS]]
    if left := tasks[_ROWS:]:
        part = share(sum(map(time_before_s, left)) / (totals[1] or 1.0))
        text += f" The other {counted(len(left), 'task')} took {part} of the untuned time."
    return Section("Where the time and the trials went", text, [Table(_COLUMNS, rows)])


def left_section(run: FoundRun) -> Section | None:
    """Say of each task that stayed as TVM compiles it why; ``None`` if there is none."""
    left = [task for task in run.tasks if task.left]
    total_s = sum(map(time_before_s, run.tasks))
    rows = [
        [run.link(task.workload_id), _bar(time_before_s(task), total_s), task.left]
        for task in left[:_ROWS]
    ]
    text = f"The heaviest {_ROWS} of {len(left):,}." if len(left) > _ROWS else ""
    table = Table(("task", "share of time, untuned", "why"), rows)
    return Section("Left as TVM compiles them", text, [table], LEFT) if left else None


def _row(run: FoundRun, task: TaskResult, totals: tuple[int, float, float]) -> list[object]:
    return [
        run.link(task.workload_id),
        "+".join(map(str, task.calls.values())) if len(task.calls) < 4 else calls(task),
        _bar(task.trials, totals[0], f"{task.trials}"),
        _bar(time_before_s(task), totals[1]),
        _bar(time_now_s(task), totals[2]),
        run.unit.text(task.latency_before_s),
        run.unit.text(task.latency_after_s),
        _times(task),
        plain(task.gflops_per_s) if task.gflops_per_s else "-",
    ]


def _bar(value: float, total: float, text: str = "") -> Bar:
    part = value / total if total else 0.0
    return Bar(part, f"{text} ({share(part)})" if text else share(part))


def _times(task: TaskResult) -> str:
    before_s, after_s = task.latency_before_s, task.latency_after_s
    return f"{plain(before_s / after_s)}x" if before_s and after_s else "-"


def task_sections(run: FoundRun) -> list[Section]:
    """Describe each task: the trials and the best program of those that count."""
    sections = [
        Section(
            run.titles[task.workload_id],
            _text(run, task),
            [
                *(_trials(run, task) if place < _PICTURES else []),
                *(_programs(run, task) if place < _SCRIPTS else []),
            ],
            anchor(task.workload_id),
            level=3,
        )
        for place, task in enumerate(run.tasks[:_SECTIONS])
    ]
    if rest := run.tasks[_SECTIONS:]:
        columns = ("task", ">calls", ">trials", ">untuned", ">tuned", ">faster", "")
        table = Table(columns, [_short_row(run, task) for task in rest])
        title = f"The other {counted(len(rest), 'task')}"
        sections.append(Section(title, parts=[Fold("Show them", table)], level=3))
    return sections


def _short_row(run: FoundRun, task: TaskResult) -> list[object]:
    return [
        Place(run.titles[task.workload_id], anchor(task.workload_id)),
        f"{calls(task):,}",
        f"{task.trials:,}",
        run.unit.text(task.latency_before_s),
        run.unit.text(task.latency_after_s),
        _times(task),
        task.left or "",
    ]


def _text(run: FoundRun, task: TaskResult) -> str:
    unit = run.unit
    text = f"{counted(calls(task), 'call')}, {counted(task.trials, 'trial')}"
    if task.latency_before_s is not None:
        text += f"; untuned it takes {unit.text(task.latency_before_s)}"
    if task.latency_after_s is not None:
        text += f"; the best program takes {unit.text(task.latency_after_s)}"
    text += "." if task.left is None else f". It stayed as TVM compiles it: {task.left}."
    trials = run.of(task)
    failed = int(trials["latency_s"].is_null().sum())
    return text + (f" {counted(failed, 'program')} failed." if failed else "")


def _trials(run: FoundRun, task: TaskResult) -> list[Part]:
    figure = trials_figure(run.of(task), run.titles[task.workload_id], run.unit)
    if figure is None:
        return []
    return [Gallery([Picture(anchor(task.workload_id), "latency of each trial", figure)])]


def _programs(run: FoundRun, task: TaskResult) -> list[Part]:
    best = run.of(task).filter(pl.col("is_final"))
    space = None if best.is_empty() else run.space(task.workload_id)
    if space is None:
        return []
    row = best.row(0, named=True)
    schedule = space.lower(Program.from_row(task.workload_id, row["sketch_id"], row["decisions"]))
    if schedule is None:
        return []
    found = f"trial {row['trial']}, {row['origin']}, {run.unit.text(task.latency_after_s)}"
    return [
        Fold(f"What was changed ({found})", "\n".join(schedule_steps(schedule))),
        Fold("The program", schedule.mod.script(show_meta=False)),
    ]
