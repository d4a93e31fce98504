"""Imported records on their way into a dataset: in batches, each once."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from costlib.data.dataset import Dataset
from costlib.data.manifest import check_place
from costlib.data.task_tables import sketch_row
from costlib.files import locked
from costlib.identity import content_id
from costlib.logs.importers.record import ImportedRecord
from costlib.schema import Status

_BATCH = 4096
"""Records in memory before they are written."""


@dataclass
class LogTally:
    """What became of the records of one log.

    Attributes
    ----------
    imported
        Those that are in the dataset now and were not before.
    failed
        Those of the imported that say that a program failed.
    repeated
        Those that were there already.
    """

    imported: int = 0
    failed: int = 0
    repeated: int = 0


class ImportWriter:
    """Appends to a dataset (made when the first batch is written) what it does not hold yet.

    A record is there already if one of the same program on the same hardware has the same
    seconds. What a log holds twice may be there twice. So importing a log again, also after a
    kill or at the same time, adds only what is missing. A batch takes the records of as many logs
    as fit.
    """

    def __init__(self, out: Path) -> None:
        self._out = out
        check_place(out)
        self.dataset = Dataset.create(out) if out.exists() else None
        self._log = LogTally()
        self._pending: list[tuple[ImportedRecord, LogTally]] = []
        self._parts: list[Path] = []
        """Of the measurements that were counted."""
        self._known: dict[str, Counter[int]] = {}
        """How often each is there, for the hardwares counted so far."""
        self._noted: set[str] = set()
        """Ids of the workloads and the sketches that are in the dataset by now."""
        self._seen: Counter[tuple[str, int]] = Counter()
        self._seen_of = self._log
        """Of which log."""

    def begin_log(self) -> LogTally:
        """Say that the next record is the first of another log.

        Returns
        -------
        LogTally
            Counts the log's records as they are written.
        """
        self._log = LogTally()
        return self._log

    def add(self, record: ImportedRecord) -> None:
        """Take a record."""
        self._pending.append((record, self._log))
        if len(self._pending) >= _BATCH:
            self.flush()

    def flush(self) -> None:
        """Write what is waiting, unless it is there already.

        No other import appends meanwhile: both would miss in the dataset what the other adds.
        """
        if not self._pending:
            return
        dataset = self.dataset = self.dataset or Dataset.create(self._out)
        with locked(dataset.path / "measurements"):
            self._count(dataset)
            are_new = [self._is_new(record, log) for record, log in self._pending]
            self._append(
                dataset,
                [r for (r, _), is_new in zip(self._pending, are_new, strict=True) if is_new],
            )
            self._parts = dataset.part_files("measurements")
        for (record, log), is_new in zip(self._pending, are_new, strict=True):
            log.imported += is_new
            log.failed += is_new and record.outcome.status is not Status.OK
            log.repeated += not is_new
        self._pending = []

    def _append(self, dataset: Dataset, records: list[ImportedRecord]) -> None:
        """Append first what measurements refer to, then them."""
        workloads = {r.program.workload_id: r.workload for r in records}
        sketches = {r.program.sketch_id: sketch_row(r.sketch, r.language) for r in records}
        dataset.append_workloads([w for i, w in workloads.items() if i not in self._noted])
        dataset.append_sketches([s for i, s in sketches.items() if i not in self._noted])
        self._noted.update(workloads, sketches)
        of_hardware: defaultdict[str, list[ImportedRecord]] = defaultdict(list)
        for record in records:
            of_hardware[record.hardware.hardware_id].append(record)
        for hardware_id, found in of_hardware.items():
            dataset.add_hardware(found[0].hardware)
            dataset.append_measurements(hardware_id, [record.measurement_row() for record in found])

    def _is_new(self, record: ImportedRecord, log: LogTally) -> bool:
        """Say whether a record is missing, and count it as one that is there."""
        if log is not self._seen_of:
            self._seen.clear()
            self._seen_of = log
        hardware_id = record.hardware.hardware_id
        key = _key(record.program.program_id, record.outcome.run_secs)
        known = self._known[hardware_id]
        self._seen[hardware_id, key] += 1
        if self._seen[hardware_id, key] <= known[key]:
            return False
        known[key] += 1
        return True

    def _count(self, dataset: Dataset) -> None:
        """Count what is there of the hardwares that are waiting, if it may be other than it was."""
        if dataset.part_files("measurements") != self._parts:
            self._known.clear()
        missing = {record.hardware.hardware_id for record, _ in self._pending} - self._known.keys()
        if not missing:
            return
        self._known.update((hardware_id, Counter()) for hardware_id in missing)
        rows = dataset.scan().filter(pl.col("hardware").is_in(list(missing)))
        columns = rows.select("hardware", "program_id", "run_secs").collect()
        for hardware_id, program_id, run_secs in columns.iter_rows():
            self._known[hardware_id][_key(program_id, run_secs)] += 1


def _key(program_id: str, run_secs: list[float]) -> int:
    return int(content_id(program_id, run_secs), 16)
