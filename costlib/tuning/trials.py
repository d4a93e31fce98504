"""What a run measured, batch by batch: a dataset that can be trained on, and how it came about.

The dataset holds the measurements. Beside it, ``batches/`` notes of each batch which programs it
consisted of, which others were refused meanwhile, and when it was over: enough to take a search
through all of it once more.
"""

from __future__ import annotations

import logging
from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa

from costlib.canary_times import CanaryTimes
from costlib.data.dataset import Dataset
from costlib.data.parts import list_parts, read_part, table_from_rows, write_part
from costlib.data.records import measurement_of, measurement_row
from costlib.data.task_tables import register_sketches, register_workloads
from costlib.errors import DatasetError, InputError
from costlib.hardware import Hardware
from costlib.measure.measurement import Measurement
from costlib.schema import Origin
from costlib.space.program import Sketch
from costlib.workloads.task import Task

TRIALS = "trials"
"""Folder of the dataset inside the run's."""

BATCHES = "batches"

_log = logging.getLogger(__name__)

_SCHEMA = pa.schema(
    [
        pa.field("workload_id", pa.string(), nullable=False),
        pa.field("program_ids", pa.list_(pa.string()), nullable=False),
        pa.field("refused", pa.list_(pa.string()), nullable=False),
        pa.field("search_s", pa.float64(), nullable=False),
        pa.field("measure_s", pa.float64(), nullable=False),
        pa.field("elapsed_s", pa.float64(), nullable=False),
    ]
)

_UNNOTED = 4
"""Rows of a task in a row that are taken for a batch where none is noted."""


@dataclass(frozen=True)
class Record:
    """A batch that was measured.

    Attributes
    ----------
    workload_id
        Its task.
    measurements, origins
        What was measured, in order, and how each program was made.
    refused
        Ids of programs that were refused while these were looked for.
    search_s, measure_s
        Seconds of proposing while nothing was built, and of building and running.
    elapsed_s
        Seconds of tuning until then, in all sessions.
    """

    workload_id: str
    measurements: Sequence[Measurement]
    origins: Sequence[Origin]
    refused: Sequence[str] = ()
    search_s: float = 0.0
    measure_s: float = 0.0
    elapsed_s: float = 0.0


class Trials:
    """The measurements in a run's folder.

    Parameters
    ----------
    folder
        The run's folder.
    hardware
        What is measured on.
    seed
        The run's; noted with each measurement.
    """

    def __init__(self, folder: Path, hardware: Hardware, seed: int = 0) -> None:
        self.dataset = Dataset.create(folder / TRIALS)
        self._hardware = hardware
        self._seed = seed
        self._batches = folder / BATCHES

    def reference(self) -> CanaryTimes | None:
        """Return what the canaries took when the run began; ``None`` if it begins now."""
        return self.dataset.canary(self._hardware.hardware_id)

    def keep_reference(self, reference: CanaryTimes) -> CanaryTimes:
        """Note what the canaries take now; return what counts, which is what was noted first."""
        return self.dataset.add_hardware(self._hardware, reference) or reference

    def check_settings(self) -> None:
        """Raise :class:`InputError` if something was measured on another hardware or seed."""
        rows = self.dataset.scan().select("hardware", "seed").unique().collect()
        for hardware_id, seed in rows.iter_rows():
            if (hardware_id, seed) != (self._hardware.hardware_id, self._seed):
                raise InputError(
                    f"{self.dataset.path} was measured on {hardware_id} with seed {seed}, not on "
                    f"{self._hardware.hardware_id} with seed {self._seed}; choose another folder"
                )

    def register(self, tasks: Sequence[Task], sketches: Sequence[Sketch]) -> None:
        """Note the tasks of the run and their sketches."""
        register_workloads(self.dataset, tasks, {task.workload_id for task in tasks})
        register_sketches(self.dataset, sketches)

    def append(self, record: Record) -> None:
        """Write down a batch."""
        pairs = zip(record.measurements, record.origins, strict=True)
        rows = [measurement_row(one, self._seed, origin) for one, origin in pairs]
        self.dataset.append_measurements(self._hardware.hardware_id, rows)
        row = {
            "workload_id": record.workload_id,
            "program_ids": [one.program.program_id for one in record.measurements],
            "refused": list(record.refused),
            "search_s": record.search_s,
            "measure_s": record.measure_s,
            "elapsed_s": record.elapsed_s,
        }
        table = table_from_rows([row], _SCHEMA)
        write_part(self._batches, table, _SCHEMA, self.dataset.scratch)

    def recorded(self) -> Iterator[Record]:
        """Yield all batches, the first one first.

        Measurements of which no batch is noted (a kill came between, the note is damaged, or an
        older costlib measured them) come last, a few at a time.
        """
        left = defaultdict[str, deque[dict[str, Any]]](deque)
        for row in self._rows():
            left[row["program_id"]].append(row)
        for part in list_parts(self._batches):
            try:
                notes = read_part(part, _SCHEMA).to_pylist()
            except DatasetError as error:  # What it noted is taken up like what was never noted.
                _log.warning("%s", error)
                continue
            for noted in notes:
                found = [left[name].popleft() for name in noted["program_ids"] if left[name]]
                if found:
                    yield _record(found, noted)
        unnoted = [row for rows in left.values() for row in rows]
        for rows in _in_a_row(sorted(unnoted, key=lambda row: row["measured_at"])):
            yield _record(rows, {})

    def _rows(self) -> Iterator[dict[str, Any]]:
        here = pl.col("hardware") == self._hardware.hardware_id
        rows = self.dataset.scan().filter(here).sort("measured_at", maintain_order=True)
        yield from rows.collect().iter_rows(named=True)


def _record(rows: Sequence[dict[str, Any]], noted: dict[str, Any]) -> Record:
    return Record(
        rows[0]["workload_id"],
        [measurement_of(row) for row in rows],
        [Origin(row["origin"]) for row in rows],
        noted.get("refused", ()),
        noted.get("search_s", 0.0),
        noted.get("measure_s", 0.0),
        noted.get("elapsed_s", 0.0),
    )


def _in_a_row(rows: Sequence[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """Yield runs of rows of one task, none of them long."""
    run: list[dict[str, Any]] = []
    for row in rows:
        if run and (len(run) == _UNNOTED or run[0]["workload_id"] != row["workload_id"]):
            yield run
            run = []
        run.append(row)
    if run:
        yield run
