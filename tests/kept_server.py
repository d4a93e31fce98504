"""A fork server that goes on to serve the next caller: it takes seconds to start."""

from __future__ import annotations

import json
import subprocess
from collections import defaultdict
from collections.abc import Sequence
from multiprocessing.connection import Connection

from costlib.measure.client import MeasureServer
from costlib.measure.config import Job, Outcome

_idle: defaultdict[str, list[tuple[subprocess.Popen[bytes], Connection]]] = defaultdict(list)


class KeptServer(MeasureServer):
    """Leaves its process to the next one with the same target, unless that still has work."""

    _is_idle = True

    def work(self, jobs: Sequence[Job]) -> list[Outcome]:
        self._is_idle = False
        outcomes = super().work(jobs)
        self._is_idle = True
        return outcomes

    def close(self) -> None:
        if self._is_ready and self._is_idle and self._process.poll() is None:
            _idle[json.dumps(self.target)].append((self._process, self._connection))
            self._scratch.close()
        else:
            super().close()

    def _start(self) -> None:
        waiting = _idle[json.dumps(self.target)]
        while waiting:
            self._process, self._connection = waiting.pop()
            if self._process.poll() is None:
                self._is_ready = True
                return
        super()._start()
