"""Files that are there completely or not at all.

Everything is first written to a scratch file, flushed to disk, and then renamed into place.
Readers need no lock: a file that they see is finished and never changes. A writer holds a lock on
its scratch file; the kernel drops it when the process dies, however it dies, and so a leftover can
be told from a file still being written.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from costlib.errors import StorageError

_SCRATCH_PREFIX = ".tmp-"
_MENDS = {
    errno.ENOSPC: "free some space or choose another folder",
    errno.EDQUOT: "free some of your quota or choose another folder",
    errno.EACCES: "change its permissions or choose another folder",
    errno.EPERM: "change its permissions or choose another folder",
    errno.EROFS: "choose a folder that can be written",
}


def write_json(path: Path, value: Any, scratch: Path | None = None) -> None:
    """Write ``value`` as indented JSON; see :func:`write_file`."""
    write_file(path, (json.dumps(value, indent=2, sort_keys=True) + "\n").encode(), scratch)


def write_file(path: Path, data: Any, scratch: Path | None = None) -> None:
    """Write or replace a file in one step.

    Parameters
    ----------
    path
        The file; its folder is made if missing.
    data
        Its content, ``bytes`` or another buffer.
    scratch
        Folder on the same file system for the unfinished file; that of ``path`` by default.

    Raises
    ------
    StorageError
        It could not be written: no space, no permission. What was there before still is.
    """
    with storage_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        scratch = scratch or path.parent
        scratch.mkdir(parents=True, exist_ok=True)
        unfinished, file = _open_scratch(scratch)
        try:
            # Closing may also find the disk full, so the file is removed only after that.
            with file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
                unfinished.replace(path)
        except BaseException:
            unfinished.unlink(missing_ok=True)
            raise
        sync_folder(path.parent)


def remove_stale(scratch: Path) -> None:
    """Remove what writers that have died left in a scratch folder."""
    for unfinished in scratch.glob(f"{_SCRATCH_PREFIX}*"):
        with suppress(OSError), unfinished.open("rb+") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            unfinished.unlink()


@contextmanager
def locked(folder: Path, *, shared: bool = False) -> Iterator[None]:
    """Keep other processes that do the same out of ``folder`` (made if missing).

    Any number of processes may share the lock at once, none beside one that does not share.
    Without effect on file systems that cannot lock a folder, such as NFS.
    """
    with storage_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


@contextmanager
def storage_errors(path: Path) -> Iterator[None]:
    """Turn an ``OSError`` of the body into a :class:`StorageError` about ``path``."""
    try:
        yield
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        mend = _MENDS.get(error.errno or 0, "check that folder")
        raise StorageError(f"cannot write {path}: {reason}; {mend}, then run it again") from error


def first_line(error: Exception) -> str:
    """Return what to quote of another library's error."""
    return str(error).strip().split("\n")[0].rstrip(".")


def _open_scratch(folder: Path) -> tuple[Path, IO[bytes]]:
    """Return a new file that is locked as long as it is open."""
    while True:
        path = folder / f"{_SCRATCH_PREFIX}{os.getpid()}-{secrets.token_hex(8)}"
        file = path.open("xb")
        with suppress(OSError):  # A file system without locks; there, nothing is ever stale.
            fcntl.flock(file, fcntl.LOCK_EX)
        if os.fstat(file.fileno()).st_nlink:
            return path, file
        file.close()  # Removed as stale between being made and being locked.


def sync_folder(folder: Path) -> None:
    """Flush to disk which files are in ``folder``."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # Some network file systems sync no folders; the file is there.
            os.fsync(descriptor)
    finally:
        os.close(descriptor)
