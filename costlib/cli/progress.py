"""How far long work is, on stderr: a bar on a terminal, now and then a line on a pipe."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

LINE_SECS = 30.0
"""Between two lines on a pipe."""

_BAR_WIDTH = 16


def side_console() -> Console:
    """Return stderr for what accompanies a result; nothing is shown with ``--quiet``."""
    from rich.console import Console

    quiet = not logging.getLogger("costlib").isEnabledFor(logging.WARNING)
    return Console(stderr=True, quiet=quiet)


def progress_on(console: Console, *, disable: bool = False) -> Progress:
    """Return bars that tell what is done, how much of all, the time it took and what is left.

    Where the terminal is narrow, what is done gives way.
    """
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )
    from rich.table import Column

    gives_way = Column(ratio=1, no_wrap=True, overflow="ellipsis")
    stays = Column(no_wrap=True)
    return Progress(
        TextColumn("{task.description}", table_column=gives_way),
        BarColumn(_BAR_WIDTH),
        MofNCompleteColumn(table_column=stays),
        TimeElapsedColumn(table_column=stays),
        TextColumn("left:", table_column=stays),
        TimeRemainingColumn(table_column=stays),
        console=console,
        disable=disable,
        expand=True,
    )


@contextmanager
def progress_bar(description: str) -> Iterator[Callable[..., None]]:
    """Show how far work is.

    Yields what changes it, by ``completed`` or ``advance``, ``total`` and ``description``.
    """
    console = side_console()
    if not console.is_terminal:
        yield Lines(console, description).update
        return
    with progress_on(console, disable=console.quiet) as progress:
        line = progress.add_task(description, total=None)

        def update(**changes: object) -> None:
            progress.update(line, **changes)  # type: ignore[arg-type]

        yield update


class Lines:
    """Prints how far work is, a line every half minute.

    Parameters
    ----------
    console
        Where.
    description
        What is done, until an update says so.
    clock
        Tells the seconds.
    """

    def __init__(
        self, console: Console, description: str, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._console = console
        self._description = description
        self._clock = clock
        self._began = self._told = clock()
        self._done = 0.0
        self._total: float | None = None
        self._first: tuple[float, float] | None = None

    def update(
        self,
        *,
        completed: float | None = None,
        advance: float = 0,
        total: float | None = None,
        description: str | None = None,
    ) -> None:
        """Take up how far it is, and print a line if it is time for one."""
        now = self._clock()
        if description is not None:
            self._description = description
        done = self._done + advance if completed is None else completed
        if done < self._done or total not in (None, self._total):
            self._first = None  # Another part of the work has begun.
        self._done, self._total = done, total if total is not None else self._total
        self._first = self._first or (now, done)
        if now - self._told >= LINE_SECS:
            self._told = now
            self._console.print(self._line(now), markup=False, highlight=False, soft_wrap=True)

    def _line(self, now: float) -> str:
        text = f"[{now - self._began:6.0f} s] {self._description}"
        if self._total is None:
            return text
        text += f": {self._done:,.0f} of {self._total:,.0f}"
        assert self._first is not None
        began, before = self._first
        if self._done > before:
            left_s = (self._total - self._done) * (now - began) / (self._done - before)
            text += f", about {left_s / 60:.0f} min left"
        return text
