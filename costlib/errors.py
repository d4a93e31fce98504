"""Every error that costlib raises on purpose.

One family: catch :class:`CostlibError` to catch them all. Each member also derives from the
builtin a Python programmer would look for (``ValueError``, ``RuntimeError``, ...), so that
code which knows nothing about costlib handles it sensibly. A message is one line that says
what is wrong, where, and how to mend it; the command line prints it and exits with
:attr:`CostlibError.exit_code`.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any


def quoted(error: BaseException, line: int = -1) -> str:
    """Return a line of another library's error to quote; TVM says what went wrong in the last."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[line].strip()


class CostlibError(Exception):
    """Base of all errors raised by costlib."""

    exit_code = 1


class InputError(CostlibError, ValueError):
    """An argument, a file or a setting that the user gave cannot be used."""

    exit_code = 2


class UnknownNameError(InputError, LookupError):
    """A name that is not in a catalogue; carries the names that would have been closest.

    Parameters
    ----------
    what
        The kind of thing looked up, e.g. ``"network"``.
    name
        The name that was not found.
    known
        Every name that would have been accepted.
    """

    def __init__(self, what: str, name: str, known: Iterable[str]) -> None:
        self.name = name
        self.known = sorted(known)
        self.nearest = difflib.get_close_matches(name, self.known, n=3, cutoff=0.4)
        hint = (
            f"did you mean {' or '.join(self.nearest)}?"
            if self.nearest
            else f"known: {', '.join(self.known)}"
        )
        super().__init__(f"unknown {what} {name!r}; {hint}")


class UnsupportedModelError(InputError):
    """A network that cannot be brought into TVM: an operator it lacks, a dynamic shape.

    Parameters
    ----------
    message
        What, where and how to mend it.
    operators
        Names of operators that are not supported.
    """

    def __init__(self, message: str, operators: Iterable[str] = ()) -> None:
        self.operators = tuple(operators)
        super().__init__(message)


class TargetError(InputError):
    """A target that this TVM cannot build for."""


class EnvironmentMismatchError(CostlibError, ImportError):
    """TVM is missing, or an untested version of it is installed."""

    exit_code = 3


class DatasetError(InputError):
    """A dataset that is not one, has another schema version, or holds a damaged part."""


class BundleError(InputError):
    """A bundle that is incomplete, changed after it was saved, or of another version."""


class HubError(CostlibError, ConnectionError):
    """A place that bundles are published to, or fetched from, cannot be reached or refuses."""


class StorageError(CostlibError, OSError):
    """Writing failed: no space left, or no permission. What was there before is untouched."""

    exit_code = 4


class DifferentNetworkError(CostlibError, ValueError):
    """A compiled network computes something else than its original."""


class MeasureError(CostlibError, RuntimeError):
    """The machine or the measuring process failed (a program that fails is a record, no error).

    Parameters
    ----------
    message
        What, where and how to mend it.

    Attributes
    ----------
    finished
        The :class:`~costlib.measure.measurement.Measurement` of the first candidates of the batch
        at work, those before the one at which it failed.
    """

    def __init__(self, message: str) -> None:
        self.finished: tuple[Any, ...] = ()
        super().__init__(message)
