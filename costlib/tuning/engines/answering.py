"""A process that answers on a socket, or says why it cannot; both ends."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from subprocess import TimeoutExpired
from typing import Any

from costlib.errors import MeasureError
from costlib.measure.client import start_process

_END_SECS = 5.0
_MAX_REASON_CHARS = 300


class Answering(AbstractContextManager["Answering"]):
    """Our end; a process that hangs is killed on leaving.

    Parameters
    ----------
    what
        What errors call it.
    module, *arguments
        What it runs; the module uses :func:`serve`.
    environment
        Variables of it alone.
    """

    def __init__(
        self, what: str, module: str, *arguments: str, environment: Mapping[str, str] | None = None
    ) -> None:
        self._what = what
        self._process, self._connection = start_process(
            module, *arguments, env={**os.environ, **(environment or {})}
        )

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the process; again, that does nothing."""
        self._connection.close()
        try:
            self._process.wait(_END_SECS)
        except TimeoutExpired:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def ask(self, question: Any, secs: float) -> Any:
        """Send something, and wait for the answer; see :meth:`answer`."""
        with suppress(OSError):  # It is dead, which the answer says.
            self._connection.send_bytes(json.dumps(question).encode())
        return self.answer(secs)

    def answer(self, secs: float) -> Any:
        """Wait for the next answer.

        Raises
        ------
        MeasureError
            It says what went wrong, died, or took longer than so many seconds.
        """
        try:
            if not self._connection.poll(secs):
                raise MeasureError(f"{self._what} does not answer within {secs:.0f} s")
            found = json.loads(self._connection.recv_bytes())
        except (EOFError, OSError):
            raise MeasureError(f"{self._what} died over the network") from None
        if found["error"] is not None:
            raise MeasureError(f"{self._what} fails: {found['error']}")
        return found["answer"]


@contextmanager
def serve() -> Iterator[tuple[Callable[..., None], Callable[[], Any], list[str]]]:
    """Be such a process until the other end is closed; an error is answered, and ends it.

    Yields what sends an answer, what waits for a question, and the arguments.
    """
    from costlib.measure.server import caller

    connection, arguments = caller()

    def reply(answer: Any = None, error: str | None = None) -> None:
        with suppress(OSError):
            connection.send_bytes(json.dumps({"answer": answer, "error": error}).encode())

    def question() -> Any:
        return json.loads(connection.recv_bytes())

    try:
        yield reply, question, arguments
    except EOFError:
        return
    except Exception as error:
        reply(error=_reason(error))


def _reason(error: Exception) -> str:
    """Return the first lines that say something: many only announce the next."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    telling = [line for line in lines if not line.endswith(":")]
    return " ".join((telling or lines or [type(error).__name__])[:2])[:_MAX_REASON_CHARS]
