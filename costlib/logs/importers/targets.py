"""Targets as logs write them, and the hardware that they describe."""

from __future__ import annotations

import json
import re
import shlex
from typing import Any

from costlib.hardware import Hardware
from costlib.logs.importers.record import SkippedRecordError

_CPU_KINDS = {"llvm", "c"}
_LISTS = {"keys", "libs", "mattr"}
_GONE = {"executor", "link-params", "runtime", "system-lib"}
"""Options that TVM 0.27 refuses; they never changed the code of a program."""

_NAMES = {"kind", "model", "mcpu", "arch", "mtriple"}
"""Options that are text, even if it looks like a number, and become part of file names."""

_MAX_NAME = 60

_OPTION = re.compile(r"--?([A-Za-z][\w.-]*)(?:=(.*))?", re.DOTALL)

_DERIVED = "feature."
"""Options that TVM derives from the others."""


def parse_target(target: Any) -> dict[str, Any]:
    """Return a target as the dictionary that ``tvm.target.Target`` takes.

    It may be such a dictionary, its JSON, or a line as TVM or a shell takes it, such as
    ``cuda -arch=sm_80 -keys=cuda,gpu`` or ``llvm -mcpu=skylake-avx512 -num-cores 4``; anything
    else is a :class:`SkippedRecordError`.
    """
    if isinstance(target, str):
        target = _parse_line(target)
    if not isinstance(target, dict) or not isinstance(target.get("kind"), str):
        raise SkippedRecordError("the target is malformed")
    kept = {
        key: value
        for key, value in target.items()
        if key not in _GONE and not key.startswith(_DERIVED) and (key != "tag" or value)
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
    try:
        kind, *words = shlex.split(line) or [""]
    except ValueError:
        return None
    if not re.fullmatch(r"[A-Za-z][\w.-]*", kind):
        return None
    target: dict[str, Any] = {"kind": kind}
    while words:
        option = _OPTION.fullmatch(words.pop(0))
        if option is None:
            return None
        name, value = option.groups()
        if not value and words and not _OPTION.fullmatch(words[0]):
            value = words.pop(0)  # TVM also took ``-name value``.
        target[name] = _parse_value(name, value)
    return target


def _parse_value(name: str, text: str | None) -> Any:
    if name in _LISTS:
        return text.split(",") if text else []
    if text is None:
        return True
    return int(text) if re.fullmatch(r"-?\d{1,18}", text) else text
