"""MetaSchedule's database files: what their lines hold, as JSON values."""

from __future__ import annotations

import json
from typing import Any

from costlib.tvm_compat import ms, tvm
from costlib.tvm_compat.api import plain

_GRAPH = '{"root_index"'
"""Graphs within traces, such as index maps; records have them indented."""


def workload_entry(mod: Any) -> list[str]:
    """Return what a database says of a workload: its structural hash and the module."""
    return [str(part) for part in ms.database.Workload(mod).as_json()]


def target_entry(target: dict[str, Any]) -> dict[str, Any]:
    """Return what a record says of its target: all options, also those left to their default.

    Raises
    ------
    ValueError
        TVM does not know the target.
    """
    options: dict[str, Any] = plain(tvm.target.Target(target).export())
    return options


def trace_entry(trace: Any) -> list[Any]:
    """Return what a record says of a trace, down to how it writes truth values."""
    entry = _plain(trace.as_json())
    assert isinstance(entry, list)
    return entry


def _plain(value: Any) -> Any:
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, str) and value.startswith(_GRAPH):
        return json.dumps(json.loads(value), indent=2)
    if isinstance(value, (str, int, float)) or value is None:
        return value
    if hasattr(value, "items"):
        return {str(key): _plain(item) for key, item in value.items()}
    if hasattr(value, "value"):  # A constant.
        return bool(value.value) if value.ty.dtype == "bool" else value.value
    return [_plain(item) for item in value]
