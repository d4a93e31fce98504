"""Copy rows from datasets into another, once each: what merging and sampling share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import polars as pl
import pyarrow as pa

from costlib.canary_times import CanaryTimes
from costlib.data.checks import repeated
from costlib.data.compact import sort_rows
from costlib.data.dataset import Dataset
from costlib.data.duplicates import KEYS
from costlib.data.parts import hardware_of, read_part
from costlib.errors import DatasetError
from costlib.measure.correction import corrected_latency
from costlib.schema import PARTITIONED, TABLES

BATCH_ROWS = 1 << 17
"""Rows that are kept in memory, and written as one part."""

Wanted = Callable[[str, str | None, pl.DataFrame], pl.DataFrame]
"""From a table, a hardware id (or ``None``) and rows to those of them that are to be copied."""


@dataclass
class Copied:
    """How many measurements were appended, and how many were there already.

    Those ``corrected``, among the appended, have another latency for another reference of the
    canaries.
    """

    measurements: int = 0
    repeated: int = 0
    corrected: int = 0


def references(datasets: Sequence[Dataset]) -> dict[str, CanaryTimes]:
    """Return the fastest canaries that any of the datasets refers to, for each hardware."""
    fastest: dict[str, CanaryTimes] = {}
    for dataset in datasets:
        for hardware_id in dataset.hardware():
            if canary := dataset.canary(hardware_id):
                fastest[hardware_id] = fastest.get(hardware_id, canary).better_of(canary)
    return fastest


def copy_rows(sources: Sequence[Dataset], target: Dataset, wanted: Wanted) -> Copied:
    """Append the wanted rows of all tables that ``target`` does not hold yet.

    Latencies are corrected to the reference that ``target`` has for their hardware, the one
    of :func:`references`. What a measurement refers to is written before it.

    Raises
    ------
    DatasetError
        ``target`` has another reference, or a part is damaged.
    StorageError
        ``target`` cannot be written.
    """
    copied = Copied()
    fastest = references([*sources, target])
    for source in sources:
        for hardware_id, hardware in source.hardware().items():
            reference = target.add_hardware(hardware, fastest.get(hardware_id))
            if reference != fastest.get(hardware_id):
                raise DatasetError(
                    f"{target.path} has another canary reference for {hardware_id}; "
                    "choose a new folder for the output"
                )
    for table in TABLES:
        if table not in PARTITIONED:
            found = (wanted(table, None, frame) for frame in _frames(sources, table))
            for rows in _batches(table, found):
                target.append_table(table, rows)
    for hardware_id in target.hardware():
        for table in PARTITIONED:
            new = _new_rows(sources, target, table, hardware_id, wanted, copied)
            for rows in _batches(table, new):
                target.append_table(table, rows, hardware_id)
    return copied


def _new_rows(
    sources: Sequence[Dataset],
    target: Dataset,
    table: str,
    hardware_id: str,
    wanted: Wanted,
    copied: Copied,
) -> Iterator[pl.DataFrame]:
    known: set[int] = set()
    for frame in _frames([target], table, hardware_id):
        known.update(frame.select(KEYS[table]).to_series())
    reference = target.canary(hardware_id)
    for source in sources:
        is_other = source.canary(hardware_id) != reference
        for frame in _frames([source], table, hardware_id):
            rows = wanted(table, hardware_id, frame)
            new = rows.filter(~repeated(rows.select(KEYS[table]).to_series(), known))
            if table == "measurements":
                copied.measurements += len(new)
                copied.repeated += len(rows) - len(new)
                if reference is not None and is_other:
                    before, new = new["latency_s"], _correct(new, reference)
                    copied.corrected += int(new["latency_s"].ne_missing(before).sum())
            yield new


def _correct(rows: pl.DataFrame, reference: CanaryTimes) -> pl.DataFrame:
    """Correct latencies to ``reference``; those without canaries stay as they are."""
    columns = ["latency_s", "run_secs", "canary_compute", "canary_memory"]
    latencies_s = [
        corrected_latency(run_secs, compute, memory, reference)
        if latency_s is not None and run_secs and compute and memory
        else latency_s
        for latency_s, run_secs, compute, memory in rows.select(columns).iter_rows()
    ]
    return rows.with_columns(latency_s=pl.Series(latencies_s, dtype=pl.Float64))


def _frames(
    sources: Sequence[Dataset], table: str, hardware_id: str | None = None
) -> Iterator[pl.DataFrame]:
    """Yield the rows of each part."""
    for source in sources:
        for part in source.part_files(table):
            if hardware_id in (None, hardware_of(part)):
                yield pl.DataFrame(read_part(part, TABLES[table]))


def _batches(table: str, frames: Iterator[pl.DataFrame]) -> Iterator[pa.Table]:
    """Gather small frames, so that few parts are written."""
    gathered: list[pl.DataFrame] = []
    for frame in frames:
        gathered.append(frame)
        if sum(map(len, gathered)) >= BATCH_ROWS:
            yield _sorted(table, gathered)
            gathered = []
    if gathered:
        yield _sorted(table, gathered)


def _sorted(table: str, frames: list[pl.DataFrame]) -> pa.Table:
    return sort_rows(table, pl.concat(frames).to_arrow().cast(TABLES[table]))
