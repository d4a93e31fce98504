"""A smaller dataset that is complete in itself."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from costlib.data.copying import copy_rows
from costlib.data.dataset import HELD_OUT_FOLDER, Dataset
from costlib.data.provenance import note_sources
from costlib.errors import InputError
from costlib.identity import content_id


def sample(
    path: str | Path,
    out: str | Path,
    programs_per_task: int,
    tasks: int | None = None,
    seed: int = 0,
) -> Dataset:
    """Copy some programs of some tasks, and all that they refer to; held-out tasks likewise.

    The same programs are chosen whenever the same are there. Mutation records come along with
    their parents.

    Parameters
    ----------
    out
        The smaller dataset's folder; made if it does not exist.
    programs_per_task
        At most this many programs of each task on each hardware.
    tasks
        At most this many tasks, and as many held-out ones; all by default.
    seed
        Another seed chooses others.

    Raises
    ------
    InputError
        A number is not positive, or ``out`` holds something else.
    DatasetError
        The dataset cannot be read.
    StorageError
        ``out`` cannot be written; what is there already is sound.
    """
    if programs_per_task < 1 or (tasks is not None and tasks < 1):
        raise InputError("the numbers of programs and of tasks must be at least 1")
    source = Dataset.open(path)
    if Path(out).resolve() == Path(path).resolve():
        raise InputError(f"{out} is to be sampled itself; choose a new folder for the output")
    target = Dataset.create(out)
    note_sources(target, [path], [source])
    held_out = source.held_out()
    if held_out is not None:
        inner = Dataset.create(target.path / HELD_OUT_FOLDER)
        _copy_sample(held_out, inner, programs_per_task, tasks, seed)
    _copy_sample(source, target, programs_per_task, tasks, seed)
    return target


def _copy_sample(
    source: Dataset, target: Dataset, programs_per_task: int, tasks: int | None, seed: int
) -> None:
    with source.reading():
        workloads, sketches, programs = _choose(source, programs_per_task, tasks, seed)
        for hardware_id in target.hardware():
            if not target.measured(hardware_id) <= programs.get(hardware_id, set()):
                raise InputError(
                    f"{target.path} holds other programs; choose a new folder for the output"
                )

        def wanted(table: str, hardware_id: str | None, rows: pl.DataFrame) -> pl.DataFrame:
            if table == "sketches":
                column, ids = "sketch_id", sketches
            elif hardware_id is None:
                column, ids = "workload_id", workloads
            else:
                column = "parent_id" if table == "mutations" else "program_id"
                ids = programs.get(hardware_id, set())
            return rows.filter(pl.col(column).is_in(list(ids)))

        copy_rows([source], target, wanted)


def _choose(
    source: Dataset, programs_per_task: int, tasks: int | None, seed: int
) -> tuple[set[str], set[str], dict[str, set[str]]]:
    """Return ids of workloads, of sketches, and of programs by hardware."""
    rows = source.scan()
    measured = rows.select(pl.col("workload_id").unique()).collect().to_series()
    workloads = sorted(measured, key=lambda workload_id: content_id(seed, workload_id))[:tasks]
    # A program's id is a hash already; an odd factor shuffles them, and can be undone.
    factor = int(content_id(seed), 16) | 1
    program = pl.col("program_id").str.to_integer(base=16, dtype=pl.UInt64)
    rank = program * pl.lit(factor, pl.UInt64)
    lowest = (
        rows.filter(pl.col("workload_id").is_in(workloads))
        .select("hardware", "workload_id", rank=rank)
        .unique()
        .group_by("hardware", "workload_id")
        .agg(pl.col("rank").bottom_k(programs_per_task))
        .collect(engine="streaming")
    )
    undo = pow(factor, -1, 2**64)
    programs: dict[str, set[str]] = {}
    for hardware_id, _, ranks in lowest.iter_rows():
        program_ids = (f"{rank * undo % 2**64:016x}" for rank in ranks)
        programs.setdefault(hardware_id, set()).update(program_ids)
    sketches: set[str] = set()
    for hardware_id, ids in programs.items():
        for frame, column in ((rows, "program_id"), (source.scan("mutations"), "parent_id")):
            of_ids = (pl.col("hardware") == hardware_id) & pl.col(column).is_in(list(ids))
            used = frame.filter(of_ids).select(pl.col("sketch_id").unique())
            sketches.update(used.collect().to_series())
    return set(workloads), sketches, programs
