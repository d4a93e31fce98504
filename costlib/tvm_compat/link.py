"""Link object files to a shared library, in a tenth of the time of a full compiler driver."""

from __future__ import annotations

import shutil
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from costlib.errors import EnvironmentMismatchError


def link_shared(output: str | Path, objects: Sequence[str | Path]) -> None:
    """Link ``objects`` to the shared library ``output``.

    TVM's generated code needs no start-up files and no libraries but the C and maths ones,
    which the process that loads it has, so the bare linker will do; the compiler is used
    where there is no ``ld``.

    Raises
    ------
    EnvironmentMismatchError
        Neither a linker nor a compiler is installed.
    RuntimeError
        The linker does not take them.
    """
    linker = shutil.which("ld") or shutil.which("cc") or shutil.which("gcc")
    if linker is None:
        raise EnvironmentMismatchError("no linker found; install binutils or gcc")
    command = [linker, "-shared", "-o", str(output), *map(str, objects)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        words = "no message" if done.returncode > 0 else signal.Signals(-done.returncode).name
        reason = (done.stderr.strip().splitlines() or [words])[-1]
        raise RuntimeError(f"linking failed: {reason}")


def export_network(module: Any, path: Path, scratch: Path) -> None:
    """Write a compiled Relax module as a shared library, which takes a whole compiler to link.

    Parts of it are written to ``scratch``.

    Raises
    ------
    EnvironmentMismatchError
        No compiler is installed.
    RuntimeError
        The compiler does not link it.
    """
    from tvm.support import cc

    if cc.get_cc() is None:
        raise EnvironmentMismatchError("no C++ compiler found; install g++ or clang")
    module.export_library(str(path), workspace_dir=str(scratch))


def is_linked(path: Path) -> bool:
    """Whether an ELF file is a library, not an object that has yet to become one."""
    with path.open("rb") as file:
        header = file.read(18)
    return header[:4] != b"\x7fELF" or header[16:18] not in (b"\x01\x00", b"\x00\x01")
