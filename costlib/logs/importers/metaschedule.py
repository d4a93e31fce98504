"""Records of MetaSchedule databases, of TVM 0.27 and older."""

from __future__ import annotations

import json
import math
from datetime import datetime
from functools import lru_cache
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
from costlib.logs.importers.workloads import Workload, WorkloadFile
from costlib.schema import Language, Status
from costlib.space.design_space import DesignSpace
from costlib.space.program import ENTER_POSTPROC, Program, Sketch, split_trace
from costlib.tvm_compat import tvm
from costlib.tvm_compat.api import register_intrinsics, trace_from_json, trace_to_json
from costlib.tvm_compat.database import trace_entry
from costlib.tvm_compat.quiet import stderr_silenced

TVM_ERRORS = (RuntimeError, ValueError, TypeError, LookupError, AttributeError)
"""What TVM raises at a trace that it cannot apply."""

_MAX_SPACES = 32


class DatabaseReader:
    """Reads the tuning records of one database: of a file, its workloads in it, beside it or given.

    A trace is replayed on its workload. If this TVM's postprocessors make the same program of
    the part before postprocessing, as for databases that stock TVM 0.27 wrote, the program is
    kept the way collected ones are. Otherwise its sketch is the whole trace.
    """

    def __init__(self, file: Path, workloads: Path | None = None) -> None:
        self._workloads = WorkloadFile(file, workloads)
        self._are_given = workloads is not None

    def read(self, entry: list[Any], otherwise: datetime) -> ImportedRecord:
        """Read a record, as :func:`~costlib.logs.importers.ansor.read_ansor` does.

        It is ``[workload index, [trace, seconds, target, arguments]]``.
        """
        index, (trace, costs, target, *arguments) = entry
        instructions, decisions = trace
        instructions = translate_trace(instructions)
        workload = self._workloads.workload(index)
        if self._are_given and not _takes(workload, *arguments):
            raise SkippedRecordError("its arguments are not those of the given workload")
        outcome = outcome_of(costs)
        hardware = hardware_of(parse_target(target))
        trace = _replayed_trace(workload, hardware, instructions, decisions)
        sketch, decided, outcome = _program(workload, hardware, trace, outcome)
        return ImportedRecord(
            workload=workload.row,
            language=Language.METASCHEDULE,
            sketch=sketch,
            decisions=decided,
            hardware=hardware,
            outcome=outcome,
            measured_at=otherwise,
        )


def replay(mod: Any, target: dict[str, Any], instructions: list[Any], decisions: Any) -> Any:
    """Apply a trace to a module; return the schedule, or raise one of :data:`TVM_ERRORS`."""
    register_intrinsics(target)
    schedule = tvm.s_tir.Schedule(mod, seed=1, error_render_level="none")
    trace_from_json(instructions, decisions, schedule)
    return schedule


def _takes(workload: Workload, arguments: list[Any] | None = None) -> bool:
    """Say whether a workload has the arguments of a record: types, and numbers of elements.

    Their shapes may be others, since a schedule may change the layout of weights.
    """
    if arguments is None:
        return True
    expected = [(one["dtype"], math.prod(one["shape"])) for one in workload.row["arguments"]]
    return expected == [(dtype, math.prod(shape)) for _, dtype, shape in arguments]


def _replayed_trace(
    workload: Workload, hardware: Hardware, instructions: list[Any], decisions: Any
) -> Any:
    """Apply a trace to its workload and return it as this TVM understood it."""
    try:
        trace = replay(workload.mod, hardware.target, instructions, decisions).trace
        open_decisions = trace_entry(trace)[1] != decisions
    except TVM_ERRORS:
        raise SkippedRecordError("the trace does not apply to its workload") from None
    if open_decisions:
        raise SkippedRecordError("the trace leaves decisions open")
    return trace


def _program(
    workload: Workload, hardware: Hardware, trace: Any, outcome: Outcome
) -> tuple[Sketch, list[Any], Outcome]:
    """Find the sketch and the decisions that stand for a trace."""
    instructions, decisions = trace_to_json(trace)
    kinds = [instruction[0] for instruction in instructions]
    end = kinds.index(ENTER_POSTPROC) if ENTER_POSTPROC in kinds else len(kinds)
    sketch, decided = split_trace(instructions[:end], [d for d in decisions if d[0] < end])
    space = _space(workload, json.dumps(hardware.target))
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


@lru_cache(_MAX_SPACES)
def _space(workload: Workload, target: str) -> DesignSpace | None:
    """Return the workload's design space, ``None`` if TVM has none for the target, as JSON."""
    try:
        with stderr_silenced():
            return DesignSpace(workload.task(json.loads(target)))
    except TVM_ERRORS:
        return None


def _lowered(space: DesignSpace, program: Program, sketch: Sketch) -> Any | None:
    try:
        with stderr_silenced():
            return space.lower(program, sketch)
    except TVM_ERRORS:
        return None
