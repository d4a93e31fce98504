"""Mutation records: programs changed in every direction, and what a cost model thinks of it.

They teach which direction pays for which program (Han et al. 2025, "mutation direction
prediction"). The children that were also measured are found by their ids.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import polars as pl

from costlib.canary_times import CanaryTimes
from costlib.data.dataset import Dataset
from costlib.data.task_tables import task_of
from costlib.features.task_encoder import TaskEncoder
from costlib.hardware import Hardware
from costlib.hub.bundle import Bundle
from costlib.identity import content_id
from costlib.schema import Status
from costlib.space.design_space import DesignSpace
from costlib.space.program import Program


def record_mutations(
    dataset: Dataset,
    hardware: Hardware,
    bundle: Bundle,
    *,
    parents: int,
    seed: int = 0,
    deadline: float | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> int:
    """Change measured programs in every direction and score the children, until enough are.

    Parents of measured mutations come first, each with the very children that were
    measured; other directions get one new child each. Parents are spread evenly over the tasks.

    Parameters
    ----------
    dataset
        The dataset; records go to its ``mutations`` table, a part for each task.
    hardware
        Whose programs to take.
    bundle
        Its cost model scores.
    parents
        How many parents the table should hold for this hardware.
    seed
        Decides which children are made.
    deadline
        Stop after the task in which ``time.monotonic()`` passes this.
    on_progress
        Called with (parents done, parents wanted) after each task.

    Returns
    -------
    int
        How many parents the table holds now.
    """
    chosen = _choose_parents(dataset, hardware, parents)
    done = parents - len(chosen)
    if chosen.is_empty():
        return done
    workloads = (
        dataset.scan("workloads")
        .filter(pl.col("workload_id").is_in(chosen["workload_id"].unique().to_list()))
        .select("workload_id", "name", "mod_json")
        .collect()
    )
    children = _measured_children(dataset, hardware, chosen)
    canary = dataset.canary(hardware.hardware_id)
    by_task = chosen.partition_by("workload_id", as_dict=True)
    for row in workloads.iter_rows(named=True):
        rows = by_task[(row["workload_id"],)]
        space = DesignSpace(task_of(row, hardware))
        records = list(_records(space, rows, children, hardware, bundle, canary, seed))
        dataset.append_mutations(hardware.hardware_id, records)
        done += len(rows)
        if on_progress is not None:
            on_progress(done, parents)
        if deadline is not None and time.monotonic() > deadline:
            break
    return done


def _choose_parents(dataset: Dataset, hardware: Hardware, wanted: int) -> pl.DataFrame:
    """Programs that are not in the table yet: parents of measured ones first, task by task."""
    here = pl.col("hardware") == hardware.hardware_id
    known = dataset.scan("mutations").filter(here).select("parent_id").unique()
    missing = wanted - int(known.select(pl.len()).collect().item())
    records = dataset.scan().filter(here)
    have_children = (
        records.filter(pl.col("parent_id").is_not_null())
        .select(program_id="parent_id", has_children=True)
        .unique()
    )
    return (
        records.filter(pl.col("status") == str(Status.OK))
        .join(known, left_on="program_id", right_on="parent_id", how="anti")
        .join(have_children, on="program_id", how="left")
        .select("workload_id", "program_id", "sketch_id", "decisions", "has_children")
        .sort(pl.col("has_children").is_null(), "program_id")
        .with_columns(turn=pl.int_range(pl.len()).over("workload_id"))
        .sort(pl.col("has_children").is_null(), "turn", "workload_id")
        .head(max(missing, 0))
        .collect()
    )


def _measured_children(
    dataset: Dataset, hardware: Hardware, parents: pl.DataFrame
) -> dict[str, list[tuple[str, str]]]:
    """Return (direction, decisions) of the measured children of each parent."""
    rows = (
        dataset.scan()
        .filter(pl.col("hardware") == hardware.hardware_id)
        .filter(pl.col("parent_id").is_in(parents["program_id"].to_list()))
        .filter(pl.col("direction").is_not_null())
        .select("parent_id", "direction", "decisions")
        .collect()
    )
    found: dict[str, list[tuple[str, str]]] = {}
    for parent_id, direction, decisions in rows.iter_rows():
        found.setdefault(parent_id, []).append((direction, decisions))
    return found


def _records(
    space: DesignSpace,
    rows: pl.DataFrame,
    measured: dict[str, list[tuple[str, str]]],
    hardware: Hardware,
    bundle: Bundle,
    canary: CanaryTimes | None,
    seed: int,
) -> Iterator[dict[str, Any]]:
    parents: list[Program] = []
    families: list[list[tuple[str, Program]]] = []
    for row in rows.iter_rows(named=True):
        parent = Program.from_row(row["workload_id"], row["sketch_id"], row["decisions"])
        if parent.sketch_id in {sketch.sketch_id for sketch in space.sketches}:
            parents.append(parent)
            families.append(_family(space, parent, measured.get(parent.program_id, []), seed))
    everyone = [*parents, *(child for family in families for _, child in family)]
    values = _scores(space, everyone, hardware, bundle, canary)
    scores = dict(zip((p.program_id for p in everyone), values, strict=True))
    for parent, family in zip(parents, families, strict=True):
        for direction, child in family:
            yield {
                "parent_id": parent.program_id,
                "direction": direction,
                "program_id": child.program_id,
                "workload_id": child.workload_id,
                "sketch_id": child.sketch_id,
                "decisions": child.decisions_json(),
                "parent_score": scores[parent.program_id],
                "child_score": scores[child.program_id],
                "model": bundle.fingerprint,
            }


def _family(
    space: DesignSpace, parent: Program, measured: list[tuple[str, str]], seed: int
) -> list[tuple[str, Program]]:
    """The measured children of a parent, and one in each direction that has none."""
    family = [
        (direction, Program.from_row(parent.workload_id, parent.sketch_id, decisions))
        for direction, decisions in measured
    ]
    for direction in space.directions(parent):
        if direction not in dict(family):
            number = int(content_id(seed, parent.program_id, direction)[:8], 16) % 2**31
            mutation = space.mutate(parent, number, direction)
            if mutation is not None:
                family.append((direction, mutation[0]))
    return family


def _scores(
    space: DesignSpace,
    programs: list[Program],
    hardware: Hardware,
    bundle: Bundle,
    canary: CanaryTimes | None,
) -> list[float | None]:
    """Score programs; ``None`` for those that do not pass the postprocessors."""
    schedules = [space.lower(program) for program in programs]
    valid = [index for index, schedule in enumerate(schedules) if schedule is not None]
    scores: list[float | None] = [None] * len(programs)
    if valid:
        encoder = TaskEncoder.of_space(space, hardware, canary)
        lowered = encoder.lowered(space.context, [schedules[index] for index in valid])
        for index, value in zip(valid, bundle.statement_model().predict(lowered), strict=True):
            scores[index] = float(value)
    return scores
