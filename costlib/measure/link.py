"""The link to one device of a fleet, as a process: one that hangs can be killed.

Run as ``python -m costlib.measure.link FD HOST PORT KEY``; the file descriptor is a socket. What
goes out first is the device's description, or ``{"refused": why}``; then each job that comes in
is answered by its outcome. Files that a job names are sent to the device, and what it writes is
fetched.
"""

from __future__ import annotations

import itertools
import json
import signal
import sys
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from costlib.measure.device import DESCRIBE, WORK
from costlib.measure.server import die_with_parent
from costlib.tvm_compat import rpc

_SENT = ("path", "reference_path", "inputs")


def main() -> None:
    """Serve on the socket named on the command line, until its other end is closed."""
    die_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    descriptor, host, port, key = sys.argv[1:]
    connection = Connection(int(descriptor))
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
