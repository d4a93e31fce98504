"""What a machine is measured with to teach models about it: tasks nobody has, chunk by chunk.

Many tasks with few programs each teach most. The tasks are operators as networks have them, with
extents that no bundle and no held-out network knows. Of each chunk the first task is kept apart:
what its programs are does not depend on what was learnt, so it judges all models alike.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from costlib.collecting.collect import CollectProgress, collect
from costlib.collecting.held_out import held_out_likeness
from costlib.collecting.ledger import Ledger
from costlib.collecting.plan import Mix
from costlib.data.dataset import Dataset
from costlib.data.splits import WorkloadKey, workload_keys
from costlib.data.task_tables import register_workloads, stored_tasks
from costlib.errors import InputError
from costlib.generator.invented import invented_tasks
from costlib.hardware import Hardware
from costlib.hub.bundle import Bundle
from costlib.identity import content_id
from costlib.measure.config import MeasureConfig
from costlib.space.design_space import DesignSpace
from costlib.workloads.task import Task

if TYPE_CHECKING:
    from costlib.measure.fleet import Fleet

TASKS = 4
"""Of a chunk, the one kept apart among them."""

PROGRAMS = 16
"""Of each task."""

_TEACHING = Mix(evolved=0.5, mutated=0, uncertain=0.25)
"""What may win, what the models are uncertain of, and what neither would have chosen."""

_JUDGING = Mix(evolved=0.5, mutated=0)

_MOST_FLOPS = 5e8
"""Larger tasks take too long for what they teach."""

_MOST_DRAWN = 100
"""Tasks that are drawn for a chunk before it is given up."""


class Lessons:
    """Measures chunks of tasks into a dataset.

    Parameters
    ----------
    data
        The dataset's folder; made if missing.
    ledger
        Knows which tasks there are.
    start
        The bundle that the adaptation starts from, which chooses programs of tasks kept apart.
    hardware
        What to measure.
    seed
        Decides which tasks and programs.
    config, fleet
        As in :func:`costlib.collecting.collect.collect`.
    """

    def __init__(
        self,
        data: Path,
        ledger: Ledger,
        start: Bundle,
        hardware: Hardware,
        seed: int,
        config: MeasureConfig | None = None,
        fleet: Fleet | None = None,
    ) -> None:
        self.dataset = Dataset.create(data)
        self._ledger = ledger
        self._start = start
        self._hardware = hardware
        self._seed = seed
        self._config = config
        self._fleet = fleet

    def go_on(
        self, bundle: Bundle, until_s: float, on_progress: Callable[[CollectProgress], None]
    ) -> None:
        """Measure the chunk at work, or a new one, until so many seconds are spent in all.

        ``bundle`` chooses the programs to learn from.
        """
        tasks = self._tasks_at_work()
        for some, mix, chosen_by in (
            (tasks[:1], _JUDGING, self._start),
            (tasks[1:], _TEACHING, bundle),
        ):
            left_s = until_s - self._ledger.spent_s
            if some and left_s > 0:
                collect(
                    some,
                    self.dataset.path,
                    programs_per_task=PROGRAMS,
                    hardware=self._hardware,
                    seed=self._seed,
                    mix=mix,
                    bundle=chosen_by,
                    minutes=left_s / 60,
                    config=self._config,
                    fleet=self._fleet,
                    on_progress=on_progress,
                )
        is_finished = self._ledger.spent_s < until_s
        self._ledger.note(finished=self._ledger.state.finished + is_finished)

    def _tasks_at_work(self) -> list[Task]:
        state = self._ledger.state
        if state.finished < len(state.chunks):
            ids = state.chunks[state.finished]
            found = stored_tasks(self.dataset, ids, self._hardware)
            by_id = {task.workload_id: task for task in found}
            return [by_id[one] for one in ids if one in by_id]
        tasks = self._drawn(state.finished)
        ids = tuple(task.workload_id for task in tasks)
        register_workloads(self.dataset, tasks, ids)
        self._ledger.note(chunks=(*state.chunks, ids))
        return tasks

    def _drawn(self, chunk: int) -> list[Task]:
        known = {key.likeness for key in workload_keys(self.dataset.scan("workloads"))}
        known |= held_out_likeness() | set(self._start.manifest.trained_on.trained)
        tasks: list[Task] = []
        seed = int(content_id("lessons", self._seed, chunk)[:8], 16)
        for task in invented_tasks(_MOST_DRAWN, self._hardware, (), seed):
            shapes = [shape for _, shape in task.arguments]
            likeness = WorkloadKey.of(task.workload_id, task.name, shapes).likeness
            if not known.isdisjoint({likeness, task.workload_id}) or task.flops > _MOST_FLOPS:
                continue
            if not DesignSpace(task).is_tunable:
                continue
            known.add(likeness)
            tasks.append(task)
            if len(tasks) == TASKS:
                return tasks
        raise InputError(
            f"no tasks can be made for {self._hardware.hardware_id}; costlib adapts to what this "
            "TVM compiles for"
        )
