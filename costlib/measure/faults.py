"""Faults of the machine: a full disk, a limit, a missing linker. No program is to blame for them.

What certainly is one is told by its error number, or by what the C library says for it in another
program's message. A crash that might be either's is looked into with a program that is known to be
good (:mod:`costlib.measure.known_good`).
"""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from costlib.errors import CostlibError, EnvironmentMismatchError, MeasureError, quoted

_SPACE = "free some space in {folder}, or set TMPDIR to a folder that has it"
_WRITABLE = "set TMPDIR, which is {folder} now, to a folder that can be written"
_PROCESSES = "end other processes, or raise `ulimit -u`"

_MENDS = {
    errno.ENOSPC: _SPACE,
    errno.EDQUOT: _SPACE,
    errno.EFBIG: "raise the largest size of a file, `ulimit -f`",
    errno.EROFS: _WRITABLE,
    errno.EACCES: _WRITABLE,
    errno.EIO: "look after the disk of {folder}",
    errno.EMFILE: "raise how many files may be open, `ulimit -n`",
    errno.ENFILE: "close files of other processes; the whole machine has too many open",
    errno.EAGAIN: _PROCESSES,
}

_MEMORY = "free some memory, or raise `ulimit -v`"

_AMBIGUOUS = (errno.EACCES, errno.EAGAIN)
"""A message that says so may mean something else."""

_SAID = {os.strerror(code): mend for code, mend in _MENDS.items() if code not in _AMBIGUOUS} | {
    "SIGXFSZ": _MENDS[errno.EFBIG],
    "failed to map segment": (
        "raise `ulimit -v`, or set TMPDIR, which is {folder} now, to a folder whose files may be "
        "executed"
    ),
}
"""What other programs and libraries say in their messages, and how to mend it."""

_OUT_OF_MEMORY = (os.strerror(errno.ENOMEM), "bad_alloc", "out of memory")


def fault_of(error: BaseException) -> str | None:
    """Say which fault of the machine an error certainly tells of, and how to mend it.

    Returns
    -------
    str or None
        One line; ``None`` if a program may have caused it.
    """
    if isinstance(error, EnvironmentMismatchError):
        return quoted(error, 0)
    if isinstance(error, OSError) and error.errno in _MENDS:
        return _with_mend(os.strerror(error.errno), _MENDS[error.errno])
    return fault_in(str(error))


def fault_in(text: str) -> str | None:
    """Say which fault of the machine a message certainly tells of, as :func:`fault_of` does."""
    for line in reversed(text.splitlines()):
        for said, mend in _SAID.items():
            if said.lower() in line.lower():
                return _with_mend(line.strip(), mend)
    return None


def is_out_of_memory(error: BaseException | str) -> bool:
    """Whether there was no memory left."""
    text = str(error).lower()
    return isinstance(error, MemoryError) or any(said.lower() in text for said in _OUT_OF_MEMORY)


@contextmanager
def machine_faults(what: str) -> Iterator[None]:
    """Turn an ``OSError`` or a ``MemoryError`` of the body into a :class:`MeasureError`.

    Parameters
    ----------
    what
        What cannot be done then, e.g. ``"the measuring process cannot be started"``.
    """
    try:
        yield
    except CostlibError:
        raise
    except (OSError, MemoryError) as error:
        fault = fault_of(error)
        if fault is None:
            fault = _with_mend(quoted(error), _MEMORY) if is_out_of_memory(error) else quoted(error)
        raise MeasureError(f"{what}: {fault}") from error


def why_died(last_words: str) -> str:
    """Say in one line why a process died, by what it said at last, and how to mend it."""
    if not last_words.strip():
        return "it said nothing; is the machine out of memory?"
    line = last_words.strip().splitlines()[-1]
    if is_out_of_memory(last_words) or "MemoryError" in line:
        return _with_mend(line, _MEMORY)
    return fault_in(last_words) or line


def _with_mend(what: str, mend: str) -> str:
    return f"{what}; {mend.format(folder=_temporary_folder())}"


def _temporary_folder() -> str:
    try:
        return tempfile.gettempdir()
    except OSError:
        return "the temporary folder"
