"""What must hold after a fault, and after the same command once more without one."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

import polars as pl

from costlib.data.dataset import Dataset
from costlib.data.manifest import MANIFEST
from costlib.data.verify import verify
from costlib.errors import CostlibError
from costlib.hardware import Hardware
from costlib.schema import Origin, Status
from costlib.scratch import ScratchFolder
from costlib.space.program import Program
from costlib.testing.simulated import analytic
from costlib.workloads import Task, extract_tasks
from tools.evidence.soak.children import Child
from tools.evidence.soak.faults import Fault
from tools.evidence.soak.rounds import Plan

_ROW = ["program_id", "workload_id", "sketch_id", "decisions", "origin", "status", "latency_s"]
_MORE_MIB = 24
"""What a process may hold more at the end than half-way: allocators keep some of what is freed."""


@dataclass(frozen=True)
class Rows:
    """The rows of a dataset at some moment."""

    frame: pl.DataFrame

    @classmethod
    def at(cls, path: Path) -> Rows:
        """Read them; none if there is no dataset yet."""
        if not (path / MANIFEST).exists():
            return cls(pl.DataFrame(schema=[*_ROW, "measured_at", "error"]))
        found = Dataset.open(path).scan().select([*_ROW, "measured_at", "error"]).collect()
        return cls(found)

    def __len__(self) -> int:
        return len(self.frame)

    def lost(self, later: Rows) -> Iterator[str]:
        """Name those that are not there later, or changed."""
        missing = set(self.frame.rows()) - set(later.frame.rows())
        if missing:
            yield f"{len(missing)} of {len(self)} rows lost, such as {min(missing, key=str)[0]}"


def exit_problems(fault: Fault, code: int | None, child: Child) -> Iterator[str]:
    """Check how a command ended: the code, and one line if it did not do what it should."""
    last = child.err.strip().splitlines()[-1:] or [""]
    if code is None:
        yield "hangs"
    elif code not in fault.codes:
        yield f"exit code {code}, not one of {sorted(fault.codes)}: {last[0]}"
    elif fault.name == "kill" and code == 1 and "did not start" not in last[0]:
        yield f"a measuring process that dies once is not started again: {last[0]}"
    elif code > 0 and not last[0].startswith("costlib: "):
        yield f"exit code {code} without a line that says why: {last[0]}"
    if "Traceback (most recent" in child.err:
        yield f"a traceback that ends in: {last[0]}"
    if code == 0 and len(child.out.strip().splitlines()) == 0:
        yield "says nothing about what it did"


def dataset_problems(path: Path) -> Iterator[str]:
    """Let ``verify`` look; that the machine was slower at times is no fault of the dataset."""
    if not (path / MANIFEST).exists():
        return
    try:
        found = verify(Dataset.open(path))
    except CostlibError as error:
        yield f"verify: {error}"
        return
    yield from (f"verify: {p.file} {p.what}" for p in found if "canar" not in p.what)


def count_problems(plan: Plan, rows: Rows) -> Iterator[str]:
    """Check that a finished command measured as many programs as it was asked for."""
    trials = rows.frame.filter(pl.col("origin") != str(Origin.CHECKED))
    counts = [len(trials)] if plan.kind.tunes else trials["workload_id"].value_counts()["count"]
    if list(counts) != [plan.series.programs] * (
        1 if plan.kind.tunes else len(plan.series.sources)
    ):
        yield f"{list(counts)} programs measured, not {plan.series.programs}"


def false_rows(plan: Plan, rows: Rows) -> Iterator[str]:
    """Find rows that say what is not so."""
    failed = rows.frame.filter(pl.col("status") != str(Status.OK))
    if not plan.kind.is_real:
        if len(failed):
            yield f"{len(failed)} good programs failed: {failed['error'][0]}"
        tasks = _tasks(tuple(plan.series.sources))
        for name, workload, sketch, decisions, *_, latency_s, _, _ in rows.frame.rows():
            program = Program.from_row(workload, sketch, decisions)
            if latency_s is not None and latency_s != analytic(tasks[workload], program):
                yield f"{name} is said to take {latency_s} s"
    elif len(failed):
        yield from _failed_for_no_reason(plan, failed)


def _failed_for_no_reason(plan: Plan, failed: pl.DataFrame) -> Iterator[str]:
    """Measure in a copy what failed, when nothing disturbs it."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(shutil.copytree(plan.kind.dataset(plan.out), Path(folder, "copy")))
        command = [sys.executable, "-m", "costlib", "collect", *plan.series.sources]
        command += ["--programs", "1", "--retry-failed", "--out", str(copy)]
        subprocess.run(command, check=True, capture_output=True)
        good = Rows.at(copy).frame.filter(pl.col("status") == str(Status.OK))
    for name, status, error in failed.select("program_id", "status", "error").rows():
        if name in good["program_id"]:
            yield f"{name} has {status} ({error}), but works"


def leftovers(plan: Plan, temporary: Path) -> Iterator[str]:
    """Find files that nobody needs and nobody will remove."""
    with mock.patch.object(tempfile, "tempdir", str(temporary)):
        ScratchFolder().close()  # It removes those of the dead.
    left = [*temporary.iterdir(), *plan.out.rglob(".tmp-*")]
    if left:
        yield f"{len(left)} files left over, such as {sorted(left)[0].name}"
        shutil.rmtree(temporary)


def growth(held: dict[str, list[int]]) -> Iterator[str]:
    """Compare what one process holds at the end with what it held half-way."""
    for what, series in held.items():
        allowed = _MORE_MIB if what == "resident_mib" else 0
        if series[-1] > series[len(series) // 2] + allowed:
            yield f"{what} grows: {series}"


def held_by(child: Child) -> dict[str, list[int]]:
    """Return what a process that repeats itself held after each time."""
    found: Any = json.loads(child.out)
    return {str(key): list(values) for key, values in found.items()}


@cache
def _tasks(sources: Sequence[str]) -> dict[str, Task]:
    hardware = Hardware.local()
    tasks = [task for source in sources for task in extract_tasks(source, hardware)]
    return {task.workload_id: task for task in tasks}
