"""The link to one device of a fleet: our end, and a process, since one that hangs can be killed.

The process runs as ``python -m costlib.measure.link FD HOST PORT KEY``; the file descriptor is a
socket. What goes out first is the device's description, or ``{"refused": why}``; then each job that
comes in is answered by its outcome. Files that a job names are sent to the device, and what it
writes is fetched.
"""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Iterator
from pathlib import Path
from subprocess import TimeoutExpired
from typing import Any

from pydantic import ValidationError

from costlib.canary_times import CanaryTimes
from costlib.errors import quoted
from costlib.hardware import Hardware
from costlib.measure.client import start_process
from costlib.measure.config import CanaryJob, Job, Outcome, RunJob, Timing
from costlib.measure.device import DESCRIBE, WORK, Description, Tracker
from costlib.measure.server import caller
from costlib.tvm_compat import rpc

SLACK_SECS = 60.0
"""What a job may take beyond its own time limit, for sending files and starting the server."""

_SECS_TO_LEAVE = 2.0
_SAMPLES = 50
_MOST_BYTES = 1 << 20
_OFF = 8.0
"""A device whose canaries differ by this factor from what they were at first is off."""

_SENT = ("path", "reference_path", "inputs")


class DeviceLostError(Exception):
    """A device died, hangs or talks nonsense."""


class Device:
    """One device of a tracker's and the process that talks to it.

    Attributes
    ----------
    description
        What it says it is.
    canary
        What its canaries took at first.
    strikes
        How many times in a row they were off since.
    """

    def __init__(self, tracker: Tracker) -> None:
        self._process, self._connection = start_process(
            "costlib.measure.link", tracker.host, str(tracker.port), tracker.key
        )
        self.strikes = 0
        self.description: Description
        self.canary: CanaryTimes

    @property
    def pid(self) -> int:
        """Process id of the link."""
        return self._process.pid

    @property
    def hardware(self) -> Hardware:
        """What it is."""
        return self.description.hardware

    @property
    def name(self) -> str:
        """A short name for messages."""
        return f"{self.hardware.hardware_id} ({self.description.device_id[:8]})"

    def enrol(self, deadline: float) -> None:
        """Wait for its description and time its canaries.

        Raises
        ------
        DeviceLostError
            It does not answer in time, or is no device of ours.
        """
        answer = self._receive(deadline - time.monotonic())
        if "refused" in answer:
            raise DeviceLostError(answer["refused"])
        try:
            self.description = Description.model_validate(answer)
        except ValidationError:
            raise DeviceLostError("it does not say what it is") from None
        timing = self.work(CanaryJob(samples=_SAMPLES)).timing
        if timing is None:
            raise DeviceLostError("its canaries do not run")
        self.canary = timing.canary

    def work(self, job: Job) -> Outcome:
        """Do one job.

        Raises
        ------
        DeviceLostError
            It did not come back with a possible outcome.
        """
        limit = job.config.run_timeout_secs if isinstance(job, RunJob) else job.timeout_secs
        try:
            self._connection.send_bytes(job.model_dump_json().encode())
            return Outcome.model_validate(self._receive(limit + SLACK_SECS))
        except (OSError, ValidationError) as error:
            raise DeviceLostError(f"it does not do its job: {quoted(error, 0)}") from None

    def is_off(self, timing: Timing) -> bool:
        """Whether the canaries beside a measurement cannot have been this device's."""
        now, first = timing.canary, self.canary
        ratios = (now.compute_s / first.compute_s, now.memory_s / first.memory_s)
        return not all(1 / _OFF < ratio < _OFF for ratio in ratios)

    def leave(self) -> None:
        """End the session; a link that does not let go of it is killed."""
        self._connection.close()
        try:
            self._process.wait(_SECS_TO_LEAVE)
        except TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _receive(self, secs: float) -> dict[str, Any]:
        try:
            if not self._connection.poll(max(0.0, secs)):
                raise DeviceLostError(f"it did not answer within {secs:.0f} s")
            return dict(json.loads(self._connection.recv_bytes(_MOST_BYTES)))
        except (EOFError, OSError, ValueError):
            raise DeviceLostError("it is gone") from None


def main() -> None:
    """Serve on the socket named on the command line, until its other end is closed."""
    connection, (host, port, key) = caller()
    session = rpc.request((host, int(port)), key)
    try:
        describe, work = session.get_function(DESCRIBE), session.get_function(WORK)
    except AttributeError:
        refusal = "it runs TVM's own RPC server; start `costlib serve` there"
        connection.send_bytes(json.dumps({"refused": refusal}).encode())
        return
    connection.send_bytes(describe("").encode())
    names = (f"file-{number}" for number in itertools.count())
    while True:
        try:
            job = json.loads(connection.recv_bytes())
        except EOFError:
            return
        connection.send_bytes(_done(session, work, job, names).encode())


def _done(session: Any, work: Any, job: dict[str, Any], names: Iterator[str]) -> str:
    sent = []
    for field in _SENT:
        if job.get(field) is not None:
            name = next(names) + Path(job[field]).suffix
            session.upload(job[field], name)
            job[field] = name
            sent.append(name)
    outputs = job.get("outputs")
    if outputs is not None:
        job["outputs"] = next(names) + Path(outputs).suffix
    outcome = str(work(json.dumps(job)))
    if outputs is not None and json.loads(outcome)["error"] is None:
        Path(outputs).write_bytes(bytes(session.download(job["outputs"])))
        sent.append(job["outputs"])
    for name in sent:
        session.remove(name)
    return outcome


if __name__ == "__main__":
    main()
