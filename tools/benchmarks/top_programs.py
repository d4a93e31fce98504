"""The best programs of a dataset's tasks, built once and looked at as often as wanted.

What was done is kept in a folder, task by task, so a bench that was killed goes on::

    <work>/built/<workload id>.json         which programs were built, and what they take
    <work>/built/<program id>.so
    <work>/look-<number>/<workload id>.json  what they took in that look
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

import numpy as np
import polars as pl

from costlib.data.dataset import Dataset
from costlib.data.task_tables import stored_tasks
from costlib.features.programs import programs_by_task
from costlib.files import write_file
from costlib.frozen import FrozenStrict
from costlib.hardware import Hardware
from costlib.measure.config import Arguments, RunJob
from costlib.measure.measurer import Measurer
from costlib.schema import CacheState
from costlib.space.design_space import DesignSpace
from costlib.space.program import Program
from costlib.tvm_compat.api import entry_argument_shapes


class TopPrograms(FrozenStrict):
    """The best programs of a task by their labels, the best first.

    Attributes
    ----------
    labels
        The latency in seconds of each that the dataset has, by the programs' ids.
    """

    workload_id: str
    labels: dict[str, float]


class Built(FrozenStrict):
    """What each program takes that could be built, and why the others could not, by their ids."""

    arguments: dict[str, Arguments]
    failed: dict[str, str]


class Look(FrozenStrict):
    """What programs took, in seconds, by their ids; ``None`` if they did not run."""

    at: datetime
    latency_s: dict[str, float | None]


Kept = TypeVar("Kept", Built, Look)


def top_programs(dataset: Dataset, hardware_id: str, count: int) -> list[TopPrograms]:
    """Return the best programs of each task, by the ids of the workloads."""
    label = pl.col("latency_s").median()
    return [
        TopPrograms(
            workload_id=workload_id,
            labels=dict(
                programs.sort("latency_s", "program_id")
                .head(count)
                .select("program_id", "latency_s")
                .iter_rows()
            ),
        )
        for workload_id, programs in programs_by_task(
            dataset, hardware_id, label, cache=CacheState.WARM
        )
    ]


class Workbench:
    """Builds top programs and looks at them.

    Parameters
    ----------
    work
        The folder.
    dataset, hardware
        Where the programs are, and what they are built for.
    """

    def __init__(self, work: Path, dataset: Dataset, hardware: Hardware) -> None:
        self._work, self._dataset, self._hardware = work, dataset, hardware

    def built(self, top: TopPrograms) -> Built | None:
        """Return what was built of a task; ``None`` if that is not done."""
        found = self._read(Built, self._folder / f"{top.workload_id}.json")
        if found is None or {*found.arguments, *found.failed} != top.labels.keys():
            return None
        return found

    def looked(self, top: TopPrograms, number: int) -> Look | None:
        """Return what a look at a task found; ``None`` if it is not done."""
        found, built = self._read(Look, self._look(top, number)), self.built(top)
        if found is None or built is None or found.latency_s.keys() != built.arguments.keys():
            return None
        return found

    def build(self, top: TopPrograms, measurer: Measurer) -> None:
        """Build the programs of a task."""
        (task,) = stored_tasks(self._dataset, [top.workload_id], self._hardware)
        programs = self._programs(top)
        lowered = dict(
            zip(programs, DesignSpace(task).lower_all(list(programs.values())), strict=True)
        )
        self._folder.mkdir(parents=True, exist_ok=True)
        schedules = {name: one for name, one in lowered.items() if one is not None}
        unfinished = {name: self._folder / f"unfinished-{name}.so" for name in schedules}
        jobs = [measurer.build_job(one.mod, unfinished[name]) for name, one in schedules.items()]
        failed = dict.fromkeys(lowered.keys() - schedules.keys(), "it cannot be replayed")
        for name, outcome in zip(schedules, measurer.server.work(jobs), strict=True):
            if outcome.error is None:
                unfinished[name].replace(self._library(name))
            else:
                failed[name] = outcome.error
        arguments = {
            name: entry_argument_shapes(one.mod)
            for name, one in schedules.items()
            if name not in failed
        }
        self._write(
            self._folder / f"{top.workload_id}.json", Built(arguments=arguments, failed=failed)
        )

    def look(self, top: TopPrograms, number: int, measurer: Measurer) -> None:
        """Run the programs of a task that were built, once each, in an order of this look's own.

        None is raced: each gets all of its repeats.
        """
        built = self.built(top)
        assert built is not None, "build it first"
        order = np.random.default_rng(number).permutation(sorted(built.arguments)).tolist()
        jobs = [
            RunJob(
                path=str(self._library(name)),
                arguments=built.arguments[name],
                config=measurer.config,
            )
            for name in order
        ]
        timings = [outcome.timing for outcome in measurer.server.work(jobs)]
        latency_s = {
            name: None if timing is None else timing.latency_s(measurer.reference)
            for name, timing in zip(order, timings, strict=True)
        }
        self._write(self._look(top, number), Look(at=datetime.now(UTC), latency_s=latency_s))

    def _programs(self, top: TopPrograms) -> Mapping[str, Program]:
        rows = self._dataset.scan().filter(pl.col("program_id").is_in(list(top.labels)))
        columns = ("program_id", "workload_id", "sketch_id", "decisions")
        found = rows.select(columns).unique("program_id").sort("program_id").collect()
        return {row[0]: Program.from_row(*row[1:]) for row in found.iter_rows()}

    @property
    def _folder(self) -> Path:
        return self._work / "built"

    def _library(self, program_id: str) -> Path:
        return self._folder / f"{program_id}.so"

    def _look(self, top: TopPrograms, number: int) -> Path:
        return self._work / f"look-{number}" / f"{top.workload_id}.json"

    @staticmethod
    def _write(file: Path, content: Built | Look) -> None:
        write_file(file, content.model_dump_json().encode())

    @staticmethod
    def _read(kind: type[Kept], file: Path) -> Kept | None:
        return kind.model_validate_json(file.read_bytes()) if file.exists() else None
