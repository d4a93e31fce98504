"""The best programs of a tuning run as a MetaSchedule database, for compiling and for others."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from costlib.files import storage_errors, write_file
from costlib.scratch import ScratchFolder
from costlib.search.strategy import Strategy
from costlib.tvm_compat import ms
from costlib.tvm_compat.api import commit_program
from costlib.workloads.task import Task

WORKLOADS = "database_workload.json"
RECORDS = "database_tuning_record.json"

_PER_TASK = 16


def write_database(
    folder: Path,
    tasks: Sequence[Task],
    untuned_s: Sequence[float | None],
    searches: Sequence[Strategy],
) -> Any:
    """Write the best programs of each task, the untuned one among them if it runs.

    For a tiny task the program as it is may be the fastest. On a GPU that is none that could be
    written: what has no record gets its schedule when it is compiled.

    Parameters
    ----------
    folder
        Where to; a database that is there is replaced.
    tasks, untuned_s
        All tasks, and what they take as they are.
    searches
        Those of the tasks that were tuned.

    Returns
    -------
    database
        An ``ms.database.JSONDatabase``; stock TVM opens it under the same names.

    Raises
    ------
    StorageError
        It cannot be written.
    """
    with storage_errors(folder), ScratchFolder() as scratch:
        workloads, records = scratch / WORKLOADS, scratch / RECORDS
        database = ms.database.JSONDatabase(str(workloads), str(records), allow_missing=True)
        _fill(database, tasks, untuned_s, searches)
        _check_complete(database, records)
        # Records without their workloads are nothing, so these come first and go last.
        (folder / RECORDS).unlink(missing_ok=True)
        for file in (workloads, records):
            write_file(folder / file.name, file.read_bytes() if file.exists() else b"")
    return database


def _fill(
    database: Any,
    tasks: Sequence[Task],
    untuned_s: Sequence[float | None],
    searches: Sequence[Strategy],
) -> None:
    for task, latency_s in zip(tasks, untuned_s, strict=True):
        if latency_s is not None and task.target["kind"] == "llvm":
            commit_program(database, task.mod, task.tvm_target(), latency_s)
    for search in searches:
        for latency_s, program in search.elite[:_PER_TASK]:
            schedule = search.space.lower(program)
            if schedule is not None:
                target = search.task.tvm_target()
                commit_program(database, search.task.mod, target, latency_s, schedule)


def _check_complete(database: Any, records: Path) -> None:
    """Raise ``OSError`` if a record is missing from the file: TVM overlooks a full disk."""
    written = records.read_bytes().count(b"\n") if records.exists() else 0
    if written != len(database):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def only(database: Any, tasks: Sequence[Task]) -> Any:
    """Return a database in memory with the best programs of these tasks alone."""
    chosen = ms.database.MemoryDatabase()
    for task in tasks:
        record = database.query_tuning_record(task.mod, task.tvm_target(), task.name)
        if record is not None:
            chosen.commit_workload(task.mod)
            chosen.commit_tuning_record(record)
    return chosen
