"""AutoTVM's logs, versions 0.1 and 0.2."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from costlib.logs.importers.record import (
    ImportedRecord,
    SkippedRecordError,
    moment,
    outcome_of,
    row_without_module,
)
from costlib.logs.importers.targets import hardware_of, parse_target
from costlib.schema import Language
from costlib.space.program import Sketch


def read_autotvm(entry: dict[str, Any], otherwise: datetime) -> ImportedRecord:
    """Read a record, as :func:`~costlib.logs.importers.ansor.read_ansor` does.

    Its sketch is the knobs of the template, its decisions their values, as
    ``[number of the knob, value]``; a tile of -1 is what the others leave of the loop.
    """
    match entry:
        case {"v": 0.1, "i": [target, template, arguments, options, _, config], "r": result}:
            entity = config["e"]
        case {"input": [target, template, arguments, options], "config": config, "result": result}:
            entity = config["entity"]
        case _:
            raise ValueError("it has other fields")
    knobs = [(name, kind, value) for name, kind, value in entity]
    costs, error_number, _, timestamp = result
    if not isinstance(template, str) or not isinstance(arguments, list):
        raise TypeError("it has no template or no arguments")
    outcome = outcome_of(costs, error_number)
    key = [template, arguments, options]
    tensors = _tensors(arguments)
    return ImportedRecord(
        workload=row_without_module(Language.AUTOTVM, key, template, arguments, tensors),
        language=Language.AUTOTVM,
        sketch=Sketch([[name, kind] for name, kind, _ in knobs]),
        decisions=[[index, value] for index, (_, _, value) in enumerate(knobs)],
        hardware=hardware_of(parse_target(target)),
        outcome=outcome,
        measured_at=moment(timestamp, otherwise),
    )


def _tensors(arguments: list[Any]) -> list[dict[str, Any]]:
    """Return the tensors among the arguments: ``["TENSOR", shape, dtype]``."""
    found = []
    for argument in arguments:
        match argument:
            case ["TENSOR", list(shape), str(dtype)]:
                if not all(type(n) is int and abs(n) < 2**63 for n in shape):
                    raise SkippedRecordError("a tensor's shape is malformed")
                found.append({"dtype": dtype, "shape": shape})
    return found
