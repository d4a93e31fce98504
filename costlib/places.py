"""Where a command is to write: what is there already, whether it can be written, whose it is now.

To be asked before the work starts. What is found out at its end has cost the work.
"""

from __future__ import annotations

import fcntl
import os
import socket
import tempfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from costlib.errors import InputError
from costlib.files import storage_errors

LOCK = ".lock"
"""The file of a folder that its only writer holds a lock on."""

_KINDS = {"dataset.json": "a dataset", "bundle.json": "a bundle", "run.json": "a run"}
"""What each kind of our folders is known by."""


def kind_at(folder: Path) -> str | None:
    """Say what a folder holds: ``"a dataset"``, ``"a bundle"``, ``"a run"``, or ``None``."""
    with suppress(OSError):
        return next((kind for name, kind in _KINDS.items() if (folder / name).is_file()), None)
    return None


def refuse_others(folder: Path, kind: str) -> None:
    """Refuse a folder that holds another kind of ours than what is to be written there.

    Parameters
    ----------
    folder
        It may not exist.
    kind
        As :func:`kind_at` says it, or anything else if none of ours is to be written.

    Raises
    ------
    InputError
        It holds something else, or is a file.
    """
    found = kind_at(folder)
    if found not in (None, kind):
        raise InputError(f"{folder} holds {found}; choose another folder")
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file; choose a folder")


def check_free(
    folder: Path,
    kind: str,
    *,
    replace: bool = False,
    replaceable: Collection[str] = ("a dataset", "a bundle"),
    error: type[InputError] = InputError,
) -> None:
    """Refuse a folder that holds anything, and one that cannot be written.

    Parameters
    ----------
    folder
        It may not exist.
    kind
        What is to go there, such as ``"bundle"``.
    replace
        Whether it may take the place of what is there.
    replaceable
        The kinds that it may take the place of; nothing else is ever to be lost.
    error
        What is raised.

    Raises
    ------
    InputError
        Something is there.
    StorageError
        The folder cannot be written.
    """
    found = kind_at(folder)
    if found in replaceable:
        if not replace:
            raise error(
                f"{folder} holds {found} already; --replace puts the new one in its place, "
                "or choose another folder"
            )
    elif found is not None or folder.is_file() or (folder.is_dir() and any(folder.iterdir())):
        raise error(f"{folder} exists and is no {kind}; choose another folder")
    check_writable(Path(os.path.realpath(folder)).with_name(".tmp-beside"))


def check_writable(path: Path) -> None:
    """See whether a file or folder can be written; nothing is left behind.

    What does not exist is made in the nearest folder above it that does, so that one is tried.

    Raises
    ------
    StorageError
        It cannot: no permission, no space, a disk that is only read, or a file is in the way.
    """
    with storage_errors(path):
        place = Path(os.path.realpath(path))
        if place.is_file():
            with place.open("rb+"):
                place = place.parent
        while not (place.exists() or place.is_symlink()):
            place = place.parent
        tempfile.TemporaryFile(dir=place).close()


@contextmanager
def held(folder: Path, doing: str) -> Iterator[None]:
    """Be the only one at work in a folder; the kernel lets it go however this process dies.

    The folder is made if missing, and removed in the end if nothing was written there.

    Parameters
    ----------
    folder
        The folder.
    doing
        What others are told is being done with it, such as ``"tuned"``.

    Raises
    ------
    InputError
        Another process is at work there.
    StorageError
        It cannot be written.
    """
    with storage_errors(folder):
        made = _made(folder)
        lock = _open_lock(folder, doing)
    with lock:
        try:
            yield
        finally:
            with suppress(OSError):
                (folder / LOCK).unlink()
                for one in made:
                    one.rmdir()


def _made(folder: Path) -> list[Path]:
    """Make a folder; return those that were not there, the innermost first."""
    missing = [one for one in (folder, *folder.parents) if not one.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    return missing


def _open_lock(folder: Path, doing: str) -> IO[str]:
    while True:
        file = (folder / LOCK).open("a+")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            who = file.read().strip() or "another process"
            file.close()
            raise InputError(
                f"{folder} is being {doing} by {who}; wait for it, or choose another folder"
            ) from None
        except OSError:
            return file  # A file system without locks.
        if os.fstat(file.fileno()).st_nlink:
            file.truncate(0)
            file.write(f"process {os.getpid()} on {socket.gethostname()}\n")
            file.flush()
            return file
        file.close()  # Removed between being opened and being locked.
        folder.mkdir(parents=True, exist_ok=True)
