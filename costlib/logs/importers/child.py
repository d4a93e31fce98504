"""Databases are read in a child process: TVM replays their records; a damaged one may crash it."""

from __future__ import annotations

import faulthandler
import functools
import multiprocessing
import os
import resource
from contextlib import AbstractContextManager, suppress
from datetime import datetime
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from costlib.logs.importers.metaschedule import DatabaseReader
from costlib.logs.importers.record import ImportedRecord, SkippedRecordError

_MOST_SECS = 30.0
"""For one record."""


class ChildDatabaseReader(AbstractContextManager["ChildDatabaseReader"]):
    """Reads as :class:`~costlib.logs.importers.metaschedule.DatabaseReader` does, in a child."""

    def __init__(self, file: Path, workloads: Path | None = None) -> None:
        self._files = file, workloads
        self._child: multiprocessing.process.BaseProcess | None = None
        self._pipe: Connection | None = None

    def __exit__(self, *_: object) -> None:
        self._stop()

    def read(self, entry: list[Any], otherwise: datetime) -> ImportedRecord:
        """Read a record; the next one is read by a new child if this one crashes TVM."""
        pipe = self._pipe or self._start()
        try:
            pipe.send((entry, otherwise))
            if not pipe.poll(_MOST_SECS):
                self._stop()
                raise SkippedRecordError("TVM takes too long for it")
            answer = pipe.recv()
        except (EOFError, ConnectionError):
            self._stop()
            raise SkippedRecordError("TVM crashes on it") from None
        if not isinstance(answer, ImportedRecord):
            raise answer
        return answer

    def _start(self) -> Connection:
        context = _clean_children()
        self._pipe, theirs = context.Pipe()
        self._child = context.Process(target=_serve, args=(theirs, *self._files), daemon=True)
        self._child.start()
        theirs.close()
        return self._pipe

    def _stop(self) -> None:
        if self._child is not None and self._pipe is not None:
            self._pipe.close()
            self._child.kill()
            self._child.join()
        self._child = self._pipe = None


@functools.cache
def _clean_children() -> Any:
    """Fork from a process that has TVM, but has not used its threads: their locks stay locked."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([DatabaseReader.__module__])
    return context


def _serve(pipe: Connection, file: Path, workloads: Path | None) -> None:
    """Answer each record with what it becomes, or the error that says why it becomes nothing."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    faulthandler.disable()
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # TVM prints where it crashed.
    reader = DatabaseReader(file, workloads)
    with suppress(EOFError, ConnectionError):
        while True:
            entry, otherwise = pipe.recv()
            try:
                pipe.send(reader.read(entry, otherwise))
            except (SkippedRecordError, OSError) as error:
                pipe.send(error)
            except Exception as error:
                pipe.send(ValueError(str(error)))
