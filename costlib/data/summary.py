"""What a dataset holds, in numbers."""

from __future__ import annotations

from statistics import median

import polars as pl
from pydantic import BaseModel, ConfigDict

from costlib.data.dataset import Dataset
from costlib.schema import TABLES, Status


class DatasetSummary(BaseModel):
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

    model_config = ConfigDict(frozen=True)

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
    mutations = dataset.scan("mutations").unique(["hardware", "program_id"])
    children = mutations.join(rows, on=["hardware", "program_id"], how="semi")
    by_task = rows.group_by("workload_id").agg(pl.len().alias("count"))
    tasks = dataset.scan("workloads").join(by_task, on="workload_id", how="semi")
    (
        counts,
        programs,
        statuses,
        origins,
        hardwares,
        operators,
        networks,
        parents,
        measured_children,
        held_out_counts,
    ) = pl.collect_all(
        [
            by_task,
            rows.select(pl.col("program_id").n_unique()),
            _frequencies(rows, "status"),
            _frequencies(rows, "origin"),
            _frequencies(rows, "hardware"),
            _frequencies(tasks, "name"),
            _frequencies(
                dataset.scan("networks").join(by_task, on="workload_id", how="semi"), "network"
            ),
            mutations.select(pl.col("parent_id").n_unique(), pl.len()),
            children.select(pl.len()),
            (held_out.scan() if held_out else rows.clear()).select(
                pl.len(), pl.col("workload_id").n_unique()
            ),
        ]
    )
    per_task = counts["count"].to_list()
    measurements = sum(per_task)
    by_status = dict(statuses.iter_rows())
    size = sum(part.stat().st_size for table in TABLES for part in dataset.part_files(table))
    return DatasetSummary(
        path=str(dataset.path),
        schema_version=dataset.info.schema_version,
        measurements=measurements,
        ok=by_status.get(str(Status.OK), 0),
        heldout_measurements=held_out_counts.item(0, 0),
        heldout_tasks=held_out_counts.item(0, 1),
        mutation_parents=parents.item(0, 0),
        mutation_children=parents.item(0, 1),
        mutation_children_measured=measured_children.item(),
        tasks=len(per_task),
        programs=programs.item(),
        hardware=list(dataset.hardware()),
        measurements_by_hardware=dict(hardwares.iter_rows()),
        measurements_by_status=by_status,
        measurements_by_origin=dict(origins.iter_rows()),
        tasks_by_operator=dict(operators.iter_rows()),
        tasks_by_network=dict(networks.iter_rows()),
        measurements_per_task_min=min(per_task, default=0),
        measurements_per_task_median=float(median(per_task or [0])),
        measurements_per_task_max=max(per_task, default=0),
        bytes=size,
        bytes_per_measurement=size / measurements if measurements else None,
    )


def _frequencies(rows: pl.LazyFrame, column: str) -> pl.LazyFrame:
    counted = rows.group_by(pl.col(column).fill_null("missing")).agg(pl.len().alias("count"))
    return counted.sort(["count", column], descending=[True, False])
