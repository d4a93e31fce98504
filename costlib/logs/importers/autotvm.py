"""AutoTVM's logs, versions 0.1 and 0.2."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from costlib.identity import content_id
from costlib.logs.importers.record import (
    ImportedRecord,
    SkippedRecordError,
    moment,
    outcome_of,
)
from costlib.logs.importers.targets import hardware_of, parse_target
from costlib.schema import Language
from costlib.space.program import Program, Sketch


def is_autotvm(entry: Any) -> bool:
    """Whether a line's JSON is a record of AutoTVM."""
    if not isinstance(entry, dict):
        return False
    return {"input", "config", "result"} <= entry.keys() or _is_old(entry)


def read_autotvm(entry: dict[str, Any], otherwise: datetime) -> ImportedRecord:
    """Read a record.

    Its sketch is the knobs of the template, its decisions their values, as
    ``[number of the knob, value]``; a tile of -1 is what the others leave of the loop.

    Parameters
    ----------
    entry
        The line's JSON.
    otherwise
        When it was made, if it does not say.

    Raises
    ------
    SkippedRecordError
        It cannot be imported.
    """
    try:
        if _is_old(entry):
            target, template, arguments, options, _, config = entry["i"]
            entity, result = config["e"], entry["r"]
        else:
            target, template, arguments, options = entry["input"]
            entity, result = entry["config"]["entity"], entry["result"]
        knobs = [(name, kind, value) for name, kind, value in entity]
        costs, error_number, _, timestamp = result
    except (TypeError, ValueError, LookupError):
        raise SkippedRecordError("the record is malformed") from None
    if not isinstance(template, str) or not isinstance(arguments, list):
        raise SkippedRecordError("the record is malformed")
    outcome = outcome_of(costs, error_number)
    sketch = Sketch([[name, kind] for name, kind, _ in knobs])
    workload_id = content_id(str(Language.AUTOTVM), [template, arguments, options])
    decisions = [[index, value] for index, (_, _, value) in enumerate(knobs)]
    return ImportedRecord(
        workload={
            "workload_id": workload_id,
            "name": f"{template}({', '.join(map(json.dumps, arguments))})",
            "arguments": _tensors(arguments),
            "flops": None,
            "mod_json": None,
            "mod_script": None,
        },
        language=Language.AUTOTVM,
        sketch=sketch,
        program=Program(workload_id, sketch.sketch_id, decisions),
        hardware=hardware_of(parse_target(target)),
        outcome=outcome,
        measured_at=moment(timestamp, otherwise),
    )


def _is_old(entry: dict[str, Any]) -> bool:
    """Whether it is of version 0.1, whose fields have the names that Ansor later took."""
    return entry.get("v") == 0.1 and {"i", "r"} <= entry.keys()


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
