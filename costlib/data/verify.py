"""Prove a dataset sound, or name what is not."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import BaseModel, ConfigDict

from costlib.data.dataset import Dataset
from costlib.data.manifest import HardwareFile, read_hardware
from costlib.data.parts import MEND_PART, first_line, part_fault
from costlib.errors import DatasetError
from costlib.identity import content_id
from costlib.schema import TABLES, CanaryTimes, Origin, Status

CANARY_RANGE = 20.0
"""A canary further from its reference than this factor, either way, is absurd."""

_MEND_ROWS = "remove that file; `costlib collect` on the same tasks brings back what is missing"
_MEND_IDS = "run `costlib collect` on the same tasks again, it adds what is missing"
_MEND_HARDWARE = "restore it from a copy, or remove the measurements of that hardware"


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


@dataclass(frozen=True)
class _Check:
    """``mask`` is true in the rows that ``what`` is said of."""

    what: str
    mask: pl.Expr | pl.Series
    mend: str = _MEND_ROWS


def verify(dataset: Dataset) -> list[Problem]:
    """Read everything in ``dataset`` and check it.

    Every file must be readable, with the columns of :data:`costlib.schema.TABLES`, and its
    checksums must hold. Ids must be the hashes of what they name, and occur once (program ids:
    once for each hardware). The workloads, sketches and hardwares of all measurements must be
    there. Statuses and origins must be known, and exactly the programs that ran have a
    latency. Canaries must be within :data:`CANARY_RANGE` of their reference.

    Returns
    -------
    list of Problem
        Empty if the dataset is sound.
    """
    return list(_problems(dataset))


def _problems(dataset: Dataset) -> Iterator[Problem]:
    def problem(file: Path, what: str, mend: str) -> Problem:
        return Problem(file=str(file.relative_to(dataset.path)), what=what, mend=mend)

    # Listed before the ids are read: a writer adds a program's workload and sketch first.
    found = dataset.part_files("measurements")
    yield from _stray_files(dataset, problem)
    references = yield from _check_hardware(dataset, problem)
    workloads = yield from _check_ids(dataset, "workloads", "workload_id", problem)
    sketches = yield from _check_ids(dataset, "sketches", "sketch_id", problem)
    row_checks = _row_checks(workloads, sketches)
    measured: dict[Path, set[str]] = {}
    for part in found:
        frame = yield from _read(part, "measurements", problem)
        if frame is None:
            continue
        seen = measured.setdefault(part.parent, set())
        checks = [
            *row_checks,
            *_canary_checks(references.get(part.parent.name.removeprefix("hardware="))),
            _Check("have an id that is not the hash of the program", _misnamed(frame)),
            _Check("repeat a program of this hardware", _repeated(frame["program_id"], seen)),
        ]
        masks = frame.select(check.mask.alias(check.what) for check in checks)
        for check in checks:
            bad = frame["program_id"].filter(masks[check.what])
            if len(bad):
                what = f"{len(bad)} of {len(frame)} rows {check.what}, the first is {bad[0]}"
                yield problem(part, what, check.mend)


def _stray_files(dataset: Dataset, problem: _MakeProblem) -> Iterator[Problem]:
    for table in TABLES:
        files = {path for path in (dataset.path / table).rglob("*") if path.is_file()}
        for file in sorted(files - set(dataset.part_files(table))):
            yield problem(file, "is not a part of the table", "move it out of the dataset")


def _check_hardware(
    dataset: Dataset, problem: _MakeProblem
) -> Generator[Problem, None, dict[str, CanaryTimes]]:
    """Return the references of the hardwares that are sound."""
    references = {}
    folder = dataset.path / "hardware"
    needed = {
        folder / f"{part_folder.name.removeprefix('hardware=')}.json"
        for part_folder in (dataset.path / "measurements").glob("hardware=*/")
    }
    files = set(folder.glob("*.json"))
    for file in sorted(files | needed):
        if file not in files:
            yield problem(file, "is missing, but there are measurements on it", _MEND_HARDWARE)
            continue
        try:
            content = read_hardware(file)
        except DatasetError as error:
            yield problem(file, str(error), _MEND_HARDWARE)
            continue
        wrong = _wrong_hardware(file, content)
        if wrong:
            yield problem(file, wrong, _MEND_HARDWARE)
        elif content.canary is not None:
            references[file.stem] = content.canary
    return references


def _wrong_hardware(file: Path, content: HardwareFile) -> str | None:
    if content.hardware.hardware_id != file.stem:
        return f"describes another hardware, {content.hardware.hardware_id}"
    canary = content.canary
    times = (canary.compute_s, canary.memory_s) if canary else ()
    if not all(math.isfinite(seconds) and seconds > 0 for seconds in times):
        return "has a reference of its canaries that is not positive"
    return None


def _check_ids(
    dataset: Dataset, table: str, key: str, problem: _MakeProblem
) -> Generator[Problem, None, set[str]]:
    """Return the ids in the readable parts of a table."""
    ids: set[str] = set()
    for part in dataset.part_files(table):
        frame = yield from _read(part, table, problem)
        if frame is None:
            continue
        repeated = frame[key].filter(_repeated(frame[key], ids))
        if len(repeated):
            yield problem(part, f"repeats {len(repeated)} ids: {repeated[0]}", _MEND_ROWS)
        if table == "sketches":
            pairs = frame.select(key, "instructions").iter_rows()
            wrong = [name for name, text in pairs if not _hashes_to(name, (), text)]
            if wrong:
                yield problem(part, f"has ids that are no hashes: {wrong[0]}", _MEND_ROWS)
    return ids


def _read(
    part: Path, table: str, problem: _MakeProblem
) -> Generator[Problem, None, pl.DataFrame | None]:
    """Return all rows of a part, ``None`` if they are not to be trusted."""
    schema = TABLES[table]
    fault = part_fault(part, schema)
    if fault is not None:
        yield problem(part, fault, MEND_PART)
        return None
    try:
        rows = pq.ParquetFile(part, page_checksum_verification=True).read()
    except (pa.ArrowException, OSError) as error:
        yield problem(part, f"is damaged ({first_line(error)})", MEND_PART)
        return None
    frame = pl.DataFrame(rows)
    required = [field.name for field in schema if not field.nullable]
    empty = [n for n in required if n not in frame.columns or frame[n].null_count()]
    if empty:
        yield problem(part, f"lacks values in: {', '.join(empty)}", _MEND_ROWS)
        return None
    optional = [pl.lit(None).alias(n) for n in schema.names if n not in frame.columns]
    return frame.with_columns(optional)


def _row_checks(workloads: set[str], sketches: set[str]) -> list[_Check]:
    ok = pl.col("status") == str(Status.OK)
    latency = pl.col("latency_s").cast(pl.Float64)
    positive = (latency.is_finite() & (latency > 0)).fill_null(False)

    def not_in(column: str, values: Any) -> pl.Expr:
        return ~pl.col(column).is_in([str(value) for value in values])

    return [
        _Check("ran, but have no positive latency", ok & ~positive),
        _Check("failed, but have a latency", ~ok & latency.is_not_null()),
        _Check("have an unknown status", not_in("status", Status)),
        _Check("have an unknown origin", not_in("origin", Origin)),
        _Check("are of a workload that is not there", not_in("workload_id", workloads), _MEND_IDS),
        _Check("are of a sketch that is not there", not_in("sketch_id", sketches), _MEND_IDS),
    ]


def _canary_checks(reference: CanaryTimes | None) -> Iterator[_Check]:
    if reference is None:
        return
    for kind, expected in (("compute", reference.compute_s), ("memory", reference.memory_s)):
        usual = (pl.element() / expected).is_between(1 / CANARY_RANGE, CANARY_RANGE)
        yield _Check(
            f"have a {kind} canary over {CANARY_RANGE:g} times off its reference of {expected} s",
            pl.col(f"canary_{kind}").list.eval(~usual.fill_null(False)).list.any(),
        )


def _misnamed(frame: pl.DataFrame) -> pl.Series:
    rows = frame.select("program_id", "workload_id", "sketch_id", "decisions").iter_rows()
    return pl.Series(
        [not _hashes_to(name, (workload, sketch), text) for name, workload, sketch, text in rows],
        dtype=pl.Boolean,
    )


def _hashes_to(name: str, context: tuple[str, ...], text: str) -> bool:
    try:
        return content_id(*context, json.loads(text)) == name
    except ValueError:
        return False


def _repeated(ids: pl.Series, seen: set[str]) -> pl.Series:
    """Mark ids that were seen before, and add all of them to ``seen``."""
    marks = []
    for row_id in ids:
        marks.append(row_id in seen)
        seen.add(row_id)
    return pl.Series(marks, dtype=pl.Boolean)
