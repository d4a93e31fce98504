"""What runs on a device of a fleet: TVM's RPC server, with two functions of costlib's.

``costlib.describe`` says what the device is; ``costlib.work`` does a job in a fork server, as on
this machine, with the same limits and canaries. A session has a folder of its own, for all that is
sent or made in it, which goes when the session ends.

TVM's RPC runs whatever it is sent: trackers and devices belong in a trusted network.
"""

from __future__ import annotations

import functools
import os
import socket
import tempfile
import uuid
from pathlib import Path
from typing import Any, Literal

from pydantic import TypeAdapter

from costlib.errors import InputError, MeasureError, quoted
from costlib.frozen import Frozen
from costlib.hardware import Hardware
from costlib.measure.client import MeasureServer
from costlib.measure.config import (
    CanaryJob,
    CheckJob,
    MeasureConfig,
    NetworkJob,
    Outcome,
    RunJob,
)
from costlib.measure.device_here import check_device
from costlib.measure.faults import fault_of
from costlib.tvm_compat import rpc, tvm
from costlib.tvm_compat.link import is_linked, link_shared

DESCRIBE, WORK = "costlib.describe", "costlib.work"

DeviceJob = RunJob | CheckJob | NetworkJob | CanaryJob
"""What a device does; it builds nothing but its canaries."""

_JOB: TypeAdapter[DeviceJob] = TypeAdapter(DeviceJob)
_SECS_TO_ANSWER = 10.0
_LIBRARIES = ("path", "reference_path")


class Tracker(Frozen):
    """Where the devices of a fleet are found: a tracker, and the key they are known by."""

    host: str
    port: int
    key: str

    @classmethod
    def parse(cls, address: str, key: str | None) -> Tracker:
        """Read ``HOST:PORT``.

        Raises
        ------
        InputError
            It is not that, or there is no key.
        """
        host, _, port = address.rpartition(":")
        if not host or not port.isdecimal() or not 0 < int(port) < 1 << 16:
            raise InputError(f"the tracker is '{address}'; give it as HOST:PORT")
        if not key:
            raise InputError("a tracker is given without a --key; name that of the devices")
        return cls(host=host, port=int(port), key=key)

    def check(self) -> None:
        """Raise :class:`InputError` unless somebody answers there."""
        try:
            socket.create_connection(self.address, timeout=_SECS_TO_ANSWER).close()
        except OSError as error:
            raise InputError(
                f"no tracker answers at {self.host}:{self.port} ({error.strerror or error}); "
                "start one: python -m tvm.exec.rpc_tracker"
            ) from None

    @property
    def address(self) -> tuple[str, int]:
        """Host and port."""
        return self.host, self.port


class Description(Frozen):
    """What a device says it is.

    Attributes
    ----------
    device_id
        Another one for each start of its server.
    hardware
        Its hardware.
    triple
        What machine code it runs, as LLVM names it.
    """

    kind: Literal["costlib"] = "costlib"
    device_id: str
    hardware: Hardware
    triple: str


def start_device(tracker: Tracker, hardware: Hardware, address: str | None = None) -> Any:
    """Offer this machine to a tracker; stop it with ``terminate()`` of what is returned.

    Parameters
    ----------
    tracker
        Where.
    hardware
        What it is measured as.
    address
        Its name or IP for clients, where the tracker sees another one.

    Raises
    ------
    InputError
        There is no tracker.
    MeasureError
        This machine is no such hardware.
    """
    check_device(hardware, MeasureConfig())
    tracker.check()
    description = Description(
        device_id=uuid.uuid4().hex,
        hardware=hardware,
        triple=str(tvm.target.codegen.llvm_get_system_triple()),
    )
    set_up = functools.partial(_offer, description.model_dump_json())
    return rpc.start_server(tracker.address, tracker.key, address, set_up)


def _offer(description: str) -> None:
    target = Description.model_validate_json(description).hardware.target
    rpc.offer(DESCRIBE, lambda _: description)
    rpc.offer(WORK, functools.partial(_work, functools.cache(lambda: _start_server(target))))


def _start_server(target: dict[str, Any]) -> MeasureServer:
    """Start the fork server of a session, all of whose files are in the session's folder."""
    tempfile.tempdir = os.environ["TMPDIR"] = str(Path.cwd())
    return MeasureServer(target)


def _work(server: Any, text: str) -> str:
    """Do a job, whose files have been sent to the session's folder before."""
    try:
        job = _placed(job_of(text))
        return str(server().work([job])[0].model_dump_json())
    except MeasureError as error:
        return Outcome(error=str(error), fault=str(error)).model_dump_json()
    except (RuntimeError, ValueError, OSError) as error:
        return Outcome(error=quoted(error, 0), fault=fault_of(error)).model_dump_json()


def job_of(text: str | bytes) -> DeviceJob:
    """Read a job; raise ``ValueError`` if it is none."""
    return _JOB.validate_json(text)


def _placed(job: DeviceJob) -> DeviceJob:
    """Turn the names of files into paths in the session's folder, and link what is not linked."""
    paths = {}
    for field in (*_LIBRARIES, "inputs", "outputs"):
        name = getattr(job, field, None)
        if name is None:
            continue
        if Path(name).name != name:
            raise ValueError(f"'{name}' is not the name of a file in the session's folder")
        path = Path.cwd() / name
        if field in _LIBRARIES and not is_linked(path):
            linked = path.with_suffix(".linked.so")
            link_shared(linked, [path])
            path = linked
        paths[field] = str(path)
    return job.model_copy(update=paths)
