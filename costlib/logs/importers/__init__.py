"""Bring tuning logs of other tools, and of older TVMs, into a dataset.

A log is read entry by entry (:mod:`~costlib.logs.importers.files`), JSON however it is laid out,
encoded and compressed (:mod:`~costlib.logs.importers.json_text`). Each entry that is a record
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
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from costlib.errors import InputError
from costlib.frozen import Frozen
from costlib.logs.importers.ansor import read_ansor
from costlib.logs.importers.autotvm import read_autotvm
from costlib.logs.importers.child import ChildDatabaseReader
from costlib.logs.importers.files import find_files, read_entries
from costlib.logs.importers.json_text import NOT_JSON
from costlib.logs.importers.record import ImportedRecord, SkippedRecordError
from costlib.logs.importers.workloads import holds_workloads
from costlib.logs.importers.writer import ImportWriter, LogTally

__all__ = ["ALREADY_THERE", "FileReport", "ImportReport", "import_logs"]

ALREADY_THERE = "already in the dataset"
"""Why a record is skipped that was imported before, from this log or a copy."""

_MALFORMED = (TypeError, ValueError, LookupError, AttributeError, RecursionError, OverflowError)
"""What a reader may stumble over in a record that looks like one; the others are still read."""

_NO_RECORD = "JSON, but no tuning record"


class FileReport(Frozen):
    """What became of one file.

    Attributes
    ----------
    formats
        What was found in it: ``metaschedule``, ``ansor``, ``autotvm``, ``workloads``.
    records
        Tuning records in it, those that could not be read included.
    imported
        Those that are in the dataset now and were not before.
    failed_measurements
        Those of the imported that say that a program failed.
    skipped
        Those left out, counted by reason; also what made the whole file useless.
    """

    file: str
    formats: list[str]
    records: int
    imported: int
    failed_measurements: int
    skipped: dict[str, int]


class ImportReport(Frozen):
    """What became of all files, each and in sum."""

    files: list[FileReport]
    records: int
    imported: int
    failed_measurements: int
    skipped: dict[str, int]


def import_logs(
    logs: Iterable[str | Path],
    out: str | Path,
    *,
    workloads: str | Path | None = None,
    on_file: Callable[[Path], None] | None = None,
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
    workloads
        The file of the workloads of a MetaSchedule database, ``database_workload.json``, if
        neither its name nor its place tells that it belongs to the one file of ``logs``.
    on_file
        Called with each file when it has been read.

    Returns
    -------
    ImportReport
        What became of each file.

    Raises
    ------
    InputError
        A log does not exist, or ``out`` is something else than a dataset; ``workloads`` holds
        none, or there are several logs.
    StorageError
        The dataset cannot be written.
    """
    files = find_files(logs)
    given = None if workloads is None else _checked_workloads(Path(workloads), files)
    writer = ImportWriter(Path(out))
    read = []
    for file in files:
        read.append(_read_file(file, given, writer))
        if on_file is not None:
            on_file(file)
    writer.flush()
    reports = [one.report() for one in read]
    skipped: Counter[str] = Counter()
    for report in reports:
        skipped.update(report.skipped)
    return ImportReport(
        files=reports,
        records=sum(report.records for report in reports),
        imported=sum(report.imported for report in reports),
        failed_measurements=sum(report.failed_measurements for report in reports),
        skipped=dict(skipped),
    )


def _checked_workloads(workloads: Path, files: list[Path]) -> Path:
    """Return the file if it can be that of the log: another's indices would mean other programs."""
    if not workloads.is_file():
        raise InputError(f"there is no file {workloads}")
    if not holds_workloads(workloads):
        raise InputError(f"{workloads} holds no workloads; give a database_workload.json")
    if len(files) != 1:
        raise InputError(
            f"{workloads} can be the workloads of one log, not of {len(files)}; "
            "import that log alone"
        )
    return workloads


@dataclass
class _ReadFile:
    """A file whose records the writer has, or has written."""

    file: Path
    formats: set[str]
    records: int
    skipped: Counter[str]
    tally: LogTally

    def report(self) -> FileReport:
        """Say what became of it, when all is written."""
        records, skipped = self.records, self.skipped.copy()
        if self.tally.repeated:
            skipped[ALREADY_THERE] = self.tally.repeated
        if not self.formats and not skipped:
            skipped = Counter({"the file is empty": 1})
        elif not self.formats and skipped.keys() <= {_NO_RECORD, NOT_JSON}:
            records, skipped = 0, Counter({"not a tuning log": 1})
        return FileReport(
            file=str(self.file),
            formats=sorted(self.formats),
            records=records,
            imported=self.tally.imported,
            failed_measurements=self.tally.failed,
            skipped=dict(skipped),
        )


def _read_file(file: Path, workloads: Path | None, writer: ImportWriter) -> _ReadFile:
    read = _ReadFile(file, set(), 0, Counter(), writer.begin_log())
    try:
        made = datetime.fromtimestamp(file.stat().st_mtime, UTC)
        with ChildDatabaseReader(file, workloads) as database:
            readers: dict[str, Callable[[Any, datetime], ImportedRecord]] = {
                "autotvm": read_autotvm,
                "ansor": read_ansor,
                "metaschedule": database.read,
            }
            for entry in read_entries(file):
                read.records += 1
                try:
                    read.formats.add(found := _format(entry))
                    if found == "workloads":
                        read.records -= 1
                        continue
                    record = readers[found](entry, made)
                except SkippedRecordError as error:
                    read.skipped[error.reason] += 1
                    continue
                except _MALFORMED:
                    read.skipped["the record is malformed"] += 1
                    continue
                writer.add(record)
    except PermissionError:
        read.formats, read.skipped = set(), Counter({"no permission to read it": 1})
    return read


def _format(entry: Any) -> str:
    """Tell the format of an entry; raise if it is no record of any."""
    match entry:
        case SkippedRecordError():
            raise entry
        case [str(), str()]:
            return "workloads"
        # The fields of version 0.1 have the names that Ansor later took.
        case {"input": _, "config": _, "result": _} | {"v": 0.1, "i": _, "r": _}:
            return "autotvm"
        case {"i": _, "r": _}:
            return "ansor"
        case [int(), list()]:
            return "metaschedule"
    raise SkippedRecordError(_NO_RECORD)
