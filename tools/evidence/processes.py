"""Steps as processes: what they print is shown and kept; an interruption reaches all of them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

from tools.evidence.files import REPOSITORY
from tools.evidence.step import Step
from tools.evidence.work import Work

_GRACE_SECS = 20
"""For an interrupted step to end by itself."""


def heed_interruptions() -> None:
    """Let Ctrl-C and SIGTERM raise ``KeyboardInterrupt`` at once.

    A library that was imported has system calls go on after a signal, and Python would only see it
    with the next line that a step prints.
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)


def run_step(work: Work, step: Step) -> str | None:
    """Run a step, and note how it went.

    Returns
    -------
    str or None
        Why it failed; ``None`` if it is complete.

    Raises
    ------
    KeyboardInterrupt
        This process was interrupted; then the step was, too, and is noted as cut off.
    """
    commands = [work.arguments(step)]
    if step.pieces is not None:
        commands.append([sys.executable, "-m", "tools.evidence.pack", step.result])
    log, began = work.log(step), time.monotonic()
    work.results.mkdir(parents=True, exist_ok=True)
    log.parent.mkdir(parents=True, exist_ok=True)
    try:
        for command in commands:
            if code := _run(command, work.environment(), log):
                work.note(step, "failed", (time.monotonic() - began) / 60)
                return f"{_how(code)}: {_last_line(log)}"
    except KeyboardInterrupt:
        work.note(step, "cut off", (time.monotonic() - began) / 60)
        raise
    work.note(step, "complete", (time.monotonic() - began) / 60)
    return None


def _run(command: list[str], environment: dict[str, str], log: Path) -> int:
    """Run a command in a session of its own; return its exit status."""
    with (
        log.open("ab") as kept,
        subprocess.Popen(
            command,
            cwd=REPOSITORY,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=kept,
            start_new_session=True,
        ) as process,
    ):
        assert process.stdout is not None
        try:
            for line in process.stdout:
                kept.write(line)
                kept.flush()
                if line[:1].isalnum():  # The rest of JSON is for the log.
                    print(f"    {line.decode(errors='replace').rstrip()[:160]}", flush=True)
            return process.wait()
        except KeyboardInterrupt:
            _end(process)
            raise


def _end(process: subprocess.Popen[bytes]) -> None:
    """Interrupt a process and its children; kill what does not end."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            process.wait(_GRACE_SECS)
        os.killpg(process.pid, signal.SIGKILL)


def _how(code: int) -> str:
    return f"exit {code}" if code > 0 else signal.Signals(-code).name


def _last_line(log: Path) -> str:
    lines = log.read_text(errors="replace").strip().splitlines()
    return lines[-1].strip()[:200] if lines else "it said nothing"
