"""The parts of a dataset's tables: parquet files that are there completely or not at all.

The scratch files of a dataset lie in a folder of their own, outside the tables: a plain
reader that lists a table's folder must not meet a file that is about to be renamed
(:mod:`costlib.files`).

Compaction (:mod:`costlib.data.compact`) writes one part that names, in its metadata, the parts
whose rows it holds. From the moment it is renamed into place those do not count; removing them
only tidies up, and whoever comes next finishes that where it was interrupted.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pydantic import TypeAdapter

from costlib.errors import DatasetError
from costlib.files import first_line, storage_errors, sync_folder, write_file
from costlib.schema import ADDED

PART_PATTERN = "part-*.parquet"

COMPACTED = "-compacted.parquet"
"""How the name of a part ends that replaces others."""

REPLACES = "costlib.replaces"
"""Where a part's parquet metadata names those, as a JSON list."""

MEND_PART = "remove that file, the rest stays readable (`costlib dataset verify` lists all)"
"""What to do about a damaged part."""

_ZSTD_LEVEL = 9
_ROW_GROUP = 1 << 16
_names = TypeAdapter(list[str])


def table_from_rows(rows: Sequence[Mapping[str, Any]], schema: pa.Schema) -> pa.Table:
    """Make a table of ``schema`` from one mapping per row.

    Columns that are nullable, or that :data:`costlib.schema.ADDED` has, may be left out.

    Raises
    ------
    DatasetError
        A row has a column that ``schema`` lacks, or a value that does not fit its column.
    """
    unknown = {name for row in rows for name in row} - set(schema.names)
    if unknown:
        raise DatasetError(f"no such column: {', '.join(sorted(unknown))}; see costlib.schema")
    columns = []
    for field in schema:
        try:
            values = [row.get(field.name, ADDED.get(field.name)) for row in rows]
            columns.append(pa.array(values, field.type))
        except (pa.ArrowException, ValueError, TypeError, OverflowError) as error:
            raise DatasetError(f"column '{field.name}' takes {field.type}: {error}") from error
    return _conform(pa.table(columns, names=schema.names), schema)


def write_part(
    folder: Path,
    table: pa.Table,
    schema: pa.Schema,
    scratch: Path | None = None,
    replaces: Sequence[str] = (),
) -> Path:
    """Add ``table`` to ``folder`` (made if missing) as a new part, and return that.

    Names of parts sort by time of writing and are unique among all processes.

    Parameters
    ----------
    table
        The rows, with exactly the columns of ``schema`` in any order; types are cast.
    scratch
        See :func:`write_file`.
    replaces
        Names of parts in ``folder`` that do not count from then on, because ``table`` holds
        their rows.

    Raises
    ------
    DatasetError
        ``table`` does not fit ``schema``, or has a null where it allows none.
    StorageError
        The part could not be written; nothing has changed.
    """
    rows = _conform(table, schema)
    buffer = pa.BufferOutputStream()
    try:
        # Arrow's own copy of the schema would double the size of a small part.
        with pq.ParquetWriter(
            buffer,
            schema,
            use_dictionary=_repetitive(rows),
            compression="zstd",
            compression_level=_ZSTD_LEVEL,
            write_page_checksum=True,
            store_schema=False,
        ) as writer:
            writer.write_table(rows, row_group_size=_ROW_GROUP)
            if replaces:
                writer.add_key_value_metadata({REPLACES: json.dumps(list(replaces))})
    except pa.ArrowInvalid as error:
        raise DatasetError(f"rows do not fit the table: {error}") from error
    name = f"part-{time.time_ns():020d}-{secrets.token_hex(4)}"
    part = folder / f"{name}{COMPACTED if replaces else '.parquet'}"
    write_file(part, buffer.getvalue(), scratch)
    return part


def read_part(part: Path, schema: pa.Schema) -> pa.Table:
    """Read a part; columns of ``schema`` that it lacks are null, others are left out.

    Those of :data:`costlib.schema.ADDED` hold what that says instead.

    Raises
    ------
    DatasetError
        It is damaged, a checksum does not hold, or a column has another type.
    """
    check_part(part, schema)
    try:
        rows = read_table(part, schema.names)
        columns = [
            rows[field.name]
            if field.name in rows.column_names
            else pa.repeat(pa.scalar(ADDED.get(field.name), field.type), len(rows))
            for field in schema
        ]
        return pa.table(columns, names=schema.names).cast(schema)
    except (pa.ArrowException, ValueError, OSError) as error:
        raise DatasetError(f"{part} is damaged ({first_line(error)}); {MEND_PART}") from error


def read_table(file: Path, columns: list[str] | None = None) -> pa.Table:
    """Read a parquet file, or some columns, by Arrow: it survives damage that ends polars.

    Metadata are left out: polars does not survive keys that are no text. Columns that are not
    there are left out, too.

    Raises
    ------
    OSError, ValueError
        It is damaged, a checksum does not hold, or text in it is no UTF-8.
    """
    try:
        # A plain file: the dataset reader would add a column for the folder's hardware.
        table = pq.ParquetFile(file, page_checksum_verification=True).read(columns=columns)
        table.validate(full=True)
    except pa.ArrowException as error:
        raise ValueError(str(error)) from None
    return table.replace_schema_metadata()


