"""The fork server: a small single-threaded process that has TVM loaded, and nothing else.

Each job runs in a child forked from it, with a time limit and a memory limit, so that a
program which crashes, hangs or eats memory costs one record. What is certainly a fault of the
machine is told apart (:mod:`costlib.measure.faults`). Forking from the caller
would be faster to write and deadlocks: a process that has used TVM's threads, or a GPU, cannot be
forked safely, and this one never uses them. Builds run on all cores; a run waits until it is alone.

Run as ``python -m costlib.measure.server FD TARGET_JSON``; the file descriptor is a socket on
which jobs come in and outcomes go out, as JSON.
"""

from __future__ import annotations

import ctypes
import gc
import json
import multiprocessing
import os
import resource
import selectors
import signal
import sys
import time
from collections import deque
from collections.abc import Callable
from contextlib import ExitStack
from multiprocessing.connection import Connection
from typing import IO, Annotated, Any

from pydantic import Field, TypeAdapter

from costlib.errors import CostlibError, quoted
from costlib.hardware import make_target
from costlib.measure import jobs
from costlib.measure.canary import Canary, build_canary
from costlib.measure.config import (
    BuildJob,
    CanaryJob,
    CheckJob,
    Job,
    NetworkJob,
    Outcome,
    RunJob,
    Timing,
    TraceJob,
)
from costlib.measure.faults import fault_in, fault_of, is_out_of_memory
from costlib.measure.limits import MemoryLimit
from costlib.processor import allow_tiles
from costlib.scratch import ScratchFolder

_JOB: TypeAdapter[Job] = TypeAdapter(Annotated[Job, Field(discriminator="kind")])
_PR_SET_PDEATHSIG = 1
_MAX_ERROR_CHARS = 300
_TAIL_BYTES = 4096


class _Child:
    """A forked child at work on one job."""

    def __init__(
        self, index: int, job: Job, work: Callable[[Job], Outcome], memory_bytes: int | None
    ) -> None:
        self.index = index
        self.job = job
        self.started = time.monotonic()
        self.timeout_secs = (
            job.config.run_timeout_secs if isinstance(job, RunJob) else job.timeout_secs
        )
        self.deadline = self.started + self.timeout_secs
        self.timed_out = False
        self.output = b""
        with ExitStack() as stack:  # Of what is open already if there are too few descriptors.
            self.stderr = stack.enter_context(os.fdopen(os.memfd_create("stderr"), "w+b"))
            self.pipe, write_end = os.pipe()
            stack.callback(os.close, self.pipe)
            try:
                self.pid = os.fork()
                if self.pid == 0:
                    os.close(self.pipe)
                    os.dup2(self.stderr.fileno(), 2)
                    _run_in_child(job, work, memory_bytes, write_end)
            finally:
                os.close(write_end)
            stack.pop_all()

    def kill(self) -> None:
        self.timed_out = True
        os.kill(self.pid, signal.SIGKILL)

    def reap(self) -> Outcome:
        os.close(self.pipe)
        _, status = os.waitpid(self.pid, 0)
        with self.stderr:
            last_words = _tail(self.stderr)
        elapsed_secs = time.monotonic() - self.started
        if self.timed_out:
            error = f"killed after {self.timeout_secs:g} s"
            return Outcome(error=error, timed_out=True, elapsed_secs=elapsed_secs)
        if not self.output:
            code = os.waitstatus_to_exitcode(status)
            cause = signal.Signals(-code).name if code < 0 else f"exit status {code}"
            error = f"crashed ({cause})"
            return Outcome(error=error, fault=fault_in(last_words), elapsed_secs=elapsed_secs)
        reply = Outcome.model_validate_json(self.output)
        return reply.model_copy(update={"elapsed_secs": elapsed_secs})


def _run_in_child(
    job: Job, work: Callable[[Job], Outcome], memory_bytes: int | None, write_end: int
) -> None:
    """Do the work and leave; never returns to the server's loop."""
    limit = None
    try:
        _die_with_parent()
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if memory_bytes is not None:
            limit = MemoryLimit.of_child(memory_bytes)
            limit.impose()
        outcome = work(job)
    except BaseException as error:
        outcome = _failure(error, memory_bytes, limit)
    try:
        with os.fdopen(write_end, "wb") as pipe:
            pipe.write(outcome.model_dump_json().encode())
    finally:
        os._exit(0)


def _failure(error: BaseException, memory_bytes: int | None, limit: MemoryLimit | None) -> Outcome:
    """Return what an error in a child comes to: a fault of the machine, or of the program."""
    text = f"{type(error).__name__}: {quoted(error)}"
    if isinstance(error, MemoryError):
        known = "" if memory_bytes is None else f" (limit {memory_bytes >> 20} MiB)"
        text = f"out of memory{known}"
    fault = fault_of(error)
    if limit is not None and not limit.is_ours and is_out_of_memory(error):
        fault = (
            f"out of memory: `ulimit -v` allows {limit.bytes >> 20} MiB of address space, less "
            f"than TVM and the {(memory_bytes or 0) >> 20} MiB that a program may take; raise it"
        )
    return Outcome(error=text[:_MAX_ERROR_CHARS], fault=fault)


