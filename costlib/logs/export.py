"""Write the programs of a dataset as a database that stock MetaSchedule opens."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import cached_property
from pathlib import Path
from typing import IO, Any

import polars as pl

from costlib.data.completeness import check_complete
from costlib.data.dataset import Dataset
from costlib.data.parts import hardware_of
from costlib.errors import InputError, UnknownNameError
from costlib.files import storage_errors
from costlib.frozen import Frozen
from costlib.hardware import Hardware
from costlib.logs.importers.metaschedule import TVM_ERRORS, replay
from costlib.places import check_writable, refuse_others
from costlib.schema import Language, Status
from costlib.space.design_space import DesignSpace
from costlib.space.program import ENTER_POSTPROC, Program, Sketch, fill_sketch
from costlib.tvm_compat.api import argument_shapes, entry_argument_shapes, module_from_json
from costlib.tvm_compat.database import target_entry, trace_entry, workload_entry
from costlib.tvm_compat.quiet import stderr_silenced
from costlib.workloads.task import Task

WORKLOADS = "database_workload.json"
RECORDS = "database_tuning_record.json"

_FAILED_SECS = 10_000_000_000
"""What MetaSchedule takes for the time of a program that failed."""

_COLUMNS = ["workload_id", "sketch_id", "decisions", "status", "run_secs"]


class ExportReport(Frozen):
    """What became of the measurements of an export.

    Attributes
    ----------
    records
        Measurements looked at.
    exported
        Those that are in the database now.
    skipped
        Those left out, counted by reason.
    """

    records: int
    exported: int
    skipped: dict[str, int]


def export_metaschedule(
    dataset: Dataset, out: str | Path, *, hardware_id: str | None = None
) -> ExportReport:
    """Write a dataset's MetaSchedule programs as ``ms.database.JSONDatabase`` keeps them.

    Failed measurements get the time that MetaSchedule gives them; why they failed is lost, but
    for those whose decisions give no valid program: their trace lacks the postprocessing.

    Parameters
    ----------
    out
        The folder of the database; made if it does not exist. There must be none in it.
    hardware_id
        Only the programs measured on this hardware; a lookup in a MetaSchedule database does
        not ask for the target.

    Raises
    ------
    InputError
        There is a database already or something else of ours, the hardware is unknown, or the
        dataset is incomplete.
    StorageError
        The database cannot be written.
    """
    out = Path(out)
    refuse_others(out, "a database")
    check_writable(out)
    check_complete(dataset)
    known = dataset.hardware()
    if hardware_id is not None and hardware_id not in known:
        raise UnknownNameError("hardware", hardware_id, known)
    if (out / RECORDS).exists():
        raise InputError(f"there is a database in {out} already; choose another folder")
    indices: dict[str, int] = {}
    exported = skipped = 0
    with storage_errors(out), ExitStack() as stack:
        out.mkdir(parents=True, exist_ok=True)
        workloads = stack.enter_context(_unfinished(out / WORKLOADS))
        records = stack.enter_context(_unfinished(out / RECORDS))
        for group, rows in _groups(dataset, known, hardware_id):
            for row in rows.iter_rows(named=True):
                record = group.record(row)
                if record is None:
                    skipped += 1
                    continue
                if group.workload_id not in indices:
                    indices[group.workload_id] = len(indices)
                    _write_line(workloads, workload_entry(group.mod))
                _write_line(records, [indices[group.workload_id], record])
                exported += 1
        if not exported:
            raise InputError(f"{dataset.path} has no MetaSchedule programs to export")
        for stream, name in ((workloads, WORKLOADS), (records, RECORDS)):
            stream.flush()
            Path(stream.name).replace(out / name)
    reasons = {"this TVM does not make its program": skipped} if skipped else {}
    return ExportReport(records=exported + skipped, exported=exported, skipped=reasons)


class _Group:
    """Programs of one workload on one hardware."""

    def __init__(
        self, workload: dict[str, Any], hardware: Hardware, sketches: dict[str, Sketch]
    ) -> None:
        self.workload_id: str = workload["workload_id"]
        self.mod = module_from_json(workload["mod_json"])
        self._task = Task(workload["name"], self.mod, hardware.target)
        self._sketches = sketches

    @cached_property
    def _target(self) -> dict[str, Any]:
        return target_entry(self._task.target)

    @cached_property
    def _space(self) -> DesignSpace:
        with stderr_silenced():
            return DesignSpace(self._task)

    def record(self, row: dict[str, Any]) -> list[Any] | None:
        """Return what a database says of a program, ``None`` if TVM cannot make it."""
        program = Program.from_row(row["workload_id"], row["sketch_id"], row["decisions"])
        sketch = self._sketches[program.sketch_id]
        seconds = row["run_secs"] if row["status"] == str(Status.OK) else [_FAILED_SECS]
        try:
            if row["status"] == str(Status.INVALID):
                trace = list(fill_sketch(sketch, program.decisions))
                arguments = argument_shapes(self.mod)
            else:
                schedule = self._schedule(program, sketch)
                trace = trace_entry(schedule.trace)
                # A sketch imported from a trace without postprocessing ends in a mark.
                if sketch.is_final and trace[0][-1][0] == ENTER_POSTPROC:
                    trace[0] = trace[0][:-1]
                arguments = entry_argument_shapes(schedule.mod)
            tensors = [["TENSOR", dtype, list(shape)] for dtype, shape in arguments]
            return [trace, seconds, self._target, tensors]
        except TVM_ERRORS:
            return None

    def _schedule(self, program: Program, sketch: Sketch) -> Any:
        if not sketch.is_final:
            with stderr_silenced():
                return self._space.lower(program, sketch)
        return replay(self.mod, self._task.target, *fill_sketch(sketch, program.decisions))


def _groups(
    dataset: Dataset, known: Mapping[str, Hardware], hardware_id: str | None
) -> Iterator[tuple[_Group, pl.DataFrame]]:
    """Take a dataset's MetaSchedule programs part by part, and then by workload."""
    language = pl.col("language") == str(Language.METASCHEDULE)
    wanted = dataset.scan("sketches").filter(language).select("sketch_id", "instructions")
    texts = dict(wanted.collect().iter_rows())
    for part in dataset.part_files("measurements"):
        name = hardware_of(part)
        if hardware_id not in (None, name):
            continue
        rows = pl.read_parquet(part, columns=_COLUMNS, hive_partitioning=False)
        for (workload_id,), group in rows.filter(pl.col("sketch_id").is_in(list(texts))).group_by(
            "workload_id", maintain_order=True
        ):
            found = dataset.scan("workloads").filter(pl.col("workload_id") == workload_id)
            workload = found.select("workload_id", "name", "mod_json").collect().row(0, named=True)
            used = group["sketch_id"].unique()
            sketches = {sketch_id: Sketch.from_json(texts[sketch_id]) for sketch_id in used}
            yield _Group(workload, known[name], sketches), group


@contextmanager
def _unfinished(file: Path) -> Iterator[IO[str]]:
    """Open a file of another name, which is removed unless it was renamed."""
    path = file.with_name(f".{file.name}.unfinished")
    try:
        with path.open("w") as stream:
            yield stream
    finally:
        path.unlink(missing_ok=True)


def _write_line(stream: IO[str], value: Any) -> None:
    stream.write(json.dumps(value, separators=(",", ":")) + "\n")
