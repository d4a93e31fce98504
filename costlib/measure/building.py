"""A batch of programs between being asked for and being measured."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, wait
from contextlib import AbstractContextManager
from typing import Generic, TypeVar

from costlib.measure.measurement import Measurement

Built = TypeVar("Built")


class Building(AbstractContextManager["Building[Built]"], Generic[Built]):
    """Programs that are built while the caller goes on with something else.

    Use as a context manager, which does not end before they are built.

    Parameters
    ----------
    thread
        Where they are built; nothing else is going on there.
    build
        Builds them.
    run
        Takes what ``build`` returned and the best latency known, and runs each program alone.

    Attributes
    ----------
    built_at
        ``time.perf_counter()`` when the last one was built; known after :meth:`run`.
    """

    def __init__(
        self,
        thread: Executor,
        build: Callable[[], Built],
        run: Callable[[Built, float | None], Sequence[Measurement]],
    ) -> None:
        self.built_at = time.perf_counter()
        self._built = thread.submit(self._timed, build)
        self._run = run

    def __exit__(self, *_: object) -> None:
        wait([self._built])

    def run(self, best_s: float | None = None) -> list[Measurement]:
        """Wait until all are built, then run each one alone.

        Parameters
        ----------
        best_s
            The best latency known for the task, in seconds: slower programs are not repeated.

        Returns
        -------
        list of Measurement
            One for each candidate, in order.
        """
        return list(self._run(self._built.result(), best_s))

    def _timed(self, build: Callable[[], Built]) -> Built:
        built = build()
        self.built_at = time.perf_counter()
        return built
