"""How training goes, for whoever listens: losses and ranking quality, step by step."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Listener = Callable[[str, int, float], None]
"""Takes what is told (``"mlp/loss"``), the step, from 1, and the value."""

_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Hear of every training of this process for a while."""
    before = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(before)


def anybody_listens() -> bool:
    """Whether it is worth finding out what only listeners want to know."""
    return _listener.get() is not None


def tell(name: str, step: int, value: float) -> None:
    """Tell the listener, if there is one."""
    listener = _listener.get()
    if listener is not None:
        listener(name, step, value)
