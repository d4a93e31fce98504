"""Processes that the tests fork instead of starting."""

from __future__ import annotations

import os
import subprocess
import sys

from forked import Popen


def test_a_process_has_a_session_of_its_own_as_soon_as_it_is_known() -> None:
    """Otherwise signals for its group, as Jupyter sends them, reach the fork server."""
    for _ in range(5):
        command = [sys.executable, "-c", "input()"]
        with Popen(command, stdin=subprocess.PIPE, start_new_session=True) as process:
            assert os.getpgid(process.pid) == process.pid
            process.communicate(b"\n", timeout=60)
