"""Tasks in a dataset: written when they are first met, and read back without extracting again."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import polars as pl

from costlib.data.dataset import Dataset
from costlib.hardware import Hardware
from costlib.schema import Language
from costlib.space.program import Sketch
from costlib.tvm_compat.api import module_from_json, module_to_json
from costlib.workloads.task import Task
from costlib.workloads.title import Argument, operator_kind, task_title


def register_workloads(dataset: Dataset, tasks: Iterable[Task], only: Collection[str]) -> None:
    """Note the tasks whose workload is among ``only``, and which network calls them how often."""
    wanted = [task for task in tasks if task.workload_id in only]
    known = set(dataset.scan("workloads").select("workload_id").collect().to_series())
    dataset.append_workloads(
        [workload_row(task) for task in wanted if task.workload_id not in known]
    )
    dataset.append_networks(
        [
            {"network": task.source, "workload_id": task.workload_id, "weight": task.weight}
            for task in wanted
            if task.source
        ]
    )


def register_sketches(dataset: Dataset, sketches: Iterable[Sketch]) -> None:
    """Note sketches of MetaSchedule."""
    dataset.append_sketches([sketch_row(sketch, Language.METASCHEDULE) for sketch in sketches])


def recorded_tasks(dataset: Dataset, network: str, hardware: Hardware) -> list[Task]:
    """Return the tasks noted for a network, to be compiled for ``hardware``; perhaps none."""
    calls = dataset.scan("networks").filter(pl.col("network") == network)
    rows = (
        dataset.scan("workloads")
        .join(calls, on="workload_id", how="inner", maintain_order="right")
        .filter(pl.col("mod_json").is_not_null())
        .select("name", "mod_json", "weight")
        .collect()
    )
    return [
        Task(name, module_from_json(mod_json), hardware.target, weight, network)
        for name, mod_json, weight in rows.iter_rows()
    ]


def stored_tasks(dataset: Dataset, workload_ids: Collection[str], hardware: Hardware) -> list[Task]:
    """Return the tasks of some workloads, to be compiled for ``hardware``; those with a module."""
    rows = (
        dataset.scan("workloads")
        .filter(pl.col("workload_id").is_in(list(workload_ids)) & pl.col("mod_json").is_not_null())
        .select("name", "mod_json")
        .collect()
    )
    return [task_of(row, hardware) for row in rows.iter_rows(named=True)]


def task_of(row: dict[str, Any], hardware: Hardware) -> Task:
    """Return the task of a row of ``workloads``, to be compiled for ``hardware``."""
    return Task(row["name"], module_from_json(row["mod_json"]), hardware.target)


def title_of(row: Mapping[str, Any]) -> str:
    """Return what people call the task of a row of ``workloads``."""
    return task_title(row["name"], _arguments(row), row["workload_id"])


def kind_of(row: Mapping[str, Any]) -> str:
    """Return what people call its operator."""
    return operator_kind(row["name"], _arguments(row))


def _arguments(row: Mapping[str, Any]) -> list[Argument]:
    return [(one["dtype"], one["shape"]) for one in row["arguments"]]


def sketch_row(sketch: Sketch, language: Language) -> dict[str, Any]:
    """Return the row of a sketch in ``sketches``."""
    return {
        "sketch_id": sketch.sketch_id,
        "language": str(language),
        "instructions": sketch.to_json(),
    }


def workload_row(task: Task) -> dict[str, Any]:
    """Return the row of a task in ``workloads``."""
    return {
        "workload_id": task.workload_id,
        "name": task.name,
        "arguments": [{"dtype": d, "shape": list(shape)} for d, shape in task.arguments],
        "flops": task.flops,
        "mod_json": module_to_json(task.mod),
        "mod_script": task.mod.script(show_meta=False),
    }
