"""Work done in a child process: TVM or PyTorch may crash, hang or eat memory over a file."""

from __future__ import annotations

import contextlib
import faulthandler
import gc
import json
import os
import resource
import select
import signal
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from costlib.errors import CostlibError, UnsupportedModelError, quoted
from costlib.measure.limits import limit_to

_OTHERS_READ = {".onnx", ".pt2"}
"""Files that PyTorch and ONNX read; TVM's are read by a child wherever that is done."""

_IMPORT_SECS = 1800

_NO_MEMORY = 3
"""Exit code of a child that could not have more."""

_REFUSED = 4
"""Exit code of a child whose work raised an error of costlib, which it hands over."""

_MEMORY_SHARE = 0.9
"""Of the machine's memory, for what the child maps."""


def survive_import(sources: Sequence[str]) -> None:
    """Let a child import files first, so that one that TVM or PyTorch dies of costs a line.

    Raises
    ------
    UnsupportedModelError
        A file killed the child; what merely cannot be imported is left to the caller.
    """
    for source in sources:
        if Path(source).suffix.lower() in _OTHERS_READ and Path(source).is_file():
            text, death = in_child(partial(_imported, source), _IMPORT_SECS)
            if text is None:
                raise UnsupportedModelError(f"{source}: {death}")


def _imported(source: str) -> str:
    from costlib.workloads import load_network, prepare_network

    with contextlib.suppress(CostlibError):
        prepare_network(load_network(source))
    return ""


def in_child(work: Callable[[], str], most_secs: float) -> tuple[str | None, str]:
    """Fork, let the child do the work, and return what it returns.

    Parameters
    ----------
    work
        Returns text. It imports what it needs: this process should have no threads yet.
    most_secs
        It is killed after so many seconds.

    Returns
    -------
    text, death
        What ``work`` returned, or ``None`` and how the child died.

    Raises
    ------
    CostlibError
        ``work`` raised one: this has its message and its exit code.
    """
    reader, writer = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        _be_the_child(work, writer)
    os.close(writer)
    text, in_time = _read(reader, time.monotonic() + most_secs)
    if not in_time:
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    if not in_time:
        return None, f"took more than {most_secs:.0f} s"
    if os.WIFSIGNALED(status):
        name = signal.Signals(os.WTERMSIG(status)).name
        return None, f"TVM or PyTorch crashed over it ({name})"
    if os.WEXITSTATUS(status) == _NO_MEMORY:
        return None, "it takes more memory than this machine has"
    if os.WEXITSTATUS(status) == _REFUSED:
        refusal = CostlibError()
        refusal.args, refusal.exit_code = json.loads(text)
        raise refusal
    if os.WEXITSTATUS(status):
        return None, text.decode() or "it ended the process that looked at it"
    return text.decode(), ""


def _be_the_child(work: Callable[[], str], writer: int) -> None:
    code = 1
    try:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        memory = int(_MEMORY_SHARE * os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
        limit_to(resource.RLIMIT_DATA, memory)
        faulthandler.disable()
        gc.disable()  # It would look at all of PyTorch again and again; the child ends soon.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # TVM prints where it crashed.
        _write(writer, work())
        code = 0
    except KeyboardInterrupt:
        code = 130
    except MemoryError:
        code = _NO_MEMORY
    except CostlibError as error:
        _write(writer, json.dumps([[str(error)], error.exit_code]))
        code = _REFUSED
    except Exception as error:
        _write(writer, f"{type(error).__name__}: {quoted(error)}")
    finally:
        os._exit(code)


def _write(writer: int, text: str) -> None:
    content = text.encode(errors="replace")
    while content:
        content = content[os.write(writer, content) :]


def _read(reader: int, end: float) -> tuple[bytes, bool]:
    """Read until the other side closes; the second value is whether it did so in time."""
    text = b""
    with os.fdopen(reader, "rb", buffering=0) as pipe:
        while (left := end - time.monotonic()) > 0:
            ready, _, _ = select.select([pipe], [], [], left)
            if ready:
                part = pipe.read(1 << 16)
                if not part:
                    return text, True
                text += part
    return text, False
