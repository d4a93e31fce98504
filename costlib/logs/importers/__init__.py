"""Bring tuning logs of other tools, and of older TVMs, into a dataset.

A log is read entry by entry (:mod:`~costlib.logs.importers.files`). Each entry that is a record
becomes an :class:`~costlib.logs.importers.record.ImportedRecord`, by the reader of its format:

- :mod:`~costlib.logs.importers.metaschedule`: databases, JSON or SQLite, of any TVM since 0.9.
  Modules and traces of older ones are translated (:mod:`~costlib.logs.importers.graph`,
  :mod:`~costlib.logs.importers.script`, :mod:`~costlib.logs.importers.traces`) and replayed, in a
  process of their own (:mod:`~costlib.logs.importers.child`);
- :mod:`~costlib.logs.importers.ansor` and :mod:`~costlib.logs.importers.autotvm`: sequences of
  steps. There is no module to lower, but models of schedule sequences need none.

What cannot be read is counted by reason, and the rest imported.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from costlib.logs.importers.ansor import is_ansor, read_ansor
from costlib.logs.importers.autotvm import is_autotvm, read_autotvm
from costlib.logs.importers.child import ChildDatabaseReader
from costlib.logs.importers.files import find_files, is_metaschedule, is_workload, read_entries
from costlib.logs.importers.record import ImportedRecord, SkippedRecordError
from costlib.logs.importers.report import FileReport, ImportReport
from costlib.logs.importers.writer import ImportWriter
from costlib.schema import Status

__all__ = ["ALREADY_THERE", "FileReport", "ImportReport", "import_logs"]

ALREADY_THERE = "already in the dataset"
"""Why a record is skipped that was imported before, from this log or a copy."""

_MALFORMED = (TypeError, ValueError, LookupError, AttributeError, RecursionError, OverflowError)
"""What a reader may stumble over in a record that looks like one; the others are still read."""

_NO_RECORD = "JSON, but no tuning record"
_NO_LOG = "not a tuning log"


def import_logs(
    logs: Iterable[str | Path],
    out: str | Path,
    *,
    on_file: Callable[[FileReport], None] | None = None,
) -> ImportReport:
    """Import tuning logs into a dataset.

    Importing a log again adds nothing, and after a kill only what is missing. A failed
    measurement is imported with its status and without a latency; the latency of the others is
    the mean of their repeats.

    Parameters
    ----------
    logs
        Files, and folders to search for them. The format is told by the content.
    out
        The dataset's folder; made if there is anything to import and it does not exist.
    on_file
        Called after each file.

    Returns
    -------
    ImportReport
        What became of each file.

    Raises
    ------
    InputError
        A log does not exist, or ``out`` is something else than a dataset.
    StorageError
        The dataset cannot be written.
    """
    files = find_files(logs)
    writer = ImportWriter(Path(out))
    reports = []
    for file in files:
        reports.append(_import_file(file, writer))
        if on_file is not None:
            on_file(reports[-1])
    return ImportReport.of(reports)


class _FileReader:
    """Gives each entry of one file to the reader of its format."""

    def __init__(self, file: Path, database: ChildDatabaseReader) -> None:
        self.formats: set[str] = set()
        self._database = database
        self._made = datetime.fromtimestamp(file.stat().st_mtime, UTC)

    def read(self, entry: Any) -> ImportedRecord | None:
        """Return what an entry becomes, ``None`` for a workload; raise if it is to be skipped."""
        if isinstance(entry, SkippedRecordError):
            raise entry
        if is_workload(entry):
            self.formats.add("workloads")
            return None
        if is_autotvm(entry):
            self.formats.add("autotvm")
            return read_autotvm(entry, self._made)
        if is_ansor(entry):
            self.formats.add("ansor")
            return read_ansor(entry, self._made)
        if is_metaschedule(entry):
            self.formats.add("metaschedule")
            return self._database.read(entry, self._made)
        raise SkippedRecordError(_NO_RECORD)


def _import_file(file: Path, writer: ImportWriter) -> FileReport:
    skipped: Counter[str] = Counter()
    records = imported = failed = 0
    writer.begin_log()
    try:
        with ChildDatabaseReader(file) as database:
            reader = _FileReader(file, database)
            for entry in read_entries(file):
                records += 1
                try:
                    record = reader.read(entry)
                except SkippedRecordError as error:
                    skipped[error.reason] += 1
                    continue
                except _MALFORMED:
                    skipped["the record is malformed"] += 1
                    continue
                if record is None:
                    records -= 1
                elif writer.add(record):
                    imported += 1
                    failed += record.outcome.status is not Status.OK
                else:
                    skipped[ALREADY_THERE] += 1
        formats = sorted(reader.formats)
    except PermissionError:
        formats, skipped = [], Counter({"no permission to read it": 1})
    writer.flush()
    if not formats and not skipped:
        skipped = Counter({"the file is empty": 1})
    elif not formats and skipped.keys() <= {_NO_RECORD, "not JSON, or cut off"}:
        records, skipped = 0, Counter({_NO_LOG: 1})
    return FileReport(
        file=str(file),
        formats=formats,
        records=records,
        imported=imported,
        failed_measurements=failed,
        skipped=dict(skipped),
    )
