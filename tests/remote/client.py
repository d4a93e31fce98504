"""A process with settings of its own for the Hugging Face hub, which are read at import.

It evaluates what it is sent, and ends at once, not nicely, when it tries to leave this machine.
"""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

LEFT_THE_MACHINE = 99


class Answer(NamedTuple):
    value: Any
    error: str | None
    warnings: list[str]


class Client:
    """Runs costlib in another process; to be used in a `with` statement."""

    def __init__(self, endpoint: str, home: Path) -> None:
        kept = {name: value for name, value in os.environ.items() if "proxy" not in name.lower()}
        settings = {
            "COSTLIB_CACHE": str(home / "costlib"),
            "HF_ENDPOINT": endpoint,
            "HF_HOME": str(home / "hf"),
            "HF_HUB_DISABLE_PROGRESS_BARS": "1",
            "HF_HUB_DISABLE_TELEMETRY": "1",
            "HF_HUB_DISABLE_XET": "1",
            "HF_TOKEN": "hf_test",
        }
        self._process = subprocess.Popen(
            [sys.executable, __file__],
            env=kept | settings,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None
    ) -> None:
        self._process.communicate()
        assert kind or self._process.returncode == 0, "it left the machine"

    def ask(self, expression: str) -> Answer:
        """Evaluate an expression there, whatever comes of it."""
        assert self._process.stdin is not None and self._process.stdout is not None
        print(expression, file=self._process.stdin, flush=True)
        return Answer(*json.loads(self._process.stdout.readline()))

    def get(self, expression: str) -> Any:
        """Evaluate an expression that goes well there, without a warning."""
        answer = self.ask(expression)
        assert answer.error is None and answer.warnings == [], answer
        return answer.value


def _stay_here(event: str, arguments: tuple[Any, ...]) -> None:
    host = {"socket.connect": lambda: arguments[1][0], "socket.getaddrinfo": lambda: arguments[0]}
    if event in host and host[event]() not in ("127.0.0.1", "/"):
        os.write(2, f"{event} to {host[event]()!r}\n".encode())
        os._exit(LEFT_THE_MACHINE)


def _serve() -> None:
    from costlib.data.dataset import Dataset
    from costlib.data.remote import fetch_dataset, publish_dataset
    from costlib.hub import load_pretrained
    from costlib.hub.listing import list_published
    from costlib.hub.remote import fetch, publish

    names = {
        one.__name__: one
        for one in (
            Dataset,
            fetch,
            fetch_dataset,
            list_published,
            load_pretrained,
            publish,
            publish_dataset,
        )
    }
    warnings: list[str] = []
    handler = logging.Handler(logging.WARNING)
    handler.emit = lambda record: warnings.append(record.getMessage())  # type: ignore[method-assign]
    logging.getLogger("costlib").addHandler(handler)
    answers, sys.stdout = sys.stdout, sys.stderr
    for line in sys.stdin:
        warnings.clear()
        try:
            answer = Answer(eval(line, {**names, "Path": Path}), None, warnings)
        except Exception as error:
            answer = Answer(None, f"{type(error).__name__}: {error}", warnings)
        print(json.dumps(answer, default=str), file=answers, flush=True)


if __name__ == "__main__":
    sys.addaudithook(_stay_here)
    _serve()
