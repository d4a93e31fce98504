"""Lists of the zoo's tasks, kept from call to call: importing PyTorch to make one takes seconds."""

from __future__ import annotations

import json
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

import costlib
from costlib.errors import StorageError, UnknownNameError
from costlib.files import write_file
from costlib.hardware import Hardware
from costlib.identity import content_id
from costlib.remote.address import TASK_LISTS, cache_root
from costlib.workloads.layout_choice import Layouts

_MADE_WITH = ("torch", "transformers", "apache-tvm")
_KEYS = ("workload_id", "name", "title", "weight", "flops", "arguments")


def list_tasks(
    source: str, hardware: Hardware, layouts: Layouts = "channels-last"
) -> list[dict[str, Any]]:
    """Return what ``costlib tasks`` shows of each task of a source.

    Of a network of the zoo that is read from the cache if the same code made it before; what cannot
    be read there is made anew, and what cannot be written is not kept.
    """
    if not _is_in_zoo(source):
        return _extracted(source, hardware, layouts)
    file = cache_root() / TASK_LISTS / f"{content_id(*_makings(source, hardware, layouts))}.json"
    with suppress(OSError, ValueError):
        known: list[dict[str, Any]] = json.loads(file.read_text())
        return known
    found = _extracted(source, hardware, layouts)
    with suppress(OSError, StorageError):
        file.parent.mkdir(parents=True, exist_ok=True)
        write_file(file, json.dumps(found).encode())
    return found


def _is_in_zoo(source: str) -> bool:
    from costlib.workloads.zoo import network_spec

    try:
        network_spec(source)
    except UnknownNameError:
        return False
    return not Path(source).exists()


def _makings(source: str, hardware: Hardware, layouts: Layouts) -> list[Any]:
    """Return all that a list depends on: the code of this package by the times of its files."""
    folder = Path(costlib.__file__).parent
    code = sorted((str(path), path.stat().st_mtime_ns) for path in folder.rglob("*.py"))
    return [source, hardware.target, layouts, [version(name) for name in _MADE_WITH], code]


def _extracted(source: str, hardware: Hardware, layouts: Layouts) -> list[dict[str, Any]]:
    from costlib.workloads import extract_tasks

    tasks = extract_tasks(source, hardware, layouts=layouts)
    return [{key: getattr(task, key) for key in _KEYS} for task in tasks]