def check_part(part: Path, schema: pa.Schema) -> None:
    """Raise :class:`DatasetError` if :func:`part_fault` finds something."""
    fault = part_fault(part, schema)
    if fault is not None:
        raise DatasetError(f"{part} {fault}; {MEND_PART}")


def part_fault(part: Path, schema: pa.Schema) -> str | None:
    """Say what is wrong with a part by its footer, ``None`` if nothing is.

    It may be damaged, or a column has another type than in ``schema``; a missing one is no fault.
    """
    try:
        found = pq.read_schema(part)
    except (pa.ArrowException, ValueError, OSError) as error:
        return f"is damaged ({first_line(error)})"
    if found.equals(schema):
        return None
    columns, wanted = polars_schema(found), polars_schema(schema)
    for name in columns.keys() & wanted.keys():
        if columns[name] != wanted[name]:
            return f"has a column '{name}' of {columns[name]} instead of {wanted[name]}"
    return None


def has_other_columns(part: Path, schema: pa.Schema) -> bool:
    """Whether a part has columns that ``schema`` lacks: a newer costlib wrote it."""
    return bool(set(pq.read_schema(part).names) - set(schema.names))


def read_columns(part: Path, schema: pl.Schema) -> pl.DataFrame:
    """Read some columns quickly, as :meth:`costlib.data.dataset.Dataset.scan` does.

    Raises
    ------
    FileNotFoundError
        The part is not there any more.
    """
    scanned = pl.scan_parquet(
        part,
        schema=schema,
        missing_columns="insert",
        extra_columns="ignore",
        hive_partitioning=False,
    )
    return filled(scanned).collect()


def filled(frame: pl.LazyFrame) -> pl.LazyFrame:
    """Put what :data:`costlib.schema.ADDED` says where rows are older than a column of it."""
    names = [name for name in frame.collect_schema().names() if name in ADDED]
    return frame.with_columns(pl.col(name).fill_null(ADDED[name]) for name in names)


def list_parts(folder: Path) -> list[Path]:
    """Return the parts of ``folder`` that count, oldest first."""
    return _parts(folder, replaced=False)


def replaced_parts(folder: Path) -> list[Path]:
    """Return the parts of ``folder`` that do not count because another holds their rows."""
    return _parts(folder, replaced=True)


def remove_replaced(folder: Path) -> None:
    """Remove the parts that do not count, lastingly.

    Nobody else may replace parts of ``folder`` meanwhile.

    Raises
    ------
    StorageError
        They cannot be removed; they still do not count.
    """
    leftover = replaced_parts(folder)
    with storage_errors(folder):
        for part in leftover:
            part.unlink(missing_ok=True)
        if leftover:
            sync_folder(folder)


def _parts(folder: Path, *, replaced: bool) -> list[Path]:
    found = sorted(folder.glob(PART_PATTERN))
    names = {name for part in found if part.name.endswith(COMPACTED) for name in _replaces(part)}
    return [part for part in found if (part.name in names) == replaced]


def hardware_of(part: Path) -> str:
    """Return the id of the hardware whose folder a part is in."""
    return part.parent.name.removeprefix("hardware=")


def polars_schema(schema: pa.Schema) -> pl.Schema:
    """Return the names and types that polars gives the columns of ``schema``."""
    return pl.DataFrame(schema.remove_metadata().empty_table()).schema


def _replaces(part: Path) -> list[str]:
    try:
        metadata = pq.read_metadata(part).metadata or {}
        return _names.validate_json(metadata.get(REPLACES.encode(), b"[]"))
    except (pa.ArrowException, ValueError, OSError):
        return []  # Damaged, which whoever reads it will find out.


def _repetitive(rows: pa.Table) -> list[str]:
    """Columns worth a dictionary; it makes measured times and unique ids larger."""
    flat = [field.name for field in rows.schema if not pa.types.is_nested(field.type)]
    plain = [name for name in flat if not pa.types.is_floating(rows.schema.field(name).type)]
    return [name for name in plain if 2 * pc.count_distinct(rows[name]).as_py() <= len(rows)]


def _conform(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return ``table`` with the columns of ``schema`` in its order and types."""
    different = sorted(set(table.column_names) ^ set(schema.names))
    if different or len(table.column_names) != len(schema):
        raise DatasetError(f"columns missing, twice or too many: {', '.join(different)}")
    for field in schema:
        if not field.nullable and table[field.name].null_count:
            raise DatasetError(f"column '{field.name}' may not be null")
    try:
        return table.select(schema.names).cast(schema)
    except (pa.ArrowException, ValueError) as error:
        raise DatasetError(f"rows do not fit the table: {error}") from error
