"""Datasets beside one another."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from costlib.data.dataset import Dataset
from costlib.data.summary import summarize
from costlib.report.page import Section, Sentence, Table
from costlib.report.units import counted, plain, share


def dataset_verdict(datasets: Sequence[Dataset]) -> list[Sentence]:
    """Say which dataset is largest, and what they have in common."""
    sizes = {_name(one): summarize(one) for one in datasets}
    largest = max(sizes, key=lambda name: sizes[name].measurements)
    ids = [set(_best(one)["workload_id"]) for one in datasets]
    common = len(set.intersection(*ids))
    return [
        [
            f"{largest} is the largest dataset: "
            f"{counted(sizes[largest].measurements, 'measurement')} of "
            f"{counted(sizes[largest].tasks, 'task')}."
        ],
        [f"{counted(common, 'task')} of {len(set.union(*ids)):,} are in all {len(datasets)}."],
    ]


def dataset_section(datasets: Sequence[Dataset]) -> Section:
    """Return what each dataset holds, and how fast its best programs are beside the first's."""
    first = _best(datasets[0])
    rows = []
    for dataset in datasets:
        summary = summarize(dataset)
        shared = first.join(_best(dataset), on=["hardware", "workload_id"], suffix="_here")
        ratio = (pl.col("best_s") / pl.col("best_s_here")).log().mean().exp()
        speed = shared.select(ratio).item() if len(shared) else None
        failed = summary.measurements - summary.ok
        rows.append(
            [
                _name(dataset),
                f"{summary.measurements:,}",
                f"{summary.tasks:,}",
                f"{summary.measurements_per_task_median:g}",
                share(failed / summary.measurements) if summary.measurements else "-",
                len(summary.hardware),
                f"{len(shared):,}",
                "-" if speed is None else plain(speed),
            ]
        )
    columns = (
        "dataset", ">measurements", ">tasks", ">median a task", ">failed", ">hardware",
        ">tasks it shares with the first", ">throughput of their best, the first's being 1",
    )  # fmt: skip
    text = "Tasks are shared if they were measured on the same hardware; the last is a mean."
    return Section("Datasets", text, [Table(columns, rows)])


def _name(dataset: Dataset) -> str:
    return dataset.path.resolve().name


def _best(dataset: Dataset) -> pl.DataFrame:
    """Return the best latency of each task on each hardware."""
    latencies = dataset.scan().drop_nulls("latency_s").group_by("hardware", "workload_id")
    return latencies.agg(best_s=pl.col("latency_s").min()).collect()
