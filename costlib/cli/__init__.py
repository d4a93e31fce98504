"""The command line: calls of the library, and nothing else."""

from __future__ import annotations

import sys


def main() -> None:
    """Run ``costlib``; a costlib error becomes one line on stderr and its exit code."""
    from costlib.cli.app import run

    sys.exit(run())
