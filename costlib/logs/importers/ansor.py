"""Ansor's logs (``auto_scheduler``), versions v0.2 to v0.6."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from costlib.hardware import Hardware
from costlib.logs.importers.record import (
    ImportedRecord,
    SkippedRecordError,
    moment,
    outcome_of,
    row_without_module,
)
from costlib.logs.importers.steps import erase_steps
from costlib.logs.importers.targets import hardware_of, parse_target
from costlib.schema import Language

_VERSIONS = {"v0.2", "v0.3", "v0.4", "v0.5", "v0.6"}


def read_ansor(entry: dict[str, Any], otherwise: datetime) -> ImportedRecord:
    """Read the JSON of a line; ``otherwise`` is when it was made, if it does not say.

    Raises
    ------
    SkippedRecordError
        It cannot be imported, for the reason it gives.
    LookupError, TypeError, ValueError
        It is malformed.
    """
    if entry.get("v") not in _VERSIONS:
        raise SkippedRecordError("an unknown version of Ansor's log")
    (key, target, *rest), (_, steps) = entry["i"]
    costs, error_number, _, timestamp = entry["r"]
    if not isinstance(key, str) or not isinstance(steps, list):
        raise TypeError("it has no key or no steps")
    outcome = outcome_of(costs, error_number)
    sketch, decisions = erase_steps(steps)
    return ImportedRecord(
        workload=_workload(key),
        language=Language.ANSOR,
        sketch=sketch,
        decisions=decisions,
        hardware=_hardware(target, rest),
        outcome=outcome,
        measured_at=moment(timestamp, otherwise),
    )


def _workload(key: str) -> dict[str, Any]:
    """Describe a key: ``[function or hash, argument, ...]`` as JSON."""
    try:
        name, *arguments = json.loads(key)
    except (ValueError, TypeError, RecursionError):
        name, arguments = key, []
    tensors = [{"dtype": "", "shape": shape} for shape in _shapes(arguments)]
    return row_without_module(Language.ANSOR, key, name, arguments, tensors)


def _shapes(arguments: list[Any]) -> list[list[int]]:
    """Return the arguments if all are shapes; numbers among them may be anything."""
    are_shapes = all(
        isinstance(a, list) and all(type(n) is int and abs(n) < 2**63 for n in a) for a in arguments
    )
    return arguments if are_shapes else []


def _hardware(target: Any, rest: list[Any]) -> Hardware:
    """Since v0.3, the cores and the bytes of a vector follow the target; then its host."""
    description = parse_target(target)
    if len(rest) > 1 and rest[1]:
        description.setdefault("host", parse_target(rest[1]))
    limits = rest[0] if rest and isinstance(rest[0], list) else []
    cores, vector_bytes = (n if type(n) is int else 0 for n in [*limits, 0, 0][:2])
    return hardware_of(description, num_cores=cores, vector_bits=8 * vector_bytes)
