"""Temporary folders that are removed even if the process that made them was killed.

Each holds a file that its maker has a lock on. Whoever makes the next one removes those whose
lock nobody holds any more.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from contextlib import AbstractContextManager, suppress
from pathlib import Path

_PREFIX = "costlib-"
_LOCK = ".alive"


class ScratchFolder(AbstractContextManager[Path]):
    """A new temporary folder. A context manager that yields it; or call :meth:`close`.

    Attributes
    ----------
    path
        The folder.

    Raises
    ------
    OSError
        It cannot be made.
    """

    def __init__(self) -> None:
        _remove_leftovers(Path(tempfile.gettempdir()))
        while True:
            self.path = Path(tempfile.mkdtemp(prefix=_PREFIX))
            self._lock = (self.path / _LOCK).open("wb")
            with suppress(OSError):  # A file system without locks; there, no leftover is found.
                fcntl.flock(self._lock, fcntl.LOCK_EX)
            if os.fstat(self._lock.fileno()).st_nlink:
                break
            self._lock.close()  # Removed as a leftover between being made and being locked.

    def __enter__(self) -> Path:
        return self.path

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Remove the folder."""
        shutil.rmtree(self.path, ignore_errors=True)
        self._lock.close()


def _remove_leftovers(parent: Path) -> None:
    """Remove the folders of processes that have died; those of other users stay."""
    for lock in parent.glob(f"{_PREFIX}*/{_LOCK}"):
        with suppress(OSError), lock.open("rb+") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(lock.parent, ignore_errors=True)
