"""Many small parts into few large ones: fewer files to open, and a fraction of the bytes.

Other processes may read and append meanwhile. A new part replaces its group of old ones in the
moment it is renamed into place (:mod:`costlib.data.parts`), so a kill at any moment leaves a
dataset with the same rows, and compacting again ends what was begun. Only a reader that
knows nothing of costlib may see rows twice, until the old parts are removed a moment later.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pyarrow as pa

from costlib.data.dataset import Dataset
from costlib.data.duplicates import repeated_rows
from costlib.data.parts import (
    check_part,
    has_other_columns,
    list_parts,
    read_part,
    remove_replaced,
    replaced_parts,
    write_part,
)
from costlib.errors import DatasetError
from costlib.files import locked
from costlib.frozen import Frozen
from costlib.schema import TABLES

PART_BYTES = 32 << 20
"""Parts grow up to this size; a group of parts of this size is in memory at once."""

ORDER = {
    "workloads": ["name", "workload_id"],
    "sketches": ["language", "instructions"],
    "networks": ["network", "workload_id"],
    "measurements": ["workload_id", "sketch_id", "decisions"],
    "mutations": ["workload_id", "parent_id", "direction"],
}
"""Similar rows beside each other: they compress well, and a task's rows are in few pages."""


class Compaction(Frozen):
    """What a compaction did.

    Attributes
    ----------
    parts_before, parts_after
        Parts of all tables, those of the held-out tasks included.
    bytes_before, bytes_after
        Their size.
    dropped
        Rows that repeated others, and are gone.
    """

    parts_before: int
    parts_after: int
    bytes_before: int
    bytes_after: int
    dropped: int = 0


def compact(dataset: Dataset, *, drop_duplicates: bool = False) -> Compaction:
    """Put few sorted parts in the place of many, and end an interrupted compaction.

    Parameters
    ----------
    drop_duplicates
        Keep once what should be there once, see :mod:`costlib.data.duplicates`.

    Raises
    ------
    DatasetError
        A part is damaged; it and the parts after it are as they were.
    StorageError
        The dataset cannot be written; no row is lost.
    """
    held_out = dataset.held_out()
    datasets = [dataset, held_out] if held_out else [dataset]
    before = _sizes(datasets)
    dropped = 0
    for one in datasets:
        for table in TABLES:
            with locked(one.path / table):
                for folder in one.folders(table):
                    if drop_duplicates:
                        dropped += _drop_duplicates(one, folder, table)
                    _compact_folder(one, folder, table)
    after = _sizes(datasets)
    return Compaction(
        parts_before=len(before),
        parts_after=len(after),
        bytes_before=sum(before),
        bytes_after=sum(after),
        dropped=dropped,
    )


def sort_rows(table: str, rows: pa.Table) -> pa.Table:
    """Sort rows of a table as its parts should be."""
    return rows.sort_by([(column, "ascending") for column in ORDER[table]])


def _sizes(datasets: list[Dataset]) -> list[int]:
    return [
        part.stat().st_size
        for dataset in datasets
        for table in TABLES
        for part in dataset.part_files(table)
    ]


def _compact_folder(dataset: Dataset, folder: Path, table: str) -> None:
    tidy(dataset, folder)
    schema = TABLES[table]
    for group in _groups(list_parts(folder), schema):
        rows = pa.concat_tables(read_part(part, schema) for part in group)
        names = [part.name for part in group]
        write_part(folder, sort_rows(table, rows), schema, dataset.scratch, replaces=names)
        tidy(dataset, folder)


def _drop_duplicates(dataset: Dataset, folder: Path, table: str) -> int:
    """Put parts without what repeats others in the place of those with it; say how many rows."""
    tidy(dataset, folder)
    schema = TABLES[table]
    found = repeated_rows(list_parts(folder), table)
    for part, rows in found.items():
        if has_other_columns(part, schema):
            raise DatasetError(
                f"{part} repeats rows, and has columns that would be lost; "
                "use the costlib that wrote it"
            )
        kept = pl.DataFrame(read_part(part, schema)).with_row_index("row")
        kept = kept.filter(~pl.col("row").is_in(rows)).drop("row")
        content = kept.to_arrow().cast(schema)
        write_part(folder, content, schema, dataset.scratch, replaces=[part.name])
        tidy(dataset, folder)
    return sum(map(len, found.values()))


def tidy(dataset: Dataset, folder: Path) -> None:
    """Remove replaced parts once nobody reads them.

    A part may only be replaced after those that it replaced itself are gone: they would
    count again.
    """
    if replaced_parts(folder):
        with locked(dataset.path):
            remove_replaced(folder)


def _groups(found: list[Path], schema: pa.Schema) -> Iterator[list[Path]]:
    """Yield groups of small parts, oldest first, that make a part of a good size each."""
    group: list[Path] = []
    size = 0
    for part in found:
        part_size = part.stat().st_size
        if part_size > PART_BYTES // 2:
            continue
        check_part(part, schema)
        if has_other_columns(part, schema):
            continue  # Its other columns would be lost.
        if size + part_size > PART_BYTES:
            yield group
            group, size = [], 0
        group.append(part)
        size += part_size
    if len(group) > 1:
        yield group
