"""Start Python by forking a process that has imported TVM and costlib, which takes seconds.

A process asks its own fork server, which is forked before there are threads. The new process is
made a child of the one that asks: it is waited for, killed and sent signals like any other.
"""

from __future__ import annotations

import ctypes
import fcntl
import gc
import inspect
import json
import os
import runpy
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

_PR_SET_CHILD_SUBREAPER = 36
_ABOVE_ALL = 500
"""File descriptors from here on are nobody's."""

_WHAT_STARTS_OTHERS = ("costlib", "ipykernel_launcher")

_lock = threading.Lock()
_server: list[socket.socket] = []
"""This process's own, once it has one."""


class Popen(subprocess.Popen[Any]):
    """Takes ``[sys.executable, "-m" or "-c", ...]``; anything else starts as it always does."""

    def _execute_child(self, *settings: Any) -> None:
        usual = super()._execute_child  # type: ignore[misc]
        asked = SimpleNamespace(**inspect.signature(usual).bind(*settings).arguments)
        words = [os.fspath(word) for word in asked.args]
        if words[0] != sys.executable or words[1] not in ("-m", "-c") or asked.preexec_fn:
            usual(*settings)
            return
        ends = (asked.p2cread, asked.c2pwrite, asked.errwrite)
        files = {number: number if end == -1 else end for number, end in enumerate(ends)}
        files |= {number: number for number in asked.pass_fds}
        request = {
            "words": words[1:],
            "files": list(files),
            "folder": str(asked.cwd or Path.cwd()),
            "environment": dict(os.environ if asked.env is None else asked.env),
            "in_new_session": asked.start_new_session,
        }
        self.pid = _ask(request, list(files.values()))
        self._child_created = True
        pipes = ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")
        self._close_pipe_fds(*(getattr(asked, pipe) for pipe in pipes))  # type: ignore[attr-defined]


def run(words: list[str]) -> subprocess.CompletedProcess[str]:
    """Do what :func:`subprocess.run` does, and keep what is printed."""
    pipe = subprocess.PIPE
    with Popen(words, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, text=True) as process:
        out, err = process.communicate()
    return subprocess.CompletedProcess(words, process.returncode, out, err)


def _ask(request: dict[str, Any], files: list[int]) -> int:
    """Return the process id of a new child of this process."""
    text = json.dumps(request).encode()
    with _lock:
        if not _server:
            _server.append(_start_server())
        _adopt(True)
        socket.send_fds(_server[0], [len(text).to_bytes(8)], files)
        _server[0].sendall(text)
        pid = int.from_bytes(_server[0].recv(8))
        _adopt(False)
    assert pid, "the fork server is gone"
    return pid


def _adopt(orphans: bool) -> None:
    """Let this process be the new parent of its descendants whose own ends."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, int(orphans))


def _start_server() -> socket.socket:
    ours, theirs = socket.socketpair()
    with theirs:
        subprocess.Popen(
            [sys.executable, __file__, str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            env=os.environ | {"OMP_NUM_THREADS": "1"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
        )
    return ours


def _serve(connection: socket.socket) -> dict[str, Any] | None:
    """Fork for all who ask, until nobody can; return in the new processes, with their request."""
    while True:
        head, files, _, _ = socket.recv_fds(connection, 8, 64)
        if not head:
            return None
        length = int.from_bytes(head)
        text = b""
        while len(text) < length:
            text += connection.recv(length - len(text))
        reader, writer = os.pipe()
        between = os.fork()
        if not between:
            between = os.getpid()
            if os.fork():
                os._exit(0)
            request: dict[str, Any] = json.loads(text)
            if request["in_new_session"]:
                os.setsid()  # Before anybody knows the process: a group may get its signals.
            os.write(writer, os.getpid().to_bytes(8))
            for end in (reader, writer, connection.detach()):
                os.close(end)
            while os.getppid() == between:
                time.sleep(0.001)
            _become(request, files)
            return request
        os.close(writer)
        pid = os.read(reader, 8)
        for end in (reader, *files):
            os.close(end)
        os.waitpid(between, 0)
        connection.sendall(pid)


def _become(request: dict[str, Any], files: list[int]) -> None:
    safe = [fcntl.fcntl(file, fcntl.F_DUPFD, _ABOVE_ALL) for file in files]
    for file in files:
        os.close(file)
    for file, number in zip(safe, request["files"], strict=True):
        os.dup2(file, number)
        os.close(file)
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])


def _live(connection: socket.socket) -> None:
    """Serve; in the new processes, run what they are asked to."""
    request = _serve(connection)
    if request is None:
        os._exit(0)
    kind, program, *arguments = request["words"]
    sys.path[0] = str(Path.cwd())
    sys.argv = [kind, *arguments]
    if kind == "-c" or program in _WHAT_STARTS_OTHERS:
        _fork_server()
    if kind == "-c":
        exec(compile(program, "<string>", "exec"), {"__name__": "__main__"})
    else:
        sys.modules.pop(program, None)
        runpy.run_module(program, run_name="__main__", alter_sys=True)
    sys.exit()


def _fork_server() -> None:
    """Give this process a fork server of its own, while it has no threads."""
    ours, theirs = socket.socketpair()
    if os.fork():
        theirs.close()
        _server.append(ours)
        return
    ours.close()
    null = os.open(os.devnull, os.O_RDWR)
    for number in range(3):
        os.dup2(null, number)
    os.close(null)
    os.setsid()
    _live(theirs)


def _prepare() -> None:
    """Import what takes long and starts no threads but those of allocators, which fork."""
    from quick import in_every_process

    import costlib.cli.app
    import costlib.collecting.planned
    import costlib.tuning.tune  # noqa: F401

    in_every_process(setattr)
    gc.collect()
    gc.freeze()


if __name__ == "__main__":
    sys.modules["forked"] = sys.modules["__main__"]
    _prepare()
    _live(socket.socket(fileno=int(sys.argv[1])))
