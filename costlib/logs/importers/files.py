"""Log files, told apart by what is in them: JSON, or SQLite."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from costlib.errors import InputError
from costlib.logs.importers.json_text import MAX_VALUE, parse_json, read_values
from costlib.logs.importers.record import SkippedRecordError

_SQLITE = b"SQLite format 3\0"


def find_files(paths: Iterable[str | Path]) -> list[Path]:
    """Return the files at ``paths``, those in folders included, each once.

    Raises
    ------
    InputError
        One of the paths does not exist.
    """
    found: dict[Path, Path] = {}
    for path in map(Path, paths):
        if not path.exists():
            raise InputError(f"there is no file or folder {path}")
        inside = sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]
        for file in inside:
            found.setdefault(file.resolve(), file)
    return list(found.values())


def read_entries(file: Path) -> Iterator[Any]:
    """Yield what a log holds, in order.

    That is, for a value or a row, its JSON, or the :class:`SkippedRecordError` that says why it
    has none. Rows of a MetaSchedule database in SQLite look like the lines of one in JSON.
    """
    with file.open("rb") as stream:
        if not stream.peek(len(_SQLITE)).startswith(_SQLITE):
            yield from read_values(stream)
            return
    yield from _rows(file)


def is_workload(entry: Any) -> bool:
    """Whether an entry is a workload of a MetaSchedule database: a hash and a module."""
    return isinstance(entry, list) and list(map(type, entry)) == [str, str]


def _rows(file: Path) -> Iterator[Any]:
    try:
        with closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True)) as database:
            database.text_factory = bytes
            database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_VALUE)
            # What https://www.sqlite.org/security.html advises for files of others.
            database.execute("PRAGMA trusted_schema = OFF")
            database.execute("PRAGMA cell_size_check = ON")
            tables = {
                name.decode()
                for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type='table'")
            }
            if "workload" in tables:
                for row in database.execute("SELECT shash, mod FROM workload ORDER BY rowid"):
                    yield [_text(value) for value in row]
            if "tuning_record" in tables:
                columns = "workload_index, trace, run_secs, target"
                for row in database.execute(f"SELECT {columns} FROM tuning_record ORDER BY rowid"):
                    yield _record(*row)
    except (sqlite3.Error, UnicodeDecodeError):
        yield SkippedRecordError("the SQLite file is damaged")


def _record(index: Any, trace: Any, run_secs: Any, target: Any) -> Any:
    """Return a row as the line of a JSON database; a failed one may have ``None`` as times."""
    try:
        costs = None if _text(run_secs) in ("", "None") else parse_json(_text(run_secs))
        return [int(index), [parse_json(_text(trace)), costs or [], _text(target)]]
    except SkippedRecordError as error:
        return error
    except (TypeError, ValueError):
        return SkippedRecordError("the record is malformed")


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else "" if value is None else str(value)
