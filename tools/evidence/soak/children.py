"""A command in a process group of its own, and all processes that come of it, wherever they go."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from pathlib import Path

import psutil

from tools.evidence.files import REPOSITORY

MARK = "SOAK_CHILD"
"""Environment variable by which descendants are known: servers leave the process group."""

_LONGEST_SECS = 900
_FAREWELL_SECS = 10


class Child(AbstractContextManager["Child"]):
    """A running command; it does not outlive the context.

    Parameters
    ----------
    command
        Its words.
    folder
        Where what it prints is kept.
    name
        Nothing else that runs may be marked with it.
    environment
        Added to this process's.
    """

    def __init__(
        self, command: Sequence[str], folder: Path, name: str, environment: Mapping[str, str]
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._name = f"{os.getpid()}-{name}"
        self._files = [folder / f"{name}.{stream}" for stream in ("out", "err")]
        with self._files[0].open("wb") as out, self._files[1].open("wb") as err:
            self._process = subprocess.Popen(
                command,
                cwd=REPOSITORY,
                env=os.environ | dict(environment) | {MARK: self._name},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )

    def __exit__(self, *_: object) -> None:
        while left := self.processes():
            send(left, signal.SIGKILL)
            self.ended_within(0.1)

    @property
    def out(self) -> str:
        """What it has printed on standard output."""
        return self._files[0].read_text(errors="replace")

    @property
    def err(self) -> str:
        """What it has printed on standard error."""
        return self._files[1].read_text(errors="replace")

    def ended_within(self, secs: float) -> bool:
        """Wait for so long, or until it ends; return whether it has ended."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(secs)
        return self._process.poll() is not None

    def processes(self) -> list[psutil.Process]:
        """Return all that descend from it and live, itself among them, the oldest first."""
        found = [process for process in psutil.process_iter() if self._is_ours(process)]
        return sorted(found, key=lambda process: process.pid != self._process.pid)

    def server(self, patience_secs: float) -> list[psutil.Process]:
        """Wait for its measuring process; return that alone, or nothing if it ends before."""
        deadline = time.monotonic() + patience_secs
        while not self.ended_within(0.05) and time.monotonic() < deadline:
            for process in self.processes():
                with suppress(psutil.Error):
                    serves = "costlib.measure.server" in process.cmdline()
                    if serves and process.ppid() == self._process.pid:
                        return [process]
        return []

    def end(self) -> tuple[int | None, int]:
        """Wait until it ends.

        Returns
        -------
        code, left
            Its exit code, ``None`` if it hangs and had to be killed; and how many of its processes
            were still there some seconds after it.
        """
        code = self._process.returncode if self.ended_within(_LONGEST_SECS) else None
        deadline = time.monotonic() + _FAREWELL_SECS * (code is not None)
        while (left := self.processes()) and time.monotonic() < deadline:
            time.sleep(0.1)
        return code, len(left)

    def _is_ours(self, process: psutil.Process) -> bool:
        with suppress(psutil.Error, OSError):
            return bool(process.environ().get(MARK) == self._name)
        return False


def send(processes: Sequence[psutil.Process], number: signal.Signals) -> None:
    """Send a signal to those that are still there."""
    for process in processes:
        with suppress(psutil.Error):
            process.send_signal(number)
