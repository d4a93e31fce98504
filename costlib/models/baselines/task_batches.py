"""Training batches for ranking: some tasks, and as many programs of each."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from costlib.arrays import Integers
from costlib.models import process_group


class TaskBatches:
    """Rows of each training step, drawn anew each time; large tasks are drawn more often.

    Parameters
    ----------
    groups
        int64 `n`: the task of each program. Tasks with one program are left out.
    epochs
        There are as many steps as it takes to draw that many times the programs.
    programs, tasks
        Programs of a task, and tasks of a step. Processes that train together share the tasks.
    seed
        The same seed draws the same.
    """

    def __init__(self, groups: Integers, epochs: int, programs: int, tasks: int, seed: int) -> None:
        tasks = max(1, tasks // process_group.size())
        order = np.argsort(groups, kind="stable")
        bounds = np.flatnonzero(np.diff(groups[order])) + 1
        self._tasks = [rows for rows in np.split(order, bounds) if len(rows) > 1]
        self._shape = (tasks, programs)
        self._rng = np.random.default_rng(seed + (process_group.rank() << 32))
        total, step = process_group.summed([sum(map(len, self._tasks)), programs * tasks])
        self._steps = epochs * max(1, int(total // step))

    def __len__(self) -> int:
        """How many steps there are."""
        return self._steps

    def __iter__(self) -> Iterator[Integers]:
        """Yield int64 `tasks x programs`, the rows of a step."""
        tasks, programs = self._shape
        sizes = np.array([len(rows) for rows in self._tasks], "float64")
        for _ in range(self._steps):
            chosen = self._rng.choice(len(self._tasks), tasks, p=sizes / sizes.sum())
            yield np.stack(
                [
                    self._rng.choice(rows, programs, replace=len(rows) < programs)
                    for rows in (self._tasks[task] for task in chosen)
                ]
            )
