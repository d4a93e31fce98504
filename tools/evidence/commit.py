"""Which costlib is measured: the last commit that changed it, and whether it has changed since."""

from __future__ import annotations

import subprocess

from tools.evidence.files import REPOSITORY

MEASURED = ("costlib", "pretrained", "datasets")
"""What results depend on; a commit that changes nothing of it measures the same."""


def measured_commit() -> str:
    """Return the last commit that changed what is measured, ten digits."""
    return _git("log", "-1", "--abbrev=10", "--format=%h", "--", *MEASURED)


def uncommitted() -> list[str]:
    """Return the files of what is measured that are not as they were committed."""
    return [line[3:] for line in _git("status", "--porcelain", "--", *MEASURED).splitlines()]


def head() -> str:
    """Return the commit that is checked out, ten digits."""
    return _git("rev-parse", "--short=10", "HEAD")


def _git(*arguments: str) -> str:
    """Return what git prints.

    Raises
    ------
    CalledProcessError
        It failed; this is no repository.
    """
    done = subprocess.run(
        ["git", *arguments], cwd=REPOSITORY, stdout=subprocess.PIPE, text=True, check=True
    )
    return done.stdout.rstrip("\n")
