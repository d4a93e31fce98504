"""The command line: calls of the library, and nothing else."""

from __future__ import annotations

import os
import sys


def main() -> None:
    """Run ``costlib``; a costlib error becomes one line on stderr and its exit code."""
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "1")  # It would search every package.
    from costlib.cli.app import run

    sys.exit(run())
