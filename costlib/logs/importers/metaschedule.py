"""Records of MetaSchedule databases, of TVM 0.27 and older."""

from __future__ import annotations

from collections import OrderedDict
from datetime import datetime
from pathlib import Path
from typing import Any

from costlib.hardware import Hardware
from costlib.logs.importers.record import (
    ImportedRecord,
    Outcome,
    SkippedRecordError,
    outcome_of,
)
from costlib.logs.importers.targets import hardware_of, parse_target
from costlib.logs.importers.traces import translate_trace
from costlib.logs.importers.workloads import Workload, WorkloadFile, workloads_beside
from costlib.schema import Language, Status
from costlib.space.design_space import DesignSpace
from costlib.space.program import ENTER_POSTPROC, Program, Sketch, split_trace
from costlib.tvm_compat import tvm
from costlib.tvm_compat.api import register_intrinsics, trace_from_json, trace_to_json
from costlib.tvm_compat.database import trace_entry
from costlib.tvm_compat.quiet import stderr_silenced

_TVM_ERRORS = (RuntimeError, ValueError, TypeError, LookupError, AttributeError)
_MAX_SPACES = 32


class DatabaseReader:
    """Reads the tuning records of one database.

    A trace is replayed on its workload. If this TVM's postprocessors make the same program of
    the part before postprocessing, as for databases that stock TVM 0.27 wrote, the program is
    kept the way collected ones are. Otherwise its sketch is the whole trace.

    Parameters
    ----------
    file
        The file of records; its workloads are in it or beside it.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._workloads: WorkloadFile | SkippedRecordError | None = None
        self._spaces: OrderedDict[tuple[str, str], DesignSpace | None] = OrderedDict()

    def read(self, entry: list[Any], otherwise: datetime) -> ImportedRecord:
        """Read a record.

        Parameters
        ----------
        entry
            ``[workload index, [trace, seconds, target, arguments]]``.
        otherwise
            When it was made; databases do not say.

        Raises
        ------
        SkippedRecordError
            It cannot be imported.
        """
        try:
            index, (trace, costs, target, *_) = entry
            instructions, decisions = trace
            instructions = translate_trace(instructions)
        except (TypeError, ValueError, LookupError):
            raise SkippedRecordError("the record is malformed") from None
        workload = self._workload(index)
        outcome = outcome_of(costs)
        hardware = hardware_of(parse_target(target))
        trace = _replay(workload, hardware, instructions, decisions)
        sketch, decided, outcome = self._program(workload, hardware, trace, outcome)
        return ImportedRecord(
            workload=workload.row,
            language=Language.METASCHEDULE,
            sketch=sketch,
            program=Program(workload.workload_id, sketch.sketch_id, decided),
            hardware=hardware,
            outcome=outcome,
            measured_at=otherwise,
        )

    def _workload(self, index: int) -> Workload:
        if self._workloads is None:
            try:
                self._workloads = workloads_beside(self._file)
            except SkippedRecordError as error:
                self._workloads = error
        if isinstance(self._workloads, SkippedRecordError):
            raise self._workloads
        return self._workloads.workload(index)

    def _program(
        self, workload: Workload, hardware: Hardware, trace: Any, outcome: Outcome
    ) -> tuple[Sketch, list[Any], Outcome]:
        """Find the sketch and the decisions that stand for a trace."""
        instructions, decisions = trace_to_json(trace)
        kinds = [instruction[0] for instruction in instructions]
        end = kinds.index(ENTER_POSTPROC) if ENTER_POSTPROC in kinds else len(kinds)
        sketch, decided = split_trace(instructions[:end], [d for d in decisions if d[0] < end])
        space = self._space(workload, hardware)
        if space is not None:
            program = Program(workload.workload_id, sketch.sketch_id, decided)
            schedule = _lowered(space, program, sketch)
            if schedule is None and end == len(kinds) and outcome.status is not Status.OK:
                return sketch, decided, Outcome(Status.INVALID, error=outcome.error)
            if schedule is not None and trace_to_json(schedule.trace) == (instructions, decisions):
                return sketch, decided, outcome
        instructions, decisions = trace_entry(trace)
        if end == len(kinds):
            instructions = [*instructions, [ENTER_POSTPROC, [], [], []]]
        return *split_trace(instructions, decisions), outcome

    def _space(self, workload: Workload, hardware: Hardware) -> DesignSpace | None:
        """Return the workload's design space, ``None`` if TVM has none for the target."""
        key = (workload.workload_id, hardware.hardware_id)
        if key not in self._spaces:
            try:
                with stderr_silenced():
                    self._spaces[key] = DesignSpace(workload.task(hardware.target))
            except _TVM_ERRORS:
                self._spaces[key] = None
            if len(self._spaces) > _MAX_SPACES:
                self._spaces.popitem(last=False)
        self._spaces.move_to_end(key)
        return self._spaces[key]


def _replay(workload: Workload, hardware: Hardware, instructions: list[Any], decisions: Any) -> Any:
    """Apply a trace to its workload and return it as this TVM understood it."""
    try:
        register_intrinsics(hardware.target)
        schedule = tvm.s_tir.Schedule(workload.mod, seed=1, error_render_level="none")
        trace_from_json(instructions, decisions, schedule)
        trace = schedule.trace
        open_decisions = trace_entry(trace)[1] != decisions
    except _TVM_ERRORS:
        raise SkippedRecordError("the trace does not apply to its workload") from None
    if open_decisions:
        raise SkippedRecordError("the trace leaves decisions open")
    return trace


def _lowered(space: DesignSpace, program: Program, sketch: Sketch) -> Any | None:
    try:
        with stderr_silenced():
            return space.lower(program, sketch)
    except _TVM_ERRORS:
        return None
