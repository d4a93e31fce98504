"""A dataset as arrays: all of it, or as a stream in bounded memory however large it is."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import polars as pl

from costlib.arrays import Bools, Float32s, Floats, Integers
from costlib.data.dataset import Dataset
from costlib.errors import DatasetError, UnknownNameError
from costlib.features.batch import FeatureBatch, join, select
from costlib.features.build import build_features
from costlib.features.columns import columns_of
from costlib.features.lowered import lowered_context
from costlib.features.precision import precision
from costlib.features.programs import programs_by_task
from costlib.features.store import FeatureStore
from costlib.features.task_context import task_features
from costlib.features.task_encoder import TaskEncoder
from costlib.hardware import Hardware
from costlib.models.base import View
from costlib.schema import CacheState
from costlib.tvm_compat.api import module_from_json

Chosen = Collection[str] | None
"""Ids of workloads or of hardware; ``None`` for all."""

Progress = Callable[[int, int], None] | None
"""Called with (done, total)."""


@dataclass(frozen=True)
class TrainingData:
    """`n` measured programs as arrays.

    Attributes
    ----------
    batch
        Their features.
    latency_s
        float64 `n`: latencies in seconds.
    labels
        float64 `n`: best latency of the task on the hardware / latency, in (0, 1]. The best may
        be that of a program that cannot be replayed.
    groups
        int64 `n`: index into ``tasks``; the programs of a task are next to each other.
    tasks
        (workload_id, hardware_id) of each group. What was measured in another state of the caches
        is a group of its own, and comes after all that was measured warm.
    """

    batch: FeatureBatch
    latency_s: Floats
    labels: Floats
    groups: Integers
    tasks: list[tuple[str, str]]

    def rows(self, chosen: Bools) -> TrainingData:
        """Return the programs that are chosen, bool `n`; the tasks keep their numbers."""
        return TrainingData(
            select(self.batch, chosen),
            self.latency_s[chosen],
            self.labels[chosen],
            self.groups[chosen],
            self.tasks,
        )


def batches(
    dataset: Dataset,
    *,
    only: Chosen = None,
    hardware: Chosen = None,
    view: View = "statements",
    programs: int = 16_384,
    on_progress: Progress = None,
) -> Iterator[TrainingData]:
    """Stream the programs that ran, and that this TVM can replay.

    Parameters
    ----------
    only, hardware
        Workload ids and hardware ids to take; all if not given.
    view
        What the features describe, see :class:`costlib.models.base.CostModel`. Schedules need no
        replaying: programs of imported logs are then among them.
    programs
        A batch ends with the task that brings it to this many programs or more: tasks are never
        cut, so that they can be ranked.
    on_progress
        Called with (done, total) programs while missing features are computed, which is before
        the first batch.

    Yields
    ------
    TrainingData
        The same batches in the same order each time.

    Raises
    ------
    DatasetError
        A latency is no positive number, or a part is damaged.
    UnknownNameError
        The dataset has no such hardware.
    """
    tasks: list[TrainingData] = []
    stream = (
        _statements(dataset, only, hardware, on_progress)
        if view == "statements"
        else _schedules(dataset, only, hardware)
    )
    for task in stream:
        tasks.append(task)
        if sum(len(task.labels) for task in tasks) >= programs:
            yield concatenate(tasks)
            tasks = []
    if tasks:
        yield concatenate(tasks)


def assemble(
    dataset: Dataset,
    *,
    only: Chosen = None,
    hardware: Chosen = None,
    view: View = "statements",
    on_progress: Progress = None,
) -> TrainingData:
    """Bring the programs that ran, and that this TVM can replay, into arrays.

    For the parameters see :func:`batches`.

    Raises
    ------
    DatasetError
        There is no such program.
    """
    parts = list(batches(dataset, only=only, hardware=hardware, view=view, on_progress=on_progress))
    if not parts:
        raise DatasetError(
            f"{dataset.path} holds no measured program of the tasks asked for; "
            "see `costlib dataset info`"
        )
    return concatenate(parts)


def concatenate(parts: Iterable[TrainingData]) -> TrainingData:
    """Append training data to one another; at least one, and each task in one of them only."""
    parts = list(parts)
    shifts = np.cumsum([0, *(len(part.tasks) for part in parts)])
    groups = [part.groups + shift for part, shift in zip(parts, shifts, strict=False)]
    return TrainingData(
        join([part.batch for part in parts]),
        np.concatenate([part.latency_s for part in parts]),
        np.concatenate([part.labels for part in parts]),
        np.concatenate(groups),
        [task for part in parts for task in part.tasks],
    )


def measured_tasks(
    dataset: Dataset,
    store: FeatureStore,
    hardware_id: str,
    only: Chosen = None,
    cache: CacheState = CacheState.WARM,
) -> Iterator[tuple[str, pl.DataFrame]]:
    """Go through the tasks whose statements :func:`batches` streams, without their features.

    Yields
    ------
    workload_id, programs
        ``programs`` has ``program_id``, ``latency_s``, the median if it was measured more than
        once, and ``label``.

    Raises
    ------
    DatasetError
        A latency is no positive number.
    """
    for workload_id, labelled in _labelled(dataset, hardware_id, only, cache):
        usable = store.known(workload_id).filter(pl.col("num_stores") > 0)
        programs = labelled.join(usable, on="program_id", how="semi", maintain_order="left")
        if len(programs):
            yield workload_id, programs


def _labelled(
    dataset: Dataset, hardware_id: str, only: Chosen, cache: CacheState, *columns: pl.Expr
) -> Iterator[tuple[str, pl.DataFrame]]:
    latency_s = pl.col("latency_s")
    sound = (latency_s.is_finite() & (latency_s > 0)).fill_null(False).all().alias("sound")
    for workload_id, ran in programs_by_task(
        dataset, hardware_id, latency_s.median(), sound, *columns, only=only, cache=cache
    ):
        wrong = ran.filter(~pl.col("sound"))["program_id"]
        if len(wrong):
            raise DatasetError(
                f"{dataset.path}: program {wrong[0]} ran on {hardware_id}, but its latency is no "
                "positive number; see `costlib dataset verify`"
            )
        yield workload_id, ran.drop("sound").with_columns(label=latency_s.min() / latency_s)


def chosen_hardware(dataset: Dataset, chosen: Chosen) -> dict[str, Hardware]:
    """Return those hardwares of a dataset by their ids; if ``None``, all that are real.

    Raises
    ------
    UnknownNameError
        The dataset has no such hardware.
    DatasetError
        None is named, and all are simulated; or they are CPUs and GPUs, which no model learns
        together: their programs are described by other numbers.
    """
    known = dataset.hardware()
    for hardware_id in chosen or ():
        if hardware_id not in known:
            raise UnknownNameError("hardware", hardware_id, known)
    if chosen is not None:
        return _of_one_kind(dataset, {i: h for i, h in known.items() if i in chosen})
    real = {i: h for i, h in known.items() if not h.is_simulated}
    if known and not real:
        raise DatasetError(
            f"{dataset.path} holds made-up latencies of {min(known)} alone; measure on a real "
            "device, or name that hardware if this is what you want"
        )
    return _of_one_kind(dataset, real)


def trained_columns(dataset: Dataset, view: View, chosen: Chosen) -> tuple[str, ...]:
    """Return the columns that programs of a dataset are described by, on the chosen hardware."""
    kinds = {hardware.kind for hardware in chosen_hardware(dataset, chosen).values()}
    return columns_of(view, *kinds)


def _of_one_kind(dataset: Dataset, chosen: dict[str, Hardware]) -> dict[str, Hardware]:
    kinds = {hardware.kind: hardware_id for hardware_id, hardware in chosen.items()}
    if len(kinds) > 1:
        names = " and ".join(sorted(kinds.values()))
        raise DatasetError(
            f"{dataset.path} holds programs of CPUs and of GPUs, which no model learns together; "
            f"name hardware of one kind, such as {names}"
        )
    return chosen


def among(rows: pl.LazyFrame, column: str, chosen: Chosen) -> pl.LazyFrame:
    """Return the rows whose column is among those chosen, all if ``None``."""
    return rows if chosen is None else rows.filter(pl.col(column).is_in(list(chosen)))


def measured_rows(dataset: Dataset, hardware: Chosen, only: Chosen = None) -> pl.LazyFrame:
    """Return the measurements of some workloads on :func:`chosen_hardware`."""
    rows = among(dataset.scan(), "hardware", chosen_hardware(dataset, hardware))
    return among(rows, "workload_id", only)


def most_frequent_hardware(rows: pl.LazyFrame, hardware: Chosen) -> str | None:
    """Return that of the chosen hardware which most rows are of, ``None`` if there are no rows."""
    counts = among(rows, "hardware", hardware).group_by("hardware").agg(pl.len())
    ranked = counts.sort("len", "hardware", descending=True).collect()["hardware"]
    return None if ranked.is_empty() else str(ranked[0])


def workload_rows(dataset: Dataset) -> dict[str, dict[str, Any]]:
    """Return the rows of a dataset's ``workloads`` by their ids."""
    rows = dataset.scan("workloads").drop("mod_script").collect()
    return {row["workload_id"]: row for row in rows.iter_rows(named=True)}


