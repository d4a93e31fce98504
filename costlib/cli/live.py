"""The live display of a tuning run, on stderr."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from rich.console import Group
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from costlib.cli.output import milliseconds, side_console

if TYPE_CHECKING:
    from costlib.tuning.progress import TuneProgress

_ROWS = 16


class LiveTuning:
    """Shows the stage, the trials done and each task's best latency while a run goes on."""

    def __init__(self) -> None:
        self._console = side_console()
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=self._console,
        )
        self._line = self._bar.add_task("starting", total=None)
        self._live = Live(self._bar, console=self._console, refresh_per_second=4)
        self._stage = ""

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def show(self, progress: TuneProgress) -> None:
        """Take up the run's state; on a pipe, print each new stage as a line."""
        self._bar.update(
            self._line,
            description=progress.stage,
            completed=progress.trials,
            total=progress.total,
        )
        self._live.update(Group(self._bar, _table(progress)))
        if not self._console.is_terminal and progress.stage != self._stage:
            self._console.print(f"[{progress.elapsed_s:6.1f} s] {progress.stage}", markup=False)
        self._stage = progress.stage


def _table(progress: TuneProgress) -> Table:
    table = Table(box=None)
    for title in ("task", "weight", "trials", "best"):
        table.add_column(title, justify="left" if title == "task" else "right")
    if progress.best_s:
        columns = zip(progress.tasks, progress.task_trials, progress.best_s, strict=True)
        for task, trials, best_s in list(columns)[:_ROWS]:
            table.add_row(task.name, str(task.weight), str(trials), milliseconds(best_s))
    return table
