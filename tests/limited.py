"""Limits of a process that is at work, as a user's ``ulimit`` would have set them."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def limited(pid: int, kind: int, most: int) -> Iterator[None]:
    """Limit a resource of a process, and of the children it starts, for a while."""
    before = resource.prlimit(pid, kind)
    resource.prlimit(pid, kind, (most, before[1]))
    try:
        yield
    finally:
        resource.prlimit(pid, kind, before)
