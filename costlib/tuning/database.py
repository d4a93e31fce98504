"""The best programs of a tuning run as a MetaSchedule database, for compiling and for others."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from costlib.files import storage_errors
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

    For a tiny task the program as it is may be the fastest.

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
    """
    with storage_errors(folder):
        for name in (WORKLOADS, RECORDS):
            (folder / name).unlink(missing_ok=True)
        database = ms.database.JSONDatabase(
            str(folder / WORKLOADS), str(folder / RECORDS), allow_missing=True
        )
    for task, latency_s in zip(tasks, untuned_s, strict=True):
        if latency_s is not None:
            commit_program(database, task.mod, task.tvm_target(), latency_s)
    for search in searches:
        for latency_s, program in search.elite[:_PER_TASK]:
            schedule = search.space.lower(program)
            if schedule is not None:
                target = search.task.tvm_target()
                commit_program(database, search.task.mod, target, latency_s, schedule)
    return database


def only(database: Any, tasks: Sequence[Task]) -> Any:
    """Return a database in memory with the best programs of these tasks alone."""
    chosen = ms.database.MemoryDatabase()
    for task in tasks:
        record = database.query_tuning_record(task.mod, task.tvm_target(), task.name)
        if record is not None:
            chosen.commit_workload(task.mod)
            chosen.commit_tuning_record(record)
    return chosen
