"""TVM's RPC: a tracker that knows devices by a key, servers on the devices, sessions on those."""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import tvm.rpc
from tvm.rpc import server
from tvm.rpc.tracker import Tracker as TvmTracker
from tvm.support import popen_pool
from tvm_ffi import register_global_func

_FIRST_PORT, _LAST_PORT = 9090, 9999

_RUN_MODULE = "import costlib.tvm_compat, runpy; runpy.run_module({!r}, run_name='__main__')"


def start_tracker(host: str = "127.0.0.1") -> Any:
    """Start a tracker in a process of its own; it has a ``port``, and ``terminate()``."""
    with _workers_start_fast():
        return TvmTracker(host=host, port=_FIRST_PORT, port_end=_LAST_PORT, silent=True)


def start_server(
    tracker: tuple[str, int], key: str, address: str | None, set_up: Callable[[], None]
) -> Any:
    """Start a server in a process of its own; see :func:`costlib.measure.device.start_device`.

    ``set_up``, which is pickled, is called in that process to register functions.
    """
    with _workers_start_fast():
        return tvm.rpc.Server(
            host="0.0.0.0",
            port=_FIRST_PORT,
            port_end=_LAST_PORT,
            tracker_addr=tracker,
            key=key,
            custom_addr=address,
            silent=True,
            server_init_callback=functools.partial(_set_up, set_up),
        )


@contextlib.contextmanager
def _workers_start_fast() -> Iterator[None]:
    """Let the processes that TVM starts meanwhile import it as we do, without torch."""

    def popen(command: list[str], **settings: Any) -> Any:
        python, _, module, *arguments = command
        code = _RUN_MODULE.format(module)
        return subprocess.Popen([python, "-c", code, *arguments], **settings)

    popen_pool.subprocess = SimpleNamespace(**vars(subprocess) | {"Popen": popen})
    try:
        yield
    finally:
        popen_pool.subprocess = subprocess


def _set_up(further: Callable[[], None]) -> None:
    """Let the server outlive sessions that break off: TVM's stops listening after one."""
    serve = server._serving

    def serving(connection: Any, *arguments: Any) -> None:
        folder = Path.cwd()
        try:
            serve(connection, *arguments)
        except RuntimeError:
            connection.close()
            os.chdir(folder)

    server._serving = serving
    server.logger.setLevel(logging.ERROR)
    further()


def offer(name: str, function: Callable[[str], str]) -> None:
    """Let sessions of this server call a function by name."""
    register_global_func(name, function, override=True)


def free_devices(tracker: tuple[str, int], key: str) -> int:
    """Return how many devices with this key wait for a session."""
    queues = tvm.rpc.connect_tracker(*tracker).summary()["queue_info"]
    return int(queues.get(key, {}).get("free", 0))


def request(tracker: tuple[str, int], key: str) -> Any:
    """Return a session on a free device; waits for one."""
    return tvm.rpc.connect_tracker(*tracker).request(key, max_retry=1)
