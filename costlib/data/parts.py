"""Files that are there completely or not at all.

Everything a dataset consists of is first written to a scratch file, flushed to disk, and
then renamed into place. Readers need no lock: a file that they see is finished and never
changes. A writer holds a lock on its scratch file; the kernel drops it when the process
dies, however it dies, and so a leftover can be told from a file still being written.

The scratch files of a dataset lie in a folder of their own, outside the tables: a plain
reader that lists a table's folder must not meet a file that is about to be renamed.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from costlib.errors import DatasetError, StorageError

PART_PATTERN = "part-*.parquet"

COMPACTED = "-compacted.parquet"
"""How the name of a part ends that replaces others."""

REPLACES = "costlib.replaces"
"""Where a part's parquet metadata names those, as a JSON list."""

MEND_PART = "remove that file, the rest stays readable (`costlib dataset verify` lists all)"
"""What to do about a damaged part."""

_ZSTD_LEVEL = 9
_ROW_GROUP = 1 << 16
_SCRATCH_PREFIX = ".tmp-"
_MENDS = {
    errno.ENOSPC: "free some space or choose another folder",
    errno.EDQUOT: "free some of your quota or choose another folder",
    errno.EACCES: "change its permissions or choose another folder",
    errno.EPERM: "change its permissions or choose another folder",
    errno.EROFS: "choose a folder that can be written",
}


def table_from_rows(rows: Sequence[Mapping[str, Any]], schema: pa.Schema) -> pa.Table:
    """Make a table of ``schema`` from one mapping per row; nullable columns may be left out.

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
            columns.append(pa.array([row.get(field.name) for row in rows], field.type))
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
    """Add ``table`` to ``folder`` as a new part.

    Parameters
    ----------
    folder
        Where the part goes; made if missing. Names of parts sort by time of writing and are
        unique among all processes.
    table
        The rows, with exactly the columns of ``schema`` in any order; types are cast.
    schema
        What the part must look like.
    scratch
        See :func:`write_file`.
    replaces
        Names of parts in ``folder`` that do not count from then on, because ``table`` holds
        their rows; see :mod:`costlib.data.listing`.

    Returns
    -------
    Path
        The finished part.

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


def write_json(path: Path, value: Any, scratch: Path | None = None) -> None:
    """Write ``value`` as indented JSON; see :func:`write_file`."""
    write_file(path, (json.dumps(value, indent=2, sort_keys=True) + "\n").encode(), scratch)


def write_file(path: Path, data: Any, scratch: Path | None = None) -> None:
    """Write or replace a file in one step.

    Parameters
    ----------
    path
        The file; its folder is made if missing.
    data
        Its content, ``bytes`` or another buffer.
    scratch
        Folder on the same file system for the unfinished file; that of ``path`` by default.

    Raises
    ------
    StorageError
        It could not be written: no space, no permission. What was there before still is.
    """
    with storage_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        scratch = scratch or path.parent
        scratch.mkdir(parents=True, exist_ok=True)
        unfinished, file = _open_scratch(scratch)
        try:
            # Closing may also find the disk full, so the file is removed only after that.
            with file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
                unfinished.replace(path)
        except BaseException:
            unfinished.unlink(missing_ok=True)
            raise
        sync_folder(path.parent)


def read_part(part: Path, schema: pa.Schema) -> pa.Table:
    """Read a part; columns of ``schema`` that it lacks are null, others are left out.

    Raises
    ------
    DatasetError
        It is damaged, a checksum does not hold, or a column has another type.
    """
    check_part(part, schema)
    try:
        rows = read_table(part)
        columns = [
            rows[field.name] if field.name in rows.column_names else pa.nulls(len(rows), field.type)
            for field in schema
        ]
        return pa.table(columns, names=schema.names).cast(schema)
    except (pa.ArrowException, ValueError, OSError) as error:
        raise DatasetError(f"{part} is damaged ({first_line(error)}); {MEND_PART}") from error


def read_table(file: Path, columns: list[str] | None = None) -> pa.Table:
    """Read a parquet file by Arrow, whose readers survive damage that ends polars.

    Metadata are left out: polars does not survive keys that are no text.

    Parameters
    ----------
    file
        The file.
    columns
        Those to read, all by default.

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
    """Look at the footer of a part.

    Returns
    -------
    str or None
        What is wrong: it is damaged, or a column has another type than in ``schema``. A
        column that is not there is no fault.
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


def polars_schema(schema: pa.Schema) -> pl.Schema:
    """Return the names and types that polars gives the columns of ``schema``."""
    return pl.DataFrame(schema.remove_metadata().empty_table()).schema


def remove_stale(scratch: Path) -> None:
    """Remove what writers that have died left in a scratch folder."""
    for unfinished in scratch.glob(f"{_SCRATCH_PREFIX}*"):
        with suppress(OSError), unfinished.open("rb+") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            unfinished.unlink()


@contextmanager
def locked(folder: Path, *, shared: bool = False) -> Iterator[None]:
    """Keep other processes that do the same out of ``folder`` (made if missing).

    Any number of processes may share the lock at once, none beside one that does not share.
    Without effect on file systems that cannot lock a folder, such as NFS.
    """
    with storage_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


@contextmanager
def storage_errors(path: Path) -> Iterator[None]:
    """Turn an ``OSError`` of the body into a :class:`StorageError` about ``path``."""
    try:
        yield
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        mend = _MENDS.get(error.errno or 0, "check that folder")
        raise StorageError(f"cannot write {path}: {reason}; {mend}, then run it again") from error


def first_line(error: Exception) -> str:
    """Return what to quote of another library's error."""
    return str(error).strip().split("\n")[0].rstrip(".")


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


def _open_scratch(folder: Path) -> tuple[Path, IO[bytes]]:
    """Return a new file that is locked as long as it is open."""
    while True:
        path = folder / f"{_SCRATCH_PREFIX}{os.getpid()}-{secrets.token_hex(8)}"
        file = path.open("xb")
        with suppress(OSError):  # A file system without locks; there, nothing is ever stale.
            fcntl.flock(file, fcntl.LOCK_EX)
        if os.fstat(file.fileno()).st_nlink:
            return path, file
        file.close()  # Removed as stale between being made and being locked.


def sync_folder(folder: Path) -> None:
    """Flush to disk which files are in ``folder``."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # Some network file systems sync no folders; the file is there.
            os.fsync(descriptor)
    finally:
        os.close(descriptor)
