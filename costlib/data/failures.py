"""Failed measurements: found, put right, and looked at for what is too bad to be true.

A measurement that failed because the machine did says something false about its program. Measured
again, the program's new record takes the place of the failed one in its part, in one step, as
compaction replaces parts (:mod:`costlib.data.parts`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import polars as pl

from costlib.data.compact import tidy
from costlib.data.dataset import Dataset
from costlib.data.parts import (
    has_other_columns,
    list_parts,
    read_part,
    table_from_rows,
    write_part,
)
from costlib.errors import DatasetError
from costlib.files import locked
from costlib.schema import CONFIRMED, MEASUREMENTS, Origin, Status

FAILURES = (
    Status.BUILD_ERROR,
    Status.BUILD_TIMEOUT,
    Status.RUN_ERROR,
    Status.RUN_TIMEOUT,
)
"""What a fault of the machine may be recorded as."""

_WHOLE_PART = 4
"""A part of at least so many rows, all of which failed alike, is suspicious."""

_SEVERAL_TASKS = 8
"""So are so many failures in a row, if they are of several tasks."""

_ONE_TASK = 16
"""And so many of one task: more than a batch."""


def failed() -> pl.Expr:
    """Rows of measurements here that failed to build or to run."""
    is_failure = pl.col("status").is_in([str(status) for status in FAILURES])
    return is_failure & (pl.col("origin") != str(Origin.IMPORTED))


def failures(
    dataset: Dataset, hardware_id: str, workload_ids: Sequence[str], before: datetime
) -> pl.DataFrame:
    """Return the failed measurements of some tasks, each program once.

    Parameters
    ----------
    before
        What was measured then or later is left out.
    """
    rows = dataset.scan().filter(
        (pl.col("hardware") == hardware_id)
        & pl.col("workload_id").is_in(list(workload_ids))
        & (pl.col("measured_at") < before)
        & failed()
    )
    return rows.unique("program_id", keep="first", maintain_order=True).collect()


def failed_workloads(dataset: Dataset, hardware_id: str) -> list[str]:
    """Return the ids of the workloads of which something failed on a hardware, sorted."""
    rows = dataset.scan().filter((pl.col("hardware") == hardware_id) & failed())
    return rows.select(pl.col("workload_id").unique().sort()).collect().to_series().to_list()


def replace_failures(dataset: Dataset, hardware_id: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """Put new measurements in the place of the failed ones of the same programs.

    Each part that holds such failures is replaced in one step, so a kill at any moment leaves each
    program its old record or its new one.

    Raises
    ------
    DatasetError
        A part is damaged, or has columns that would be lost.
    StorageError
        The dataset cannot be written; no record is lost.
    """
    new = pl.DataFrame(table_from_rows(rows, MEASUREMENTS))
    ids = new["program_id"].to_list()
    folder = dataset.path / "measurements" / f"hardware={hardware_id}"
    with locked(folder.parent):
        tidy(dataset, folder)
        for part in list_parts(folder):
            held = pl.DataFrame(read_part(part, MEASUREMENTS)).with_row_index("place")
            wrong = held.filter(failed() & pl.col("program_id").is_in(ids))
            if wrong.is_empty():
                continue
            if has_other_columns(part, MEASUREMENTS):
                raise DatasetError(f"{part} has columns that this costlib lacks; use a newer one")
            places = wrong.unique("program_id", keep="first").select("place", "program_id")
            fresh = new.join(places, on="program_id").select(held.columns)
            kept = held.join(wrong, on="place", how="anti")
            table = pl.concat([kept, fresh]).sort("place").drop("place").to_arrow()
            write_part(folder, table, MEASUREMENTS, dataset.scratch, replaces=[part.name])
            tidy(dataset, folder)
            new = new.join(places, on="program_id", how="anti")


class Block(NamedTuple):
    """Failures that follow one another.

    Attributes
    ----------
    part
        Name of the part with the first of them.
    what
        What is suspicious.
    """

    part: str
    what: str


def suspicious_blocks(parts: Iterable[tuple[str, pl.DataFrame]]) -> Iterator[Block]:
    """Find failures of one kind that follow one another as those of programs hardly do.

    Those of which it is noted that a program that is known to be good ran meanwhile are none.

    Parameters
    ----------
    parts
        Names of the parts of a hardware, and :func:`outcomes` of each.
    """
    named = [frame.with_columns(part=pl.lit(name)) for name, frame in parts]
    if not named:
        return
    rows = (
        pl.concat(named)
        .sort("measured_at", maintain_order=True)
        .with_columns(run=pl.col("kind").rle_id(), of_part=pl.len().over("part"))
        .filter(pl.col("kind").is_not_null())
        .with_columns(here=pl.len().over("run", "part"))
    )
    blocks = rows.group_by("run", maintain_order=True).agg(
        pl.first("kind", "part", "row", "program_id", "error"),
        count=pl.len(),
        tasks=pl.n_unique("workload_id"),
        last=pl.last("program_id"),
        whole=(pl.col("here") == pl.col("of_part")).any(),
    )
    for block in blocks.iter_rows(named=True):
        if _is_suspicious(block):
            tasks = f"{block['tasks']} tasks" if block["tasks"] > 1 else "one task"
            yield Block(
                block["part"],
                f"{block['count']} measurements in a row, of {tasks}, are failures of one kind "
                f"({block['kind']}: {block['error']}), from {block['program_id']} in row "
                f"{block['row']} to {block['last']}",
            )


def outcomes(part: pl.DataFrame) -> pl.DataFrame:
    """Return what :func:`suspicious_blocks` looks at; ``kind`` is null unless suspicious."""
    unexplained = failed() & ~pl.col("error").fill_null("").str.ends_with(CONFIRMED)
    return (
        part.with_row_index("row", offset=1)
        .filter(
            (pl.col("status") != str(Status.INVALID)) & (pl.col("origin") != str(Origin.IMPORTED))
        )
        .select(
            "row",
            "measured_at",
            "workload_id",
            kind=pl.when(unexplained).then("status"),
            program_id=pl.when(unexplained).then("program_id"),
            error=pl.when(unexplained).then("error").cast(pl.String),
        )
    )


def _is_suspicious(block: Mapping[str, Any]) -> bool:
    count = block["count"]
    if block["whole"] and count >= _WHOLE_PART:
        return True
    if block["kind"] == str(Status.RUN_TIMEOUT):
        return False  # Programs of a large task are slow, one like the other.
    return bool(count >= (_SEVERAL_TASKS if block["tasks"] > 1 else _ONE_TASK))
