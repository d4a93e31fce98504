"""Parts of a benchmark that need a process of their own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from tools.evidence.files import REPOSITORY


def in_a_process(module: str, *arguments: str) -> dict[str, Any]:
    """Run a module of ``tools`` and return the JSON on the last line that it prints."""
    command = [sys.executable, "-m", module, *arguments]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, cwd=REPOSITORY)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def peak_mib() -> int:
    """Return the peak resident set of this process so far."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) // 1024
