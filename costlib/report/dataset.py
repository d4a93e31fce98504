"""The report of a dataset."""

from __future__ import annotations

from typing import Any

from costlib.data import coverage
from costlib.data.dataset import Dataset
from costlib.data.summary import summarize
from costlib.report.coverage import coverage_figure
from costlib.report.page import Page, Picture, Section, Table


def dataset_report(dataset: Dataset) -> Page:
    """Describe what a dataset covers.

    Raises
    ------
    InputError
        It holds no measurements.
    """
    summary = summarize(dataset)
    figure = coverage_figure(dataset)
    operators = coverage.by_operator(dataset)
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
        sections=[
            Section("Coverage", parts=[Picture("coverage", "what the dataset covers", figure)]),
            Section("Hardware", parts=[Table(_HARDWARE, coverage.by_hardware(dataset).rows())]),
            Section(
                "Operators",
                "Latencies are of the best program of a task; the ratio is the median of all "
                "programs' latencies to the best of their task.",
                [Table(_OPERATORS, [_operator_row(row) for row in operators.to_dicts()])],
            ),
            Section(
                "Networks",
                parts=[Table(("network", ">tasks"), list(summary.tasks_by_network.items()))],
            ),
            Section("Failures", parts=[Table(_FAILURES, coverage.failures(dataset).rows())]),
        ],
    )


_HARDWARE = ("hardware", ">programs", ">failed", ">tasks", "from", "to")
_OPERATORS = ("operator", ">tasks", ">programs", ">failed", ">fastest", ">slowest", ">median ratio")
_FAILURES = ("status", ">programs", "most frequent error")


def _operator_row(row: dict[str, Any]) -> list[str]:
    counts = [str(row[name]) for name in ("tasks", "programs", "failed")]
    ratio = row["median_ratio"]
    latencies = [_us(row["best_s"]), _us(row["worst_s"])]
    return [row["operator"], *counts, *latencies, "-" if ratio is None else f"{ratio:.2f}"]


def _us(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds * 1e6:,.1f} µs"
