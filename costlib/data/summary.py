"""What a dataset holds, in numbers."""

from __future__ import annotations

from statistics import median

import polars as pl

from costlib.data.dataset import Dataset
from costlib.frozen import Frozen
from costlib.schema import TABLES, Status


class DatasetSummary(Frozen):
    """The size and the coverage of a dataset.

    Attributes
    ----------
    path
        Its folder.
    schema_version
        See :data:`costlib.schema.SCHEMA_VERSION`.
    measurements, ok
        Attempts to measure a program, and those that gave a latency.
    heldout_measurements, heldout_tasks
        The same of the held-out tasks, which are counted nowhere else here.
    mutation_parents, mutation_children, mutation_children_measured
        Programs that were changed in every direction, what came of it, and how much of that
        was measured.
    tasks
        Workloads with at least one measurement.
    programs
        Distinct programs measured, on whatever hardware.
    hardware
        Ids of all its hardwares.
    measurements_by_hardware, measurements_by_status, measurements_by_origin
        How many measurements have each value, most frequent first.
    tasks_by_operator, tasks_by_network
        How many tasks compute each (fused) operator, and how many come from each network.
    measurements_per_task_min, measurements_per_task_median, measurements_per_task_max
        On all hardwares together; 0 if there are no measurements.
    bytes
        Size of all parts of all tables.
    bytes_per_measurement
        ``bytes`` divided by ``measurements``; ``None`` if there are none.
    """

    path: str
    schema_version: int
    measurements: int
    ok: int
    heldout_measurements: int
    heldout_tasks: int
    mutation_parents: int
    mutation_children: int
    mutation_children_measured: int
    tasks: int
    programs: int
    hardware: list[str]
    measurements_by_hardware: dict[str, int]
    measurements_by_status: dict[str, int]
    measurements_by_origin: dict[str, int]
    tasks_by_operator: dict[str, int]
    tasks_by_network: dict[str, int]
    measurements_per_task_min: int
    measurements_per_task_median: float
    measurements_per_task_max: int
    bytes: int
    bytes_per_measurement: float | None


def summarize(dataset: Dataset) -> DatasetSummary:
    """Count what ``dataset`` holds now.

    Raises
    ------
    DatasetError
        A part is damaged.
    """
    rows = dataset.scan()
    held_out = dataset.held_out()
    judged = held_out.scan() if held_out else rows.clear()
    mutations = dataset.scan("mutations").unique(["hardware", "program_id"])
    measured_children = mutations.join(rows, on=["hardware", "program_id"], how="semi")
    by_task = rows.group_by("workload_id").agg(pl.len().alias("count"))
    tasks = dataset.scan("workloads").join(by_task, on="workload_id", how="semi")
    calls = dataset.scan("networks").join(by_task, on="workload_id", how="semi")
    numbers = {
        "programs": rows.select(pl.col("program_id").n_unique()),
        "heldout_measurements": judged.select(pl.len()),
        "heldout_tasks": judged.select(pl.col("workload_id").n_unique()),
        "mutation_parents": mutations.select(pl.col("parent_id").n_unique()),
        "mutation_children": mutations.select(pl.len()),
        "mutation_children_measured": measured_children.select(pl.len()),
    }
    frequencies = {
        "measurements_by_hardware": _frequencies(rows, "hardware"),
        "measurements_by_status": _frequencies(rows, "status"),
        "measurements_by_origin": _frequencies(rows, "origin"),
        "tasks_by_operator": _frequencies(tasks, "name"),
        "tasks_by_network": _frequencies(calls, "network"),
    }
    frames = {"by_task": by_task} | numbers | frequencies
    found = dict(zip(frames, pl.collect_all(list(frames.values())), strict=True))
    tables = {name: dict(found[name].iter_rows()) for name in frequencies}
    per_task = found["by_task"]["count"].to_list()
    measurements = sum(per_task)
    size = sum(part.stat().st_size for table in TABLES for part in dataset.part_files(table))
    return DatasetSummary(
        path=str(dataset.path),
        schema_version=dataset.info.schema_version,
        measurements=measurements,
        ok=tables["measurements_by_status"].get(str(Status.OK), 0),
        tasks=len(per_task),
        hardware=list(dataset.hardware()),
        measurements_per_task_min=min(per_task, default=0),
        measurements_per_task_median=float(median(per_task or [0])),
        measurements_per_task_max=max(per_task, default=0),
        bytes=size,
        bytes_per_measurement=size / measurements if measurements else None,
        **{name: found[name].item() for name in numbers},
        **tables,
    )


def _frequencies(rows: pl.LazyFrame, column: str) -> pl.LazyFrame:
    counted = rows.group_by(pl.col(column).fill_null("missing")).agg(pl.len().alias("count"))
    return counted.sort(["count", column], descending=[True, False])
