"""The command line in the test's own process, where all that it imports is imported already."""

from __future__ import annotations

import logging
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from unittest import mock

from costlib.cli.app import run


def costlib(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Do what ``costlib`` does with these arguments."""
    words = ["costlib", *map(str, arguments)]
    out, err = StringIO(), StringIO()
    try:
        with mock.patch.object(sys, "argv", words), redirect_stdout(out), redirect_stderr(err):
            code = run()
    finally:
        logging.getLogger("costlib").setLevel(logging.NOTSET)
    return subprocess.CompletedProcess(words, code, out.getvalue(), err.getvalue())
