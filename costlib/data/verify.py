"""Prove a dataset sound, or name what is not."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa

from costlib.data import checks
from costlib.data.checks import MEND_ROWS, Check
from costlib.data.completeness import MEND_HARDWARE, NO_HARDWARE, needed_hardware
from costlib.data.dataset import HELD_OUT_FOLDER, Dataset
from costlib.data.drift import canary_ratios, drifts
from costlib.data.failures import outcomes, suspicious_blocks
from costlib.data.manifest import HardwareFile, read_hardware
from costlib.data.parts import MEND_PART, hardware_of, part_fault, read_table, replaced_parts
from costlib.data.splits import leaked
from costlib.errors import DatasetError
from costlib.files import first_line
from costlib.frozen import Frozen
from costlib.schema import ADDED, TABLES, Language

_MEND_TWICE = "`costlib dataset compact --drop-duplicates` keeps the first of each that ran"
_MEND_LEAK = "`costlib dataset merge` of this dataset alone leaves those records out"
_MEND_BLOCK = (
    "the machine may have been at fault: `costlib collect --retry-failed` on the same tasks "
    "measures them again"
)
_MEND_DRIFT = "measure those programs again in a new dataset, when the machine is as it was"


class Problem(Frozen):
    """Something in a dataset that is not as it should be.

    Attributes
    ----------
    file
        The file or folder, relative to the dataset.
    what
        What is wrong with it.
    mend
        What to do about it.
    """

    file: str
    what: str
    mend: str


def verify(dataset: Dataset) -> list[Problem]:
    """Read everything in ``dataset``, the held-out tasks included, and check it.

    Every file must be readable, with the columns of :data:`costlib.schema.TABLES`, and its
    checksums must hold. Ids must be the hashes of what they name, and occur once (program ids:
    once for each hardware, unless imported or measured again). Modules must be TVM's. What
    measurements, mutation records and networks refer to must be there. Statuses, origins and
    languages must be known, scores finite, and exactly the programs that ran have a latency: the
    one that their times and canaries give, and not faster than a machine can be. Canaries must be
    near their reference, and those of a day nearer (:mod:`costlib.data.drift`). Failures must not
    follow one another as only a fault of the machine makes them (:mod:`costlib.data.failures`). No
    held-out task may be, or nearly be, one of the others. The ids of all programs and the
    modules are in memory at once.

    Returns
    -------
    list of Problem
        Empty if the dataset is sound.
    """
    with dataset.reading():
        found = _Verifier(dataset).run()
    held_out = dataset.held_out()
    if held_out is not None:
        for inner in verify(held_out):
            found.append(inner.model_copy(update={"file": f"{HELD_OUT_FOLDER}/{inner.file}"}))
        with suppress(DatasetError):  # A damaged part, which is named already.
            if both := leaked(dataset, held_out):
                what = f"has records of {len(both)} tasks that are, or nearly are, held out: "
                what += min(both)
                found.append(Problem(file=HELD_OUT_FOLDER, what=what, mend=_MEND_LEAK))
    return found


class _Verifier:
    """Walks through one dataset; keeps what it reads, and the problems in :attr:`found`."""

    def __init__(self, dataset: Dataset) -> None:
        self.found: list[Problem] = []
        self._dataset = dataset
        # In the order opposite to writing: what rows refer to was there before them.
        self._parts = {table: dataset.part_files(table) for table in reversed(TABLES)}
        self._unread: set[Path] = set()
        """Folders with a part that cannot be read."""
        self._machines: dict[str, HardwareFile] = {}
        self._flops: dict[str, float] = {}
        self._workloads: set[str] = set()
        self._sketches: set[str] = set()
        self._programs: defaultdict[str, set[str]] = defaultdict(set)
        """Of each hardware."""

    def run(self) -> list[Problem]:
        self._stray_files()
        self._hardware()
        self._workload_rows()
        self._sketch_rows()
        self._network_rows()
        self._measurement_rows()
        self._mutation_rows()
        return self.found

    def _note(self, file: Path, what: str, mend: str) -> None:
        name = str(file.relative_to(self._dataset.path))
        self.found.append(Problem(file=name, what=what, mend=mend))

    def _stray_files(self) -> None:
        for table in TABLES:
            files = {path for path in (self._dataset.path / table).rglob("*") if path.is_file()}
            known = set(self._dataset.part_files(table))
            for folder in self._dataset.folders(table):
                known.update(replaced_parts(folder))
            for file in sorted(files - known):
                self._note(file, "is not a part of the table", "move it out of the dataset")

    def _hardware(self) -> None:
        folder = self._dataset.path / "hardware"
        files = set(folder.glob("*.json"))
        for file in sorted(files | needed_hardware(self._dataset)):
            if file not in files:
                self._note(file, NO_HARDWARE, MEND_HARDWARE)
                continue
            try:
                machine = read_hardware(file)
                wrong = _wrong_hardware(file, machine)
            except DatasetError as error:
                wrong = str(error)
            if wrong:
                self._note(file, wrong, MEND_HARDWARE)
            else:
                self._machines[file.stem] = machine

    def _workload_rows(self) -> None:
        read = list(self._frames("workloads"))
        marks = checks.misnamed_modules([frame for _, frame in read])
        for (part, frame), wrong in zip(read, marks, strict=True):
            found = [
                _once(["workload_id"], frame, self._workloads),
                Check("have a module that cannot be read, or another id than it", wrong),
            ]
            self._check(part, frame, "workload_id", found)
            known = frame.filter(pl.col("flops").is_not_null())
            self._flops.update(known.select("workload_id", "flops").iter_rows())

    def _sketch_rows(self) -> None:
        for part, frame in self._frames("sketches"):
            pairs = frame.select("sketch_id", "instructions").iter_rows()
            wrong = pl.Series([not checks.hashes_to(name, (), text) for name, text in pairs])
            found = [
                _once(["sketch_id"], frame, self._sketches),
                Check("have an id that is not the hash of the instructions", wrong),
                Check("are in an unknown language", checks.not_in("language", Language)),
            ]
            self._check(part, frame, "sketch_id", found)

    def _network_rows(self) -> None:
        seen: set[Any] = set()
        for part, frame in self._frames("networks"):
            found = [
                _once(["network", "workload_id"], frame, seen),
                Check("have a weight below 1", pl.col("weight") < 1),
                checks.reference_checks(self._workloads, set())[0],
            ]
            self._check(part, frame, "network", found)

    def _measurement_rows(self) -> None:
        row_checks = checks.measurement_checks(self._workloads, self._sketches)
        once: defaultdict[str, set[Any]] = defaultdict(set)
        ratios: defaultdict[Path, list[pl.DataFrame]] = defaultdict(list)
        ends: defaultdict[Path, list[tuple[str, pl.DataFrame]]] = defaultdict(list)
        for part, frame in self._frames("measurements"):
            hardware_id = hardware_of(part)
            first = frame.filter(~checks.may_recur())
            seen_once = _once(["program_id", "cache"], first, once[hardware_id])
            self._check(part, first, "program_id", [seen_once])
            self._programs[hardware_id].update(frame["program_id"])
            found = [*row_checks, checks.named_by_program(frame)]
            ends[part.parent].append((part.name, outcomes(frame)))
            machine = self._machines.get(hardware_id)
            if machine is not None:
                found += checks.timing_checks(frame, machine, self._flops)
            if machine is not None and machine.canary is not None:
                ratios[part.parent].append(canary_ratios(frame, machine.canary))
            self._check(part, frame, "program_id", found)
        for folder, days in ratios.items():
            for what in drifts(days):
                self._note(folder, what, _MEND_DRIFT)
        for folder, named in ends.items():
            for block in suspicious_blocks(named):
                self._note(folder / block.part, block.what, _MEND_BLOCK)

    def _mutation_rows(self) -> None:
        key = ["parent_id", "direction", "program_id", "model"]
        seen: defaultdict[str, set[Any]] = defaultdict(set)
        for part, frame in self._frames("mutations"):
            hardware_id = hardware_of(part)
            measured = self._dataset.path / "measurements" / part.parent.name
            is_complete = measured not in self._unread
            parents = self._programs[hardware_id] if is_complete else set(frame["parent_id"])
            found = [
                *checks.mutation_checks(self._workloads, self._sketches, parents),
                checks.named_by_program(frame),
                _once(key, frame, seen[hardware_id]),
            ]
            self._check(part, frame, "program_id", found)

    def _check(self, part: Path, frame: pl.DataFrame, key: str, found: Sequence[Check]) -> None:
        """Evaluate checks; ``key`` is what to call a row by."""
        masks = frame.select(check.mask.alias(check.what) for check in found)
        for check in found:
            bad = frame[key].filter(masks[check.what])
            if len(bad):
                what = f"{len(bad)} of {len(frame)} rows {check.what}, the first is {bad[0]}"
                self._note(part, what, check.mend)

    def _frames(self, table: str) -> Iterator[tuple[Path, pl.DataFrame]]:
        """Yield the parts of a table, and all rows of each, unless they are not to be trusted."""
        for part in self._parts[table]:
            frame = self._read(part, TABLES[table])
            if frame is None:
                self._unread.add(part.parent)
            else:
                yield part, frame

    def _read(self, part: Path, schema: pa.Schema) -> pl.DataFrame | None:
        fault = part_fault(part, schema)
        if fault is not None:
            self._note(part, fault, MEND_PART)
            return None
        try:
            frame = pl.DataFrame(read_table(part))
        except (ValueError, OSError) as error:
            self._note(part, f"is damaged ({first_line(error)})", MEND_PART)
            return None
        required = [field.name for field in schema if not field.nullable]
        there = set(frame.columns)
        empty = [n for n in required if (frame[n].null_count() if n in there else n not in ADDED)]
        if empty:
            self._note(part, f"lacks values in: {', '.join(empty)}", MEND_ROWS)
            return None
        lacking = [n for n in schema.names if n not in frame.columns]
        return frame.with_columns(pl.lit(ADDED.get(name)).alias(name) for name in lacking)


def _once(key: list[str], frame: pl.DataFrame, seen: set[Any]) -> Check:
    """Check that a key was not seen before, and add all keys to ``seen``."""
    ids = frame[key[0]] if len(key) == 1 else frame.select(key).iter_rows()
    named = " and ".join(name for name in key if name not in ADDED)
    return Check(f"repeat a {named}", checks.repeated(ids, seen), _MEND_TWICE)


def _wrong_hardware(file: Path, content: HardwareFile) -> str | None:
    if content.hardware.hardware_id != file.stem:
        return f"describes another hardware, {content.hardware.hardware_id}"
    canary = content.canary
    times = (canary.compute_s, canary.memory_s) if canary else ()
    if not all(math.isfinite(seconds) and seconds > 0 for seconds in times):
        return "has a reference of its canaries that is not positive"
    return None
