"""The workloads of MetaSchedule databases, whatever version of TVM wrote them."""

from __future__ import annotations

import base64
import binascii
import re
from functools import cached_property
from pathlib import Path
from typing import Any

from costlib.logs.importers.files import is_workload, read_entries
from costlib.logs.importers.graph import Graph
from costlib.logs.importers.record import SkippedRecordError
from costlib.logs.importers.script import to_script
from costlib.tvm_compat import tvm
from costlib.tvm_compat.api import (
    argument_shapes,
    estimate_flops,
    module_from_json,
    module_to_json,
)
from costlib.workloads.task import Task, workload_id

_LENGTH_BYTES = 8
"""A module's text follows its length."""

_UNREADABLE = (
    *(RuntimeError, ValueError, TypeError, LookupError),
    *(RecursionError, AttributeError, SyntaxError),
)

NO_WORKLOADS = "no workload file beside it"


class Workload:
    """One workload of a database.

    Parameters
    ----------
    mod
        Its module, as this TVM reads it.
    """

    def __init__(self, mod: Any) -> None:
        self.mod = mod

    def __repr__(self) -> str:
        return f"Workload({self.workload_id})"

    @cached_property
    def workload_id(self) -> str:
        """Its content hash."""
        return workload_id(self.mod)

    @cached_property
    def row(self) -> dict[str, Any]:
        """Its row of :data:`costlib.schema.WORKLOADS`; raise if it has none."""
        script = self.mod.script(show_meta=False)
        try:
            arguments, flops = argument_shapes(self.mod), estimate_flops(self.mod)
        except (RuntimeError, ValueError, TypeError):
            raise SkippedRecordError("its workload has sizes that vary") from None
        return {
            "workload_id": self.workload_id,
            "name": _name(script),
            "arguments": [{"dtype": dtype, "shape": list(shape)} for dtype, shape in arguments],
            "flops": flops,
            "mod_json": module_to_json(self.mod),
            "mod_script": script,
        }

    def task(self, target: dict[str, Any]) -> Task:
        """Return the workload as a task for a target."""
        return Task(self.row["name"], self.mod, target)


class WorkloadFile:
    """The workloads of one database, in its order; each is read when a record needs it."""

    def __init__(self, file: Path) -> None:
        self._entries = [entry for entry in read_entries(file) if not _is_record(entry)]
        self._read: dict[int, Workload | SkippedRecordError] = {}

    def workload(self, index: int) -> Workload:
        """Return a workload by the index that records use.

        Raises
        ------
        SkippedRecordError
            There is none, or it cannot be read.
        """
        if not 0 <= index < len(self._entries):
            raise SkippedRecordError("its workload is not in the workload file")
        if index not in self._read:
            try:
                self._read[index] = Workload(_module(self._entries[index]))
            except SkippedRecordError as error:
                self._read[index] = error
        found = self._read[index]
        if isinstance(found, SkippedRecordError):
            raise found
        return found


def workloads_beside(records: Path) -> WorkloadFile:
    """Find the workloads of a file of records: in itself, or in the file beside it.

    Raises
    ------
    SkippedRecordError
        There are none, or it cannot be told which of several are meant.
    """
    named = records.with_name(records.name.replace("tuning_record", "workload"))
    files = [file for file in sorted(records.parent.iterdir()) if file.is_file()]
    found = [file for file in files if is_workload(next(read_entries(file), None))]
    for chosen in (records, named):
        if chosen in found:
            return WorkloadFile(chosen)
    if not found:
        raise SkippedRecordError(NO_WORKLOADS)
    if len(found) > 1:
        raise SkippedRecordError("several workload files beside it, none has its name")
    return WorkloadFile(found[0])


def _is_record(entry: Any) -> bool:
    return isinstance(entry, list) and not is_workload(entry)


def _module(entry: Any) -> Any:
    if not is_workload(entry):
        raise SkippedRecordError("its workload is damaged")
    try:
        text = base64.b64decode(entry[1], validate=True)[_LENGTH_BYTES:].decode()
        graph = Graph(text)
    except (binascii.Error, ValueError, TypeError, RecursionError):
        raise SkippedRecordError("its workload is damaged") from None
    try:
        mod = _read(graph, text)
        mod["main"]
    except _UNREADABLE:
        raise SkippedRecordError("its workload cannot be translated") from None
    return mod


def _read(graph: Graph, text: str) -> Any:
    """Read a module of this TVM as it is, one of another by way of its script."""
    if graph.is_current:
        return module_from_json(text)
    return tvm.script.from_source(to_script(graph))


def _name(script: str) -> str:
    """Name a workload after its blocks, much as the tasks of networks are."""
    names = [name for name in re.findall(r'T\.sblock\("(\w+)"\)', script) if name != "root"]
    return "_".join(["fused"] * (len(names) > 1) + names)
