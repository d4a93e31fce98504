"""The workloads of MetaSchedule databases, whatever version of TVM wrote them."""

from __future__ import annotations

import base64
import binascii
import re
from functools import cached_property
from pathlib import Path
from typing import Any

from costlib.data.task_tables import workload_row
from costlib.logs.importers.files import is_workload, read_entries
from costlib.logs.importers.graph import Graph
from costlib.logs.importers.record import SkippedRecordError
from costlib.logs.importers.script import to_script
from costlib.tvm_compat import tvm
from costlib.tvm_compat.api import module_from_json
from costlib.workloads.task import Task, workload_id

_LENGTH_BYTES = 8
"""A module's text follows its length."""

_UNREADABLE = (RuntimeError, ValueError, TypeError, LookupError, AttributeError, SyntaxError)


class Workload:
    """One workload of a database: a module, as this TVM reads it."""

    def __init__(self, mod: Any) -> None:
        self.mod = mod

    @cached_property
    def workload_id(self) -> str:
        """Its content hash."""
        return workload_id(self.mod)

    @cached_property
    def row(self) -> dict[str, Any]:
        """Its row of :data:`costlib.schema.WORKLOADS`; raise if it has none."""
        try:
            return workload_row(Task(_name(self.mod.script(show_meta=False)), self.mod, {}))
        except (RuntimeError, ValueError, TypeError):
            raise SkippedRecordError("its workload has sizes that vary") from None

    def task(self, target: dict[str, Any]) -> Task:
        """Return the workload as a task for a target."""
        return Task(self.row["name"], self.mod, target)


class WorkloadFile:
    """The workloads of a file of records: in itself, in the file beside it, or in a given one.

    Each is read when a record needs it.
    """

    def __init__(self, records: Path, given: Path | None = None) -> None:
        self._records = records
        self._given = given
        self._read: dict[int, Workload | SkippedRecordError] = {}

    def workload(self, index: int) -> Workload:
        """Return a workload by the index that records use.

        Raises
        ------
        SkippedRecordError
            It is not there, or cannot be read, or nobody can tell which file is meant.
        """
        if index not in self._read:
            try:
                if not 0 <= index < len(self._entries):
                    raise SkippedRecordError("its workload is not in the workload file")
                self._read[index] = Workload(_module(self._entries[index]))
            except SkippedRecordError as error:
                self._read[index] = error
        found = self._read[index]
        if isinstance(found, SkippedRecordError):
            raise found
        return found

    @cached_property
    def _entries(self) -> list[Any]:
        entries = read_entries(self._given or self._found())
        return [entry for entry in entries if is_workload(entry) or not isinstance(entry, list)]

    def _found(self) -> Path:
        """Return the file that holds them, if one stands out."""
        name = _plain_name(self._records).replace("tuning_record", "workload")
        files = [file for file in sorted(self._records.parent.iterdir()) if file.is_file()]
        found = [file for file in files if holds_workloads(file)]
        named = [file for file in found if _plain_name(file) == name]
        chosen = [self._records] if self._records in found else named or found
        if not chosen:
            raise SkippedRecordError("no workload file beside it (--workloads gives one)")
        if len(chosen) > 1:
            which = "several have" if named else "none has"
            raise SkippedRecordError(
                f"several workload files beside it, {which} its name (--workloads gives one)"
            )
        return chosen[0]


def holds_workloads(file: Path) -> bool:
    """Whether a file begins with a workload of a MetaSchedule database."""
    return is_workload(next(read_entries(file), None))


def _plain_name(file: Path) -> str:
    """Return a file's name in lower case, without the suffix of its compression."""
    return re.sub(r"\.(gz|bz2|xz)$", "", file.name.lower())


def _module(entry: Any) -> Any:
    if not is_workload(entry):
        raise SkippedRecordError("its workload is damaged")
    try:
        text = base64.b64decode(entry[1], validate=True)[_LENGTH_BYTES:].decode()
        graph = Graph(text)
    except (binascii.Error, ValueError, TypeError, RecursionError):
        raise SkippedRecordError("its workload is damaged") from None
    try:
        is_ours = graph.is_current
        mod = module_from_json(text) if is_ours else tvm.script.from_source(to_script(graph))
        mod["main"]
    except _UNREADABLE:
        raise SkippedRecordError("its workload cannot be translated") from None
    return mod


def _name(script: str) -> str:
    """Name a workload after its blocks, much as the tasks of networks are."""
    names = [name for name in re.findall(r'T\.sblock\("(\w+)"\)', script) if name != "root"]
    return "_".join(["fused"] * (len(names) > 1) + names)
