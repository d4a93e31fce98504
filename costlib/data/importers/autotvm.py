"""AutoTVM's logs, version 0.2."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from costlib.data.importers.record import (
    ImportedRecord,
    SkippedRecordError,
    moment,
    outcome_of,
)
from costlib.data.importers.targets import hardware_of, parse_target
from costlib.identity import content_id
from costlib.schema import Language
from costlib.space.program import Program, Sketch


def is_autotvm(entry: Any) -> bool:
    """Whether a line's JSON is a record of AutoTVM."""
    return isinstance(entry, dict) and {"input", "config", "result"} <= entry.keys()


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
        target, template, arguments, options = entry["input"]
        knobs = [(name, kind, value) for name, kind, value in entry["config"]["entity"]]
        costs, error_number, _, timestamp = entry["result"]
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
