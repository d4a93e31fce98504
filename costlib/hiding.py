"""Packages that another one would import, at the cost of seconds, for what costlib does not use."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator


@contextlib.contextmanager
def hidden(*packages: str) -> Iterator[None]:
    """Make importing these packages fail for a moment; those imported already stay in sight.

    Parameters
    ----------
    packages
        Their names, as in ``sys.modules``.
    """
    absent = [package for package in packages if package not in sys.modules]
    sys.modules.update(dict.fromkeys(absent))  # type: ignore[arg-type]
    try:
        yield
    finally:
        for package in absent:
            del sys.modules[package]
