"""Claims: two processes that collect into one dataset do not work on the same thing at once."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from costlib.files import storage_errors
from costlib.identity import content_id

_CLAIMS = "claims"


@contextmanager
def claimed(scratch: Path, *what: str) -> Iterator[bool]:
    """Try to claim something for the body; the kernel drops the claim of a process that dies.

    Parameters
    ----------
    scratch
        The dataset's folder for what is unfinished; the claims are locks on bytes of a file in it.
    what
        Names what is claimed.

    Yields
    ------
    bool
        Whether it is ours: ``False`` if another process has claimed it.
    """
    with storage_errors(scratch):
        scratch.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(scratch / _CLAIMS, os.O_RDWR | os.O_CREAT, 0o644)
    position = int(content_id(*what)[:12], 16)
    try:
        try:
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, position)
        except BlockingIOError:
            yield False
        except OSError:  # A file system without locks.
            yield True
        else:
            yield True
    finally:
        os.close(descriptor)
