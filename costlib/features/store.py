"""The features of a dataset's programs: computed once by replaying them, kept beside the records.

``features/<version>/hardware=<id>/part-*.parquet`` is derived data: it may be deleted at any time,
and what is missing is computed when it is asked for.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from costlib.data.dataset import Dataset
from costlib.data.parts import write_part
from costlib.features.per_store import STORE_FEATURES, Stores, extract_stores
from costlib.features.version import FEATURE_VERSION
from costlib.hardware import Hardware
from costlib.schema import Status
from costlib.space.design_space import DesignSpace
from costlib.space.program import Program, Sketch
from costlib.tvm_compat.api import module_from_json
from costlib.workloads.task import Task

SCHEMA = pa.schema(
    [
        pa.field("program_id", pa.string(), nullable=False),
        pa.field("stores", pa.list_(pa.float32()), nullable=False),
    ]
)

_log = logging.getLogger(__name__)


def load_features(
    dataset: Dataset,
    hardware_id: str,
    on_progress: Callable[[int, int], None] | None = None,
) -> dict[str, Stores]:
    """Return the features of all programs that ran, computing the missing ones.

    Parameters
    ----------
    dataset
        The dataset.
    hardware_id
        One of its hardwares.
    on_progress
        Called with (programs done, programs missing) after each task that is computed.

    Returns
    -------
    dict
        program_id -> float32 `n_stores x 164`. A program that this TVM cannot replay is left out.
    """
    folder = dataset.path / "features" / FEATURE_VERSION / f"hardware={hardware_id}"
    known = _read(folder)
    missing = (
        dataset.scan()
        .filter(pl.col("hardware") == hardware_id)
        .filter(pl.col("status") == str(Status.OK))
        .filter(~pl.col("program_id").is_in(list(known)))
        .select("program_id", "workload_id", "sketch_id", "decisions")
        .unique("program_id", maintain_order=True)
        .collect()
    )
    if missing.is_empty():
        return known
    hardware = dataset.hardware()[hardware_id]
    sketches = _sketches(dataset)
    done = 0
    computed: dict[str, Stores] = {}
    for task, rows in _by_task(dataset, hardware, missing):
        computed |= _compute(task, rows, sketches)
        done += len(rows)
        if on_progress is not None:
            on_progress(done, len(missing))
    if len(computed) < len(missing):
        _log.warning(
            "%d of %d programs cannot be replayed by this TVM and are left out",
            len(missing) - len(computed),
            len(missing),
        )
    _write(dataset, folder, computed)
    return known | computed


def _read(folder: Path) -> dict[str, Stores]:
    if not any(folder.glob("part-*.parquet")):
        return {}
    table = pl.read_parquet(folder / "part-*.parquet")
    return {
        program_id: np.asarray(stores, "float32").reshape(-1, STORE_FEATURES)
        for program_id, stores in table.iter_rows()
    }


def _write(dataset: Dataset, folder: Path, computed: dict[str, Stores]) -> None:
    if not computed:
        return
    columns = [list(computed), [array.ravel() for array in computed.values()]]
    table = pa.Table.from_arrays([pa.array(column) for column in columns], schema=SCHEMA)
    write_part(folder, table, SCHEMA, dataset.scratch)


def _sketches(dataset: Dataset) -> dict[str, Sketch]:
    table = dataset.scan("sketches").select("sketch_id", "instructions").collect()
    return {sketch_id: Sketch.from_json(text) for sketch_id, text in table.iter_rows()}


def _by_task(dataset: Dataset, hardware: Hardware, missing: pl.DataFrame) -> Any:
    workloads = (
        dataset.scan("workloads")
        .filter(pl.col("workload_id").is_in(missing["workload_id"].unique().to_list()))
        .select("workload_id", "name", "mod_json")
        .collect()
    )
    groups = missing.partition_by("workload_id", as_dict=True)
    for workload_id, name, mod_json in workloads.iter_rows():
        task = Task(name, module_from_json(mod_json), hardware.target)
        yield task, groups[(workload_id,)]


def _compute(task: Task, rows: pl.DataFrame, sketches: dict[str, Sketch]) -> dict[str, Stores]:
    space = DesignSpace(task)
    schedules = {}
    for row in rows.iter_rows(named=True):
        program = Program.from_row(row["workload_id"], row["sketch_id"], row["decisions"])
        schedule = space.lower(program, sketches.get(program.sketch_id))
        if schedule is not None:
            schedules[row["program_id"]] = schedule
    stores = extract_stores(space.context, list(schedules.values()))
    return dict(zip(schedules, stores, strict=True))
