"""The caller's end of the fork server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager
from multiprocessing.connection import Connection, Pipe
from typing import IO, Any

from costlib.errors import MeasureError
from costlib.measure.config import BuildJob, Job, Outcome
from costlib.measure.faults import machine_faults, why_died
from costlib.scratch import ScratchFolder

_START_SECS = 120
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


def start_process(
    module: str, *arguments: str, output: Any = subprocess.DEVNULL, env: Any = None
) -> tuple[subprocess.Popen[bytes], Connection]:
    """Start a module that serves on a socket; return the process and our end of the socket."""
    ours, theirs = Pipe()
    with theirs:
        process = subprocess.Popen(
            [sys.executable, "-m", module, str(theirs.fileno()), *arguments],
            pass_fds=[theirs.fileno()],
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    return process, ours


class MeasureServer(AbstractContextManager["MeasureServer"]):
    """Builds and runs programs in processes of their own.

    Use as a context manager, or call :meth:`close`. It is not waited for before there is something
    to do. If it dies it is started again and the unfinished jobs are handed to it once more.

    Parameters
    ----------
    target
        The target as a dictionary.

    Attributes
    ----------
    folder
        A temporary folder for libraries, removed on :meth:`close`.
    """

    _is_ready: bool

    def __init__(self, target: dict[str, Any]) -> None:
        self.target = target
        self._log: IO[bytes] | None = None
        with machine_faults("no temporary folder can be made"):
            self._scratch = ScratchFolder()
        self.folder = self._scratch.path
        try:
            self._start()
        except BaseException:
            self._scratch.close()
            raise

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def pid(self) -> int:
        """Process id of the server."""
        return self._process.pid

    def close(self) -> None:
        """Stop the server and remove its libraries."""
        if not self._is_ready:
            self._process.kill()  # It would see only once it has started that nobody listens.
        self._connection.close()
        self._process.wait()
        self._scratch.close()

    def wait(self) -> None:
        """Wait until the server has started.

        Raises
        ------
        MeasureError
            It did not start.
        """
        if self._is_ready:
            return
        try:
            ready = self._connection.poll(_START_SECS) and self._connection.recv_bytes()
        except (EOFError, ConnectionError):
            ready = False
        if not ready:
            self._kill()
            raise MeasureError(
                f"the measuring process did not start: {why_died(self._last_words())}"
            )
        self._is_ready = True

    def work(self, jobs: Sequence[Job]) -> list[Outcome]:
        """Do all jobs and return their outcomes in the same order.

        Parameters
        ----------
        jobs
            Builds run side by side on all cores, runs one at a time and alone.

        Raises
        ------
        MeasureError
            The machine is at fault for what failed, the server did not start, or it died twice over
            the same jobs.
        """
        self.wait()
        outcomes: dict[int, Outcome] = {}
        has_died = False
        while len(outcomes) < len(jobs):
            try:
                self._exchange(jobs, outcomes)
            except (EOFError, ConnectionError):
                if has_died:
                    self._kill()
                    code = self._process.returncode
                    raise MeasureError(
                        f"the measuring process died twice ({code}): {why_died(self._last_words())}"
                    ) from None
                has_died = True
                self._kill()
                self._start()
                self.wait()
        for index, outcome in outcomes.items():
            if outcome.fault is not None:
                doing = "build" if isinstance(jobs[index], BuildJob) else "run"
                raise MeasureError(f"this machine cannot {doing} programs: {outcome.fault}")
        return [outcomes[index] for index in range(len(jobs))]

    def _exchange(self, jobs: Sequence[Job], outcomes: dict[int, Outcome]) -> None:
        waiting = [index for index in range(len(jobs)) if index not in outcomes]
        in_flight = 0
        while waiting or in_flight:
            while waiting and in_flight < 2 * (os.cpu_count() or 1):
                index = waiting.pop(0)
                message = json.dumps([index, jobs[index].model_dump()])
                self._connection.send_bytes(message.encode())
                in_flight += 1
            index, outcome = json.loads(self._connection.recv_bytes())
            in_flight -= 1
            outcomes[index] = Outcome.model_validate(outcome)

    def _start(self) -> None:
        environment = os.environ | _ONE_THREAD
        if "num-cores" in self.target:
            environment["TVM_NUM_THREADS"] = str(self.target["num-cores"])
        with machine_faults("the measuring process cannot be started"):
            # In memory: the disk may be full.
            self._log = os.fdopen(os.memfd_create("log", os.MFD_CLOEXEC), "w+b")
            arguments = json.dumps(self.target)
            self._process, self._connection = start_process(
                "costlib.measure.server", arguments, output=self._log, env=environment
            )
        self._is_ready = False

    def _last_words(self) -> str:
        if self._log is None:
            return ""
        self._log.seek(0)
        return self._log.read().decode(errors="replace")

    def _kill(self) -> None:
        self._process.kill()
        self._process.wait()
