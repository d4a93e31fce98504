"""Imported records on their way into a dataset: in batches, each once."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import polars as pl

from costlib.data.dataset import Dataset
from costlib.data.manifest import check_place
from costlib.data.task_tables import sketch_row
from costlib.identity import content_id
from costlib.logs.importers.record import ImportedRecord

_BATCH = 4096
"""Records in memory before they are written."""


class ImportWriter:
    """Appends to a dataset (made when the first batch is written) what it does not hold yet.

    A record is there already if one of the same program on the same hardware has the same
    seconds. What a log holds twice may be there twice. So importing a log again, also after a
    kill, adds only what is missing.
    """

    def __init__(self, out: Path) -> None:
        self._out = out
        check_place(out)
        self.dataset = Dataset.create(out) if out.exists() else None
        self._workloads: dict[str, ImportedRecord] = {}
        self._sketches: dict[str, ImportedRecord] = {}
        self._pending: dict[str, list[ImportedRecord]] = {}
        self._known: dict[str, Counter[int]] = {}
        self._seen: dict[str, Counter[int]] = {}

    def begin_log(self) -> None:
        """Say that the next record is the first of another log."""
        self._seen.clear()

    def add(self, record: ImportedRecord) -> bool:
        """Take a record, unless it is there already; say whether it was taken."""
        hardware_id = record.hardware.hardware_id
        if hardware_id not in self._known:
            self._known[hardware_id] = self._measured(hardware_id)
        key = _key(record.program.program_id, record.outcome.run_secs)
        seen, known = self._seen.setdefault(hardware_id, Counter()), self._known[hardware_id]
        seen[key] += 1
        if seen[key] <= known[key]:
            return False
        known[key] += 1
        self._workloads.setdefault(record.program.workload_id, record)
        self._sketches.setdefault(record.program.sketch_id, record)
        self._pending.setdefault(hardware_id, []).append(record)
        if sum(map(len, self._pending.values())) >= _BATCH:
            self.flush()
        return True

    def flush(self) -> None:
        """Write what is waiting: first what measurements refer to, then them."""
        if not self._pending:
            return
        dataset = self.dataset = self.dataset or Dataset.create(self._out)
        dataset.append_workloads([record.workload for record in self._workloads.values()])
        dataset.append_sketches([sketch_row(r.sketch, r.language) for r in self._sketches.values()])
        for hardware_id, records in self._pending.items():
            dataset.add_hardware(records[0].hardware)
            dataset.append_measurements(hardware_id, [r.measurement_row() for r in records])
        self._workloads, self._sketches, self._pending = {}, {}, {}

    def _measured(self, hardware_id: str) -> Counter[int]:
        if self.dataset is None:
            return Counter()
        rows = (
            self.dataset.scan()
            .filter(pl.col("hardware") == hardware_id)
            .select("program_id", "run_secs")
            .collect()
        )
        return Counter(_key(program_id, run_secs) for program_id, run_secs in rows.iter_rows())


def _key(program_id: str, run_secs: list[float]) -> int:
    return int(content_id(program_id, run_secs), 16)
