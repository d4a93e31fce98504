"""Ctrl-C as a wish: the first one is noted, the second one interrupts.

SIGTERM and SIGHUP are taken for it: a scheduler that wants its machine back, a terminal that was
closed.
"""

from __future__ import annotations

import contextlib
import os
import signal
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from types import FrameType
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

STOPPING = "stopping after this batch; again to abort"


class Interruptible(AbstractContextManager["Interruptible"]):
    """Notes the first Ctrl-C instead of raising ``KeyboardInterrupt``, in the main thread.

    SIGTERM and SIGHUP stay ignored where they are, as ``nohup`` has it. SIGINT does not: scripts
    start what runs in the background without it.

    Parameters
    ----------
    on_asked
        Called at once with :data:`STOPPING` when the first one arrives.
    """

    def __init__(self, on_asked: Callable[[str], None] | None = None) -> None:
        self._asked = False
        self._on_asked = on_asked
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Interruptible:
        if threading.current_thread() is threading.main_thread():
            for number in SIGNALS:
                is_ignored = signal.getsignal(number) is signal.SIG_IGN
                if number == signal.SIGINT or not is_ignored:
                    self._before[number] = signal.signal(number, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def asked(self) -> bool:
        """Whether Ctrl-C was pressed."""
        return self._asked

    def _note(self, number: int, frame: FrameType | None) -> None:
        if number == signal.SIGHUP:
            leave_terminal()
            signal.signal(signal.SIGHUP, signal.SIG_IGN)  # The kernel and the shell both send it.
        if self._asked:
            _Raised.ever = True
            raise KeyboardInterrupt
        self._asked = True
        if self._on_asked is not None:
            with contextlib.suppress(RuntimeError):  # In the middle of another line.
                self._on_asked(STOPPING)


class _Raised:
    """Whether a signal has raised ``KeyboardInterrupt``."""

    ever = False


@contextlib.contextmanager
def ended_like_ctrl_c() -> Iterator[None]:
    """Let SIGTERM and SIGHUP raise ``KeyboardInterrupt``, too, unless they are ignored.

    Where TVM calls Python, it makes an error of its own of what is raised there. An error after a
    signal is therefore taken for the signal's.
    """

    def end(number: int, frame: FrameType | None) -> None:
        if number == signal.SIGHUP:
            leave_terminal()
        _Raised.ever = True
        raise KeyboardInterrupt

    before = {}
    _Raised.ever = False
    if threading.current_thread() is threading.main_thread():
        for number in SIGNALS:
            if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
                before[number] = signal.signal(number, end)
    try:
        yield
    except Exception:
        if _Raised.ever:
            raise KeyboardInterrupt from None
        raise
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def leave_terminal() -> None:
    """Send to nowhere what would be printed on a terminal that is gone, which would fail."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (1, 2):
        with contextlib.suppress(OSError):
            if stat.S_ISCHR(os.fstat(descriptor).st_mode):
                os.dup2(nowhere, descriptor)
    os.close(nowhere)
