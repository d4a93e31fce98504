"""Prove a dataset sound, or name what is not."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
from pydantic import BaseModel, ConfigDict

from costlib.data import checks
from costlib.data.checks import MEND_ROWS, Check
from costlib.data.dataset import HELD_OUT_FOLDER, Dataset
from costlib.data.drift import CanaryDays
from costlib.data.heldout import leaked
from costlib.data.listing import replaced_parts
from costlib.data.manifest import HardwareFile, read_hardware
from costlib.data.parts import MEND_PART, part_fault, read_table
from costlib.errors import DatasetError
from costlib.files import first_line
from costlib.schema import PARTITIONED, TABLES, Language

_MEND_HARDWARE = "restore it from a copy, or remove the measurements of that hardware"
_MEND_LEAK = "`costlib dataset merge` of this dataset alone leaves those records out"
_MEND_DRIFT = "measure those programs again in a new dataset, when the machine is as it was"


class Problem(BaseModel):
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

    model_config = ConfigDict(frozen=True)

    file: str
    what: str
    mend: str


_MakeProblem = Callable[[Path, str, str], Problem]


def verify(dataset: Dataset) -> list[Problem]:
    """Read everything in ``dataset``, the held-out tasks included, and check it.

    Every file must be readable, with the columns of :data:`costlib.schema.TABLES`, and its
    checksums must hold. Ids must be the hashes of what they name, and occur once (program ids:
    once for each hardware, unless imported or measured again). Modules must be TVM's. What
    measurements, mutation records and networks refer to must be there. Statuses, origins and
    languages must be known, scores finite, and exactly the programs that ran have a latency: the
    one that their times and canaries give, and not faster than a machine can be. Canaries must be
    near their reference, and those of a day nearer (:mod:`costlib.data.drift`). No held-out task
    may be, or nearly be, one of the others. The ids of all programs are in memory at once.

    Returns
    -------
    list of Problem
        Empty if the dataset is sound.
    """
    with dataset.reading():
        found = list(_Verifier(dataset).problems())
    held_out = dataset.held_out()
    if held_out is not None:
        for inner in verify(held_out):
            found.append(inner.model_copy(update={"file": f"{HELD_OUT_FOLDER}/{inner.file}"}))
        found += _leaks(dataset, held_out)
    return found


def _leaks(dataset: Dataset, held_out: Dataset) -> Iterator[Problem]:
    try:
        both = leaked(dataset, held_out)
    except DatasetError:  # A damaged part, which is named already.
        return
    if both:
        what = f"has records of {len(both)} tasks that are, or nearly are, held out: {min(both)}"
        yield Problem(file=HELD_OUT_FOLDER, what=what, mend=_MEND_LEAK)


class _Verifier:
    """Walks through one dataset; the methods yield problems, and return what they have read."""

    def __init__(self, dataset: Dataset) -> None:
        self.dataset = dataset
        self._incomplete: set[str] = set()
        """Hardwares with a part of measurements that cannot be read."""

    def problems(self) -> Iterator[Problem]:
        # Listed in the order opposite to writing: what they refer to was there before them.
        mutations, measurements, networks = (
            self.dataset.part_files(table) for table in ("mutations", "measurements", "networks")
        )
        yield from self._stray_files()
        machines = yield from self._hardware()
        workloads, flops = yield from self._workloads()
        sketches = yield from self._sketches()
        yield from self._networks(networks, workloads)
        programs = yield from self._measurements(measurements, machines, workloads, sketches, flops)
        yield from self._mutations(mutations, programs, workloads, sketches)

    def _problem(self, file: Path, what: str, mend: str) -> Problem:
        return Problem(file=str(file.relative_to(self.dataset.path)), what=what, mend=mend)

    def _stray_files(self) -> Iterator[Problem]:
        for table in TABLES:
            files = {path for path in (self.dataset.path / table).rglob("*") if path.is_file()}
            known = set(self.dataset.part_files(table))
            for folder in self.dataset.folders(table):
                known.update(replaced_parts(folder))
            for file in sorted(files - known):
                yield self._problem(
                    file, "is not a part of the table", "move it out of the dataset"
                )

    def _hardware(self) -> Generator[Problem, None, dict[str, HardwareFile]]:
        """Return the hardwares that are sound."""
        machines = {}
        folder = self.dataset.path / "hardware"
        needed = {
            folder / f"{part_folder.name.removeprefix('hardware=')}.json"
            for table in PARTITIONED
            for part_folder in self.dataset.folders(table)
        }
        files = set(folder.glob("*.json"))
        for file in sorted(files | needed):
            if file not in files:
                what = "is missing, but there are measurements on it"
                yield self._problem(file, what, _MEND_HARDWARE)
                continue
            try:
                content = read_hardware(file)
            except DatasetError as error:
                yield self._problem(file, str(error), _MEND_HARDWARE)
                continue
            wrong = _wrong_hardware(file, content)
            if wrong:
                yield self._problem(file, wrong, _MEND_HARDWARE)
            else:
                machines[file.stem] = content
        return machines

    def _workloads(self) -> Generator[Problem, None, tuple[set[str], dict[str, float]]]:
        """Return all ids, and the operations of those whose number is known."""
        ids: set[str] = set()
        flops: dict[str, float] = {}
        for part in self.dataset.part_files("workloads"):
            frame = yield from self._read(part, "workloads")
            if frame is not None:
                wrong = checks.misnamed_modules(frame)
                found = [
                    _once("workload_id", frame, ids),
                    Check("have a module that cannot be read, or another id than it", wrong),
                ]
                yield from self._report(part, frame, "workload_id", found)
                known = frame.filter(pl.col("flops").is_not_null())
                flops.update(known.select("workload_id", "flops").iter_rows())
        return ids, flops

    def _sketches(self) -> Generator[Problem, None, set[str]]:
        ids: set[str] = set()
        for part in self.dataset.part_files("sketches"):
            frame = yield from self._read(part, "sketches")
            if frame is None:
                continue
            pairs = frame.select("sketch_id", "instructions").iter_rows()
            wrong = pl.Series([not checks.hashes_to(name, (), text) for name, text in pairs])
            found = [
                _once("sketch_id", frame, ids),
                Check("have an id that is not the hash of the instructions", wrong),
                Check("are in an unknown language", checks.not_in("language", Language)),
            ]
            yield from self._report(part, frame, "sketch_id", found)
        return ids

    def _networks(self, parts: list[Path], workloads: set[str]) -> Iterator[Problem]:
        seen: set[tuple[str, str]] = set()
        for part in parts:
            frame = yield from self._read(part, "networks")
            if frame is None:
                continue
            found = [
                _once(["network", "workload_id"], frame, seen),
                Check("have a weight below 1", pl.col("weight") < 1),
                checks.reference_checks(workloads, set())[0],
            ]
            yield from self._report(part, frame, "network", found)

    def _measurements(
        self,
        parts: list[Path],
        machines: dict[str, HardwareFile],
        workloads: set[str],
        sketches: set[str],
        flops: dict[str, float],
    ) -> Generator[Problem, None, dict[str, set[str]]]:
        """Return the programs of each hardware."""
        row_checks = checks.measurement_checks(workloads, sketches)
        programs: dict[str, set[str]] = {}
        once: dict[str, set[str]] = {}
        days: dict[str, CanaryDays] = {}
        for part in parts:
            hardware_id = _hardware_id(part)
            frame = yield from self._read(part, "measurements")
            if frame is None:
                self._incomplete.add(hardware_id)
                continue
            first = frame.filter(~checks.may_recur())
            seen = once.setdefault(hardware_id, set())
            yield from self._report(part, first, "program_id", [_once("program_id", first, seen)])
            programs.setdefault(hardware_id, set()).update(frame["program_id"])
            found = [
                *row_checks,
                Check("have an id that is not the hash of the program", checks.misnamed(frame)),
            ]
            machine = machines.get(hardware_id)
            if machine is not None:
                found += checks.label_checks(frame, machine, flops)
            if machine is not None and machine.canary is not None:
                found += checks.canary_checks(machine.canary)
                days.setdefault(hardware_id, CanaryDays(machine.canary)).add(frame)
            yield from self._report(part, frame, "program_id", found)
        for hardware_id, one in days.items():
            folder = self.dataset.path / "measurements" / f"hardware={hardware_id}"
            for what in one.drifts():
                yield self._problem(folder, what, _MEND_DRIFT)
        return programs

    def _mutations(
        self,
        parts: list[Path],
        programs: dict[str, set[str]],
        workloads: set[str],
        sketches: set[str],
    ) -> Iterator[Problem]:
        key = ["parent_id", "direction", "program_id", "model"]
        seen: dict[str, set[tuple[str, ...]]] = {}
        for part in parts:
            frame = yield from self._read(part, "mutations")
            if frame is None:
                continue
            hardware_id = _hardware_id(part)
            is_complete = hardware_id not in self._incomplete
            parents = programs.get(hardware_id, set()) if is_complete else set(frame["parent_id"])
            found = [
                *checks.mutation_checks(workloads, sketches, parents),
                Check("have an id that is not the hash of the program", checks.misnamed(frame)),
                _once(key, frame, seen.setdefault(hardware_id, set())),
            ]
            yield from self._report(part, frame, "program_id", found)

    def _report(
        self, part: Path, frame: pl.DataFrame, key: str, found: Iterable[Check]
    ) -> Iterator[Problem]:
        """Evaluate checks; ``key`` is what to call a row by."""
        found = list(found)
        masks = frame.select(check.mask.alias(check.what) for check in found)
        for check in found:
            bad = frame[key].filter(masks[check.what])
            if len(bad):
                what = f"{len(bad)} of {len(frame)} rows {check.what}, the first is {bad[0]}"
                yield self._problem(part, what, check.mend)

    def _read(self, part: Path, table: str) -> Generator[Problem, None, pl.DataFrame | None]:
        """Return all rows of a part, ``None`` if they are not to be trusted."""
        schema = TABLES[table]
        fault = part_fault(part, schema)
        if fault is not None:
            yield self._problem(part, fault, MEND_PART)
            return None
        try:
            frame = pl.DataFrame(read_table(part))
        except (ValueError, OSError) as error:
            yield self._problem(part, f"is damaged ({first_line(error)})", MEND_PART)
            return None
        required = [field.name for field in schema if not field.nullable]
        empty = [n for n in required if n not in frame.columns or frame[n].null_count()]
        if empty:
            yield self._problem(part, f"lacks values in: {', '.join(empty)}", MEND_ROWS)
            return None
        optional = [pl.lit(None).alias(n) for n in schema.names if n not in frame.columns]
        return frame.with_columns(optional)


def _once(key: str | list[str], frame: pl.DataFrame, seen: set[Any]) -> Check:
    """Check that a key was not seen before, and add all keys to ``seen``."""
    ids = frame[key] if isinstance(key, str) else frame.select(key).iter_rows()
    name = key if isinstance(key, str) else " and ".join(key)
    return Check(f"repeat a {name}", checks.repeated(ids, seen))


def _hardware_id(part: Path) -> str:
    return part.parent.name.removeprefix("hardware=")


def _wrong_hardware(file: Path, content: HardwareFile) -> str | None:
    if content.hardware.hardware_id != file.stem:
        return f"describes another hardware, {content.hardware.hardware_id}"
    canary = content.canary
    times = (canary.compute_s, canary.memory_s) if canary else ()
    if not all(math.isfinite(seconds) and seconds > 0 for seconds in times):
        return "has a reference of its canaries that is not positive"
    return None
