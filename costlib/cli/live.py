"""The live display of a tuning run, on stderr."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING

from rich.console import Group
from rich.live import Live
from rich.table import Table

from costlib.cli.output import milliseconds
from costlib.cli.progress import Lines, progress_on, side_console

if TYPE_CHECKING:
    from costlib.tuning.progress import TuneProgress

_ROWS = 16


@contextmanager
def live_tuning() -> Iterator[Callable[[TuneProgress], None]]:
    """Show the stage, the trials done and each task's best latency while a run goes on.

    Yields what takes up the run's state. On a pipe, each new stage is printed as a line, and how
    far the run is now and then.
    """
    console = side_console()
    lines = Lines(console, "starting")
    bar = progress_on(console)
    line = bar.add_task("starting", total=None)
    live = Live(bar, console=console, refresh_per_second=4)
    stage = ""

    def show(progress: TuneProgress) -> None:
        nonlocal stage
        done, total = progress.trials, progress.total
        bar.update(line, description=progress.stage, completed=done, total=total)
        live.update(Group(bar, _table(progress)))
        if not console.is_terminal:
            if progress.stage != stage:
                console.print(f"[{progress.elapsed_s:6.1f} s] {progress.stage}", markup=False)
            lines.update(description=progress.stage, completed=done, total=total)
        stage = progress.stage

    with live if console.is_terminal else nullcontext():
        yield show


def _table(progress: TuneProgress) -> Table:
    table = Table(box=None)
    table.add_column("task", overflow="fold")
    for title in ("weight", "trials", "best"):
        table.add_column(title, justify="right", no_wrap=True)
    if progress.best_s:
        columns = zip(progress.tasks, progress.task_trials, progress.best_s, strict=True)
        for task, trials, best_s in list(columns)[:_ROWS]:
            table.add_row(task.title, str(task.weight), str(trials), milliseconds(best_s))
    return table
