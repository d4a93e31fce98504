"""The caller's end of the fork server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from typing import Any

from costlib.errors import MeasureError
from costlib.measure.config import Job, Outcome

_START_SECS = 120
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


class MeasureServer(AbstractContextManager["MeasureServer"]):
    """Builds and runs programs in processes of their own.

    Use as a context manager, or call :meth:`close`. If the server dies it is started again and
    the unfinished jobs are handed to it once more.

    Parameters
    ----------
    target
        The target as a dictionary.

    Attributes
    ----------
    folder
        A temporary folder for libraries, removed on :meth:`close`.
    """

    def __init__(self, target: dict[str, Any]) -> None:
        self.target = target
        self._temporary = tempfile.TemporaryDirectory(prefix="costlib-")
        self.folder = Path(self._temporary.name)
        self._log = self.folder / "server.log"
        self._start()

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def pid(self) -> int:
        """Process id of the server."""
        return self._process.pid

    def close(self) -> None:
        """Stop the server and remove its libraries."""
        self._connection.close()
        self._process.wait()
        self._temporary.cleanup()

    def work(
        self, jobs: Sequence[Job], on_done: Callable[[int, Outcome], None] | None = None
    ) -> list[Outcome]:
        """Do all jobs and return their outcomes in the same order.

        Parameters
        ----------
        jobs
            Builds run side by side on all cores, runs one at a time and alone.
        on_done
            Called with a job's index and outcome as soon as it is done.

        Raises
        ------
        MeasureError
            The server died twice over the same jobs.
        """
        outcomes: dict[int, Outcome] = {}
        for attempt in range(2):
            try:
                self._exchange(jobs, outcomes, on_done)
                return [outcomes[index] for index in range(len(jobs))]
            except (EOFError, ConnectionError, BrokenPipeError):
                if attempt:
                    raise MeasureError(
                        f"the measuring process died twice ({self._process.poll()}); "
                        "is the machine out of memory?"
                    ) from None
                self._process.kill()
                self._process.wait()
                self._start()
        raise AssertionError("unreachable")

    def _exchange(
        self,
        jobs: Sequence[Job],
        outcomes: dict[int, Outcome],
        on_done: Callable[[int, Outcome], None] | None,
    ) -> None:
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
            if on_done is not None:
                on_done(index, outcomes[index])

    def _start(self) -> None:
        self._connection, theirs = Pipe()
        environment = os.environ | _ONE_THREAD
        if "num-cores" in self.target:
            environment["TVM_NUM_THREADS"] = str(self.target["num-cores"])
        arguments = [str(theirs.fileno()), json.dumps(self.target)]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "costlib.measure.server", *arguments],
                pass_fds=[theirs.fileno()],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        theirs.close()
        if not self._is_ready(self._connection):
            self._process.kill()
            self._process.wait()
            raise MeasureError(f"the measuring process did not start: {self._last_words()}")

    def _last_words(self) -> str:
        lines = self._log.read_text(errors="replace").strip().splitlines()
        return lines[-1] if lines else "no message"

    @staticmethod
    def _is_ready(connection: Connection) -> bool:
        try:
            return connection.poll(_START_SECS) and connection.recv_bytes() == b"ready"
        except (EOFError, ConnectionError):
            return False
