"""Let a child process go first where TVM reads what anyone may have written.

TVM's readers believe their input: a damaged graph may end the process instead of raising.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import resource
import signal
from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")

_MOST_SECS = 60


def survives(read: Callable[[], object]) -> bool:
    """Return whether this process would live on after ``read``, which may raise."""

    def test(_: None) -> bool:
        with contextlib.suppress(Exception):
            read()
        return True

    return checked(test, [None])[0]


def checked(test: Callable[[T], bool], items: Sequence[T]) -> list[bool]:
    """Test items in forks of this process; what raises, crashes or takes a minute has failed.

    ``test`` must not use locks that other threads of this process may hold.
    """
    results: list[bool] = []
    while len(results) < len(items):
        results += _until_a_crash(test, items[len(results) :])
    return results


def _until_a_crash(test: Callable[[T], bool], items: Sequence[T]) -> list[bool]:
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            faulthandler.disable()
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # TVM prints where it crashed.
            for item in items:
                signal.setitimer(signal.ITIMER_REAL, _MOST_SECS)
                passed = False
                with contextlib.suppress(Exception):
                    passed = test(item)
                os.write(writer, b"1" if passed else b"0")
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        results = [byte == ord("1") for byte in pipe.read()]
    os.waitpid(child, 0)
    return results if len(results) == len(items) else [*results, False]