def _tail(file: IO[bytes]) -> str:
    file.seek(max(0, file.seek(0, os.SEEK_END) - _TAIL_BYTES))
    return file.read().decode(errors="replace")


def caller() -> tuple[Connection, list[str]]:
    """Return the socket and the arguments that the command line of this process names."""
    _die_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _, descriptor, *arguments = sys.argv
    return Connection(int(descriptor)), arguments


def _die_with_parent() -> None:
    """Have this process killed when the one that started it dies."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def in_child(work: Callable[..., None], *arguments: Any) -> None:
    """Call a function in a forked process and wait for it; end if it fails."""
    child = multiprocessing.get_context("fork").Process(target=work, args=arguments)
    child.start()
    child.join()
    if child.exitcode:
        sys.exit(1)


class _Server:
    def __init__(self, connection: Connection, target: dict[str, Any]) -> None:
        self.connection = connection
        self.target = make_target(target)
        allow_tiles(target)
        self.num_workers = len(os.sched_getaffinity(0))
        self.waiting: deque[tuple[int, Job]] = deque()
        self.children: dict[int, _Child] = {}
        self.selector = selectors.DefaultSelector()
        self.canary = self._load_canary(int(target.get("num-cores", self.num_workers)))
        jobs.random_pool()
        gc.collect()
        gc.freeze()  # A child that collects garbage would copy every page it looks at.

    def _load_canary(self, num_cores: int) -> Canary:
        with ScratchFolder() as folder:
            path = folder / "canary.so"
            if self.target.kind.name == "cuda":
                # A process that has compiled for a GPU initialises it when it loads the library.
                in_child(build_canary, path, self.target, num_cores)
            else:
                build_canary(path, self.target, num_cores)
            return Canary(path, self.target, num_cores)

    def serve(self) -> None:
        """Work until the caller closes its end."""
        self.selector.register(self.connection, selectors.EVENT_READ)
        self.connection.send_bytes(b"ready")
        while True:
            self._start_children()
            for key, _ in self.selector.select(self._next_deadline()):
                if key.fileobj is self.connection:
                    try:
                        index, job = json.loads(self.connection.recv_bytes())
                    except (EOFError, ConnectionResetError):
                        return
                    self.waiting.append((index, _JOB.validate_python(job)))
                else:
                    self._read(self.children[key.fd])
            for child in self.children.values():
                if not child.timed_out and time.monotonic() >= child.deadline:
                    child.kill()

    def _start_children(self) -> None:
        while self.waiting and self._may_start(self.waiting[0][1]):
            index, job = self.waiting.popleft()
            try:
                child = _Child(index, job, self._work, self._memory_limit(job))
            except OSError as error:
                text = quoted(error)
                self._reply(index, Outcome(error=text, fault=fault_of(error) or text))
                continue
            self.children[child.pipe] = child
            self.selector.register(child.pipe, selectors.EVENT_READ)

    def _may_start(self, job: Job) -> bool:
        if not isinstance(job, BuildJob):
            return not self.children
        busy_with_runs = any(not isinstance(c.job, BuildJob) for c in self.children.values())
        return not busy_with_runs and len(self.children) < self.num_workers

    def _memory_limit(self, job: Job) -> int | None:
        if not isinstance(job, BuildJob) and not self.canary.is_on_cpu:
            return None  # A GPU's driver reserves address space for all of its memory.
        return job.config.memory_bytes if isinstance(job, RunJob) else job.memory_bytes

    def _next_deadline(self) -> float | None:
        deadlines = [child.deadline for child in self.children.values() if not child.timed_out]
        return max(0.0, min(deadlines) - time.monotonic()) if deadlines else None

    def _read(self, child: _Child) -> None:
        data = os.read(child.pipe, 1 << 16)
        child.output += data
        if not data:
            self.selector.unregister(child.pipe)
            del self.children[child.pipe]
            self._reply(child.index, child.reap())

    def _reply(self, index: int, outcome: Outcome) -> None:
        self.connection.send_bytes(json.dumps([index, outcome.model_dump()]).encode())

    def _work(self, job: Job) -> Outcome:
        """Do a job; called in the child, the only place where a GPU is ever initialised."""
        if isinstance(job, BuildJob):
            return jobs.build(job, self.target)
        if isinstance(job, CheckJob):
            jobs.check(job, self.canary.device)
            return Outcome()
        self.canary.start_device()
        return Outcome(timing=self._timed(job))

    def _timed(self, job: RunJob | NetworkJob | TraceJob | CanaryJob) -> Timing:
        if isinstance(job, CanaryJob):
            return jobs.sample_canary(job, self.canary)
        if isinstance(job, NetworkJob):
            return jobs.run_network(job, self.canary)
        if isinstance(job, TraceJob):
            return jobs.trace_network(job, self.canary)
        return jobs.run(job, self.canary)


def main() -> None:
    """Serve on the socket named on the command line."""
    connection, (target,) = caller()
    try:
        server = _Server(connection, json.loads(target))
    except CostlibError as error:
        sys.exit(str(error))
    server.serve()


if __name__ == "__main__":
    main()