def schedule_describer(dataset: Dataset) -> Callable[..., FeatureBatch]:
    """Return what describes a workload's programs by ``sketch_id`` and ``decisions``.

    It is told the workload's id, the hardware, the programs, and what they find in the caches.
    """
    sketches = dataset.scan("sketches").select("sketch_id", "instructions").collect()
    instructions = {sketch_id: json.loads(text) for sketch_id, text in sketches.iter_rows()}
    rows = workload_rows(dataset)

    def describe(
        workload_id: str,
        hardware: Hardware,
        programs: pl.DataFrame,
        cache: CacheState = CacheState.WARM,
    ) -> FeatureBatch:
        used = {one: instructions[one] for one in programs["sketch_id"].unique()}
        canary = dataset.canary(hardware.hardware_id)
        encoder = TaskEncoder.of_row(rows[workload_id], used, hardware, canary, cache)
        return encoder.written_schedules(
            programs["sketch_id"].to_list(), programs["decisions"].to_list()
        )

    return describe


def _statements(
    dataset: Dataset, only: Chosen, hardware: Chosen, on_progress: Progress
) -> Iterator[TrainingData]:
    rows = workload_rows(dataset)
    types: dict[str, Float32s] = {}
    machines = chosen_hardware(dataset, hardware)
    for cache, (hardware_id, machine) in product(CacheState, machines.items()):
        store = build_features(dataset, hardware_id, on_progress, only)
        canary = dataset.canary(hardware_id)
        for workload_id, programs in measured_tasks(dataset, store, hardware_id, only, cache):
            stores, offsets, nests = store.select(workload_id, programs["program_id"])
            row = rows[workload_id]
            if workload_id not in types:
                types[workload_id] = _types(row)
            flops = row["flops"] or 0.0
            task = task_features(flops, types[workload_id], machine, canary, cache)
            context = lowered_context(task, nests)
            batch = FeatureBatch(stores, offsets, context, columns_of("statements", machine.kind))
            yield _task(batch, programs, workload_id, hardware_id)


def _types(row: Mapping[str, Any]) -> Float32s:
    """Return the :func:`precision` of a workload, which has an IR."""
    arguments = [(argument["dtype"], argument["shape"]) for argument in row["arguments"]]
    return precision(arguments, module_from_json(row["mod_json"]))


def _schedules(dataset: Dataset, only: Chosen, hardware: Chosen) -> Iterator[TrainingData]:
    describe = schedule_describer(dataset)
    columns = (pl.col("sketch_id").first(), pl.col("decisions").first())
    machines = chosen_hardware(dataset, hardware)
    for cache, (hardware_id, machine) in product(CacheState, machines.items()):
        for workload_id, programs in _labelled(dataset, hardware_id, only, cache, *columns):
            described = describe(workload_id, machine, programs, cache)
            yield _task(described, programs, workload_id, hardware_id)


def _task(
    batch: FeatureBatch, programs: pl.DataFrame, workload_id: str, hardware_id: str
) -> TrainingData:
    return TrainingData(
        batch,
        programs["latency_s"].to_numpy(),
        programs["label"].to_numpy(),
        np.zeros(len(programs), "int64"),
        [(workload_id, hardware_id)],
    )
