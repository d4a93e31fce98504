"""The page of a tuning run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from costlib.report.curve import By, both_ways, network_figure, sum_figure
from costlib.report.found_run import FoundRun, find_run
from costlib.report.page import Choice, Gallery, Page, Part, Section, Table
from costlib.report.predictions import predictions
from costlib.report.profile import profile_section
from costlib.report.progress import by_origin
from costlib.report.tasks import left_section, task_sections, tasks_section
from costlib.report.units import counted, plain
from costlib.report.verdict import verdict
from costlib.tuning.result import NetworkResult

_CURVES = 6
"""Networks whose curve is drawn."""

_NETWORKS = ("network", ">PyTorch", ">tuned", ">faster", ">untuned", ">difference of outputs")
_ORIGINS = (
    "origin", ">trials", ">failed", ">became best", ">best at the end", ">median latency / best",
)  # fmt: skip


def run_report(folder: Path, against: Path | None = None) -> Page:
    """Describe a run: one that came to its end, is at work, was killed, or is of an older version.

    Parameters
    ----------
    folder
        What ``costlib tune --out`` was given.
    against
        Another run to compare with, or MetaSchedule's.

    Raises
    ------
    InputError
        It is no run's folder.
    DatasetError
        What it measured is damaged or incomplete.
    """
    run = find_run(folder)
    beside = []
    if against is not None:
        from costlib.report.against import comparison

        beside.append(comparison(run, against))
    sections = [
        _networks(run),
        *beside,
        profile_section(run),
        tasks_section(run),
        left_section(run),
        *task_sections(run),
        _origins(run),
        predictions(run),
    ]
    result = run.result
    seconds = {"searching": result.search_s, "building and running": result.measure_s}
    facts = [
        ("trials", f"{result.trials:,}"),
        ("bundle", result.bundle),
        ("seed", str(result.seed)),
    ]
    facts += [(name, f"{spent:,.0f} s") for name, spent in seconds.items() if spent]
    how = "simulated" if run.is_simulated else "measured"
    text = f"{counted(result.trials, 'program')} {how} on {result.hardware_id or 'no hardware'}"
    return Page(
        title=f"Tuning of {_names(run)}",
        text=f"{text}; {result.stopped}." if result.stopped else f"{text} so far.",
        facts=[(name, value) for name, value in facts if value],
        sections=[section for section in sections if section is not None],
        verdict=verdict(run),
    )


def _names(run: FoundRun) -> str:
    names = [one.network for one in run.result.networks]
    names += [one.network for one in run.result.untimed]
    if not names:
        names = sorted({network for task in run.result.tasks for network in task.calls})
    if len(names) > 4:
        return f"{len(names)} networks"
    return ", ".join(names) or run.folder.resolve().name


def _networks(run: FoundRun) -> Section | None:
    networks, parts = run.result.networks, list[Part]()
    if networks:
        titles = list(dict.fromkeys(found.title for one in networks for found in one.engines))
        columns = (*_NETWORKS, *(f">{title}" for title in titles))
        rows = [_network_row(run, one) + _engine_cells(run, one, titles) for one in networks]
        parts.append(Table(columns, rows))
        if problems := [
            [one.network, found.title, found.problem]
            for one in networks
            for found in one.engines
            if found.problem is not None
        ]:
            parts.append(Table(("network", "engine", "why it was not timed"), problems))
    if len(run.result.curve) > 1:
        parts.append(Gallery(_curves(run)))
    if not parts:
        return None
    return Section(
        "Networks",
        "As a whole, with all their tasks. PyTorch gets its best number of threads. A question "
        "mark: the machine was too busy to say. A curve is the sum of the best programs, brought "
        "to the state of the machine in which the networks were timed; a band is from the fastest "
        "to the slowest repeat."
        if networks
        else "The sum of the best programs of each network's tasks.",
        parts,
    )


def _curves(run: FoundRun) -> list[Choice]:
    """Return the curve of each network; before those were timed as a whole, of its tasks."""
    draw: dict[str, Callable[[By], Figure]] = {
        one.network: partial(network_figure, run, one) for one in run.result.networks[:_CURVES]
    }
    if not draw:
        names = sorted({network for task in run.result.tasks for network in task.calls})
        draw = {name: partial(sum_figure, run, name) for name in names[:_CURVES]}
    return [
        both_ways(f"curve-{number}", f"latency of {name or 'all tasks'}", make)
        for number, (name, make) in enumerate(draw.items(), start=1)
    ]


def _network_row(run: FoundRun, one: NetworkResult) -> list[str]:
    unit, torch_s = run.unit, one.pytorch_latency_s
    return [
        one.network,
        unit.text(torch_s) + "?" * ("PyTorch" in one.doubtful),
        unit.text(one.latency_after_s) + "?" * ("tuned" in one.doubtful),
        f"{plain(torch_s / one.latency_after_s)}x" if torch_s else "-",
        unit.text(one.latency_before_s) + "?" * ("untuned" in one.doubtful),
        f"{one.max_abs_error:.1e}",
    ]


def _engine_cells(run: FoundRun, one: NetworkResult, titles: Sequence[str]) -> list[str]:
    """Write what a network takes in other engines, and how much faster ours is."""
    latencies_s = {found.title: found.latency_s for found in one.engines}
    return [
        f"{run.unit.text(s)}{'?' * (title in one.doubtful)} ({plain(s / one.latency_after_s)}x)"
        if (s := latencies_s.get(title)) is not None
        else "-"
        for title in titles
    ]


def _origins(run: FoundRun) -> Section | None:
    if run.trials.is_empty():
        return None
    return Section(
        "What each part of the search gave",
        "By where a program came from: how often it became its task's best, and for how many "
        "tasks it still was at the end.",
        [Table(_ORIGINS, [_origin_row(row) for row in by_origin(run.trials).to_dicts()])],
    )


def _origin_row(row: dict[str, Any]) -> list[str]:
    ratio = row["median_ratio"]
    counts = [str(row[name]) for name in ("trials", "failed", "better", "final")]
    return [row["origin"], *counts, "-" if ratio is None else plain(ratio)]
