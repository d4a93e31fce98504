"""Targets as logs write them, and the hardware that they describe."""

from __future__ import annotations

import json
import re
from typing import Any

from costlib.hardware import Hardware
from costlib.logs.importers.record import SkippedRecordError

_CPU_KINDS = {"llvm", "c"}
_LISTS = {"keys", "libs", "mattr"}
_GONE = "link-params"
"""An option that TVM 0.27 refuses; it never changed the code of a program."""

_NAMES = {"kind", "model", "mcpu", "arch", "mtriple"}
"""Options that are text, even if it looks like a number, and become part of file names."""

_MAX_NAME = 60

_DERIVED = "feature."
"""Options that TVM derives from the others."""


def parse_target(target: Any) -> dict[str, Any]:
    """Return a target as the dictionary that ``tvm.target.Target`` takes.

    It may be such a dictionary, its JSON, or a line such as ``cuda -arch=sm_80 -keys=cuda,gpu``;
    anything else is a :class:`SkippedRecordError`.
    """
    if isinstance(target, str):
        target = _parse_line(target)
    if not isinstance(target, dict) or not isinstance(target.get("kind"), str):
        raise SkippedRecordError("the target is malformed")
    kept = {
        key: value
        for key, value in target.items()
        if key != _GONE and not key.startswith(_DERIVED) and (key != "tag" or value)
    }
    for name in _NAMES & kept.keys():
        kept[name] = str(kept[name])
        if len(kept[name]) > _MAX_NAME:
            raise SkippedRecordError("the target is malformed")
    if "host" in kept:
        kept["host"] = parse_target(kept["host"])
    return kept


def hardware_of(target: dict[str, Any], *, num_cores: int = 0, vector_bits: int = 0) -> Hardware:
    """Describe the hardware behind a target, parsed, as far as it is known.

    ``num_cores`` counts if the target does not say. What is unknown is 0.
    """
    kind = target["kind"]
    model = target.get("model")
    if model in (None, "", "unknown"):
        model = target.get("mtriple") or kind
    cores = target.get("num-cores", num_cores)
    return Hardware(
        kind="cpu" if kind in _CPU_KINDS else kind,
        model=str(model),
        num_cores=max(cores, 0) if isinstance(cores, int) else 0,
        target=target,
        vector_bits=vector_bits,
    )


def _parse_line(line: str) -> Any:
    if line.lstrip().startswith("{"):
        try:
            return json.loads(line)
        except (ValueError, RecursionError):
            return None
    kind, *options = line.split() or [""]
    if not re.fullmatch(r"[A-Za-z][\w.-]*", kind) or any(o[0] != "-" for o in options):
        return None
    target: dict[str, Any] = {"kind": kind}
    for option in options:
        name, _, value = option.lstrip("-").partition("=")
        target[name] = value.split(",") if name in _LISTS else _parse_value(value)
    return target


def _parse_value(text: str) -> Any:
    return True if not text else int(text) if re.fullmatch(r"-?\d{1,18}", text) else text
