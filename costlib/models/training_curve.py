"""How training goes, for whoever listens: losses and ranking quality, step by step."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np

Listener = Callable[[str, int, float], None]
"""Takes what is told (``"mlp/loss"``), the step, from 1, and the value."""

Follower = Callable[[str, int, int], None]
"""Takes what is at work (``"growing trees (gbdt)"``), the steps done, and all of them."""

_POINTS = 64
"""Points of a curve that is kept."""

_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)
_follower: ContextVar[Follower | None] = ContextVar("follower", default=None)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Hear of every training of this process for a while."""
    before = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(before)


@contextmanager
def recording() -> Iterator[dict[str, list[tuple[int, float]]]]:
    """Keep what is told for a while, and pass it on; (step, value) of each name.

    Long curves come down to means of as many steps each, when the while is over.
    """
    curves: dict[str, list[tuple[int, float]]] = {}
    before = _listener.get()

    def keep(name: str, step: int, value: float) -> None:
        curves.setdefault(name, []).append((step, value))
        if before is not None:
            before(name, step, value)

    with listening(keep):
        yield curves
    for name, points in curves.items():
        parts = np.array_split(np.array(points), min(len(points), _POINTS))
        curves[name] = [(int(part[-1, 0]), float(part[:, 1].mean())) for part in parts]


def tell(name: str, step: int, value: float) -> None:
    """Tell the listener, if there is one."""
    listener = _listener.get()
    if listener is not None:
        listener(name, step, value)


@contextmanager
def following(follower: Follower) -> Iterator[None]:
    """Hear how far every training of this process is, for a while."""
    before = _follower.set(follower)
    try:
        yield
    finally:
        _follower.reset(before)


def tell_progress(what: str, done: int, total: int) -> None:
    """Tell the follower, if there is one."""
    follower = _follower.get()
    if follower is not None:
        follower(what, done, total)
