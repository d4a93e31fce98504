"""Files and folders that are there completely or not at all.

Everything is first written to a scratch file or folder, flushed to disk, and then renamed into
place. Readers need no lock: what they see is finished and never changes. A writer holds a lock on
its scratch file; the kernel drops it when the process dies, however it dies, and so a leftover can
be told from what is still being written.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import glob
import itertools
import json
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from costlib.errors import CostlibError, StorageError

_SCRATCH_PREFIX = ".tmp-"
_NEW, _OLD, _GONE = "new", "old", "gone"
_AT_FDCWD, _RENAME_EXCHANGE = -100, 2
_NOT_EXCHANGED = {errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP}
_IN_THE_WAY = {errno.ENOTEMPTY, errno.EEXIST}
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
    """Write or replace a file in one step; a device or a pipe is written into.

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
        if path.exists() and not (path.is_file() or path.is_dir()):
            path.write_bytes(data)
            return
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
def replacing_folder(target: Path) -> Iterator[Path]:
    """Make a folder, and let it take the place of ``target`` in one step.

    The body fills an empty folder beside ``target``. When it ends, that is flushed to disk and
    changes places with ``target``, so whoever looks finds either the whole old or the whole new
    folder, however this process dies. When the body raises, ``target`` stays as it was. What
    earlier writers of ``target`` that have died left behind is removed first.

    Linux exchanges two folders in one step on its own file systems. On others, such as NFS, the
    old folder is moved aside a moment before the new one is moved in; if the process dies between
    the two, :func:`restore_folder` puts the old one back.

    Parameters
    ----------
    target
        A folder that exists or not. If it is a link, the folder it leads to is replaced.

    Yields
    ------
    Path
        The folder to fill.

    Raises
    ------
    StorageError
        It could not be written. What was there before still is.
    """
    target = Path(os.path.realpath(target))
    with storage_errors(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        restore_folder(target)
        _remove_leftovers(target)
        work, lock = _open_workspace(target)
    try:
        with storage_errors(target):
            (work / _NEW).mkdir()
        yield work / _NEW
        with storage_errors(target):
            _sync_tree(work / _NEW)
            _put_in_place(work / _NEW, target)
            sync_folder(target.parent)
    finally:
        with suppress(OSError):  # What cannot be removed now is removed the next time.
            _remove_workspace(work)
        lock.close()


def restore_folder(target: Path) -> None:
    """Put ``target`` back if a writer died while it was replacing it.

    To be called before a folder that :func:`replacing_folder` writes is read. It does no harm
    while such a writer is at work.
    """
    with suppress(OSError, ValueError):  # Such as a name that cannot be one.
        target = Path(os.path.realpath(target))
        if not target.exists():
            for old in (old for work in _workspaces(target) for old in work.glob(f"{_OLD}-*")):
                old.rename(target)


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
    except CostlibError:
        raise
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


def flush_file(path: Path) -> None:
    """Flush a file's content to disk."""
    with path.open("rb") as file:
        os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Flush to disk which files are in ``folder``."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # Some network file systems sync no folders; the file is there.
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _workspaces(target: Path) -> list[Path]:
    """Return the folders that writers of ``target`` have made beside it, dead ones included."""
    name = f"{_SCRATCH_PREFIX}{glob.escape(target.name)}-" + 16 * "?"
    return sorted(target.parent.glob(name))


def _open_workspace(target: Path) -> tuple[Path, IO[bytes]]:
    """Return a new folder beside ``target``, and a file in it that is locked while it is open."""
    while True:
        name = f"{_SCRATCH_PREFIX}{target.name}-{secrets.token_hex(8)}"
        work = target.with_name(name)
        work.mkdir()
        try:
            return work, _open_scratch(work)[1]
        except FileNotFoundError:
            continue  # Removed as a leftover between being made and being locked.
        except OSError:
            work.rmdir()
            raise


def _remove_leftovers(target: Path) -> None:
    """Remove the workspaces of writers that have died."""
    for work in _workspaces(target):
        with suppress(OSError), ExitStack() as stack:  # Not one that is still locked.
            for lock in work.glob(f"{_SCRATCH_PREFIX}*"):
                fcntl.flock(stack.enter_context(lock.open("rb+")), fcntl.LOCK_EX | fcntl.LOCK_NB)
            _remove_workspace(work)


def _remove_workspace(work: Path) -> None:
    """Remove a workspace, its lock last: one without a lock is empty.

    Folders are renamed before they are emptied, so that half of one is never put back.
    """
    for folder in (work / _GONE, work / _NEW, *work.glob(f"{_OLD}-*")):
        with suppress(FileNotFoundError):
            shutil.rmtree(folder.rename(work / _GONE))
    for lock in work.glob(f"{_SCRATCH_PREFIX}*"):
        lock.unlink()
    work.rmdir()


def _put_in_place(new: Path, target: Path) -> None:
    """Move ``new`` to ``target``; what was there is beside ``new`` then, or in its place."""
    for attempt in itertools.count():
        try:
            new.rename(target)
            return
        except OSError as error:
            if error.errno not in _IN_THE_WAY:
                raise
        with suppress(FileNotFoundError):  # Another writer has just moved it aside.
            if _exchange(new, target):
                return
            target.rename(new.with_name(f"{_OLD}-{attempt}"))


def _exchange(one: Path, other: Path) -> bool:
    """Let two folders change places in one step; ``False`` where that cannot be done."""
    exchange = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if exchange is None:
        return False
    paths = (_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other))
    if exchange(*paths, _RENAME_EXCHANGE) == 0:
        return True
    code = ctypes.get_errno()
    if code in _NOT_EXCHANGED:
        return False
    raise OSError(code, os.strerror(code), str(other))


def _sync_tree(folder: Path) -> None:
    """Flush a folder and all that is in it to disk."""
    for parent, _, names in os.walk(folder, topdown=False):
        for name in names:
            flush_file(Path(parent) / name)
        sync_folder(Path(parent))
