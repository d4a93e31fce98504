"""Ctrl-C as a wish: the first one is noted, the second one interrupts."""

from __future__ import annotations

import signal
import threading
from contextlib import AbstractContextManager
from types import FrameType
from typing import Any


class Interruptible(AbstractContextManager["Interruptible"]):
    """Notes the first Ctrl-C instead of raising ``KeyboardInterrupt``, in the main thread."""

    def __init__(self) -> None:
        self._asked = False
        self._before: Any = None

    def __enter__(self) -> Interruptible:
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    def asked(self) -> bool:
        """Whether Ctrl-C was pressed."""
        return self._asked

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self._asked:
            raise KeyboardInterrupt
        self._asked = True
