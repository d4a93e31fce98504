"""The best programs of a dataset as a prior bank."""

from __future__ import annotations

from collections.abc import Collection

import polars as pl

from costlib.data.dataset import Dataset
from costlib.data.task_tables import task_of
from costlib.hub.priors import SCHEMA, PriorBank, flat_extents
from costlib.schema import Status
from costlib.space.design_space import DesignSpace


def collect_priors(
    dataset: Dataset,
    per_task: int = 4,
    *,
    only: Collection[str] | None = None,
    hardware: Collection[str] | None = None,
) -> PriorBank:
    """Take the best programs of each task on each hardware of a dataset, or of some of them.

    What was measured in different states of the caches is ranked apart.

    Imported schedules of other languages, and programs whose sketch is none of the task's, are
    left out.

    Parameters
    ----------
    dataset
        The dataset.
    per_task
        How many programs of each task.
    only
        Ids of the workloads to take; all by default.
    hardware
        Ids of the hardware; all by default.
    """
    rows = []
    workloads = dataset.scan("workloads").filter(pl.col("mod_json").is_not_null()).collect()
    described = {
        row["workload_id"]: row
        for row in workloads.iter_rows(named=True)
        if only is None or row["workload_id"] in only
    }
    known = dataset.hardware()
    best = _best_programs(dataset, per_task).filter(pl.col("workload_id").is_in(list(described)))
    if hardware is not None:
        best = best.filter(pl.col("hardware").is_in(list(hardware)))
    for (workload_id, hardware_id), programs in best.group_by("workload_id", "hardware"):
        row = described[workload_id]
        space = DesignSpace(task_of(row, known[str(hardware_id)]))
        sketch_ids = {sketch.sketch_id for sketch in space.sketches}
        shared = {
            "cluster": space.cluster,
            "name": row["name"],
            "extents": flat_extents(argument["shape"] for argument in row["arguments"]),
        }
        rows += [
            shared | program
            for program in programs.iter_rows(named=True)
            if program["sketch_id"] in sketch_ids
        ]
    table = pl.DataFrame(rows, schema=SCHEMA)
    return PriorBank(table.sort("cluster", "hardware", "workload_id", "rank"))


def _best_programs(dataset: Dataset, per_task: int) -> pl.DataFrame:
    key = ["workload_id", "hardware"]
    state = [*key, "cache"]
    return (
        dataset.scan()
        .filter((pl.col("status") == str(Status.OK)) & ~pl.col("raced"))
        .sort("latency_s")
        .unique([*state, "sketch_id", "decisions"], keep="first", maintain_order=True)
        .with_columns(rank=pl.int_range(pl.len()).over(state))
        .filter(pl.col("rank") < per_task)
        .select(*key, "sketch_id", "decisions", "latency_s", "rank")
        .collect()
    )
