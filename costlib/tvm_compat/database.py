"""MetaSchedule's database files: what their lines hold, as JSON values."""

from __future__ import annotations

from typing import Any

from costlib.tvm_compat import ms, tvm


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
    exported = _plain(tvm.target.Target(target).export())
    assert isinstance(exported, dict)
    return exported


def _plain(value: Any) -> Any:
    if isinstance(value, (str, bool, int, float)) or value is None:
        return value
    if hasattr(value, "items"):
        return {str(key): _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value]
