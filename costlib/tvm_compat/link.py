"""Link object files to a shared library, in a tenth of the time of a full compiler driver."""

from __future__ import annotations

import functools
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
    _link([linker, "-shared", "-o", str(output), *map(str, objects)])


def _link(command: Sequence[str]) -> None:
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        words = "no message" if done.returncode > 0 else signal.Signals(-done.returncode).name
        reason = (done.stderr.strip().splitlines() or [words])[-1]
        raise RuntimeError(f"linking failed: {reason}")


def export_network(
    module: Any, path: Path, scratch: Path, triple: str = "", addons: Sequence[str] = ()
) -> None:
    """Write a compiled Relax module as a shared library, which takes a whole compiler to link.

    One of object files, as ``path`` with the suffix ``.tar``, takes none: TVM links it where it is
    loaded.

    Parameters
    ----------
    module
        What ``tvm.compile`` returned.
    path
        Where to.
    scratch
        A folder for parts of it.
    triple
        What machine code it is, as LLVM names it; this machine's if not given.
    addons
        Object files that are linked with it.

    Raises
    ------
    EnvironmentMismatchError
        No compiler is installed, or no linker for that machine code.
    RuntimeError
        The compiler does not link it.
    """
    from tvm.support import cc

    if path.suffix == ".tar":
        finish = None
    elif is_foreign(triple):
        linker = cross_tool("ld", triple)
        if linker is None:
            raise EnvironmentMismatchError(how_to_cross_link(triple))
        finish = functools.partial(_cross_linked, linker)
    elif cc.get_cc() is None:
        raise EnvironmentMismatchError("no C++ compiler found; install g++ or clang")
    else:
        finish = None
    module.export_library(
        str(path), fcompile=finish, addons=list(addons), workspace_dir=str(scratch)
    )


def cross_tool(name: str, triple: str) -> str | None:
    """Find a tool of binutils or GCC for another processor; ``None`` if it is not installed."""
    return shutil.which(f"{triple.partition('-')[0]}-linux-gnu-{name}")


def how_to_cross_link(triple: str) -> str:
    """Say in a line how to get a linker for the machine code that a triple names."""
    machine = triple.partition("-")[0]
    return (
        f"no linker for {machine} found; install it: apt-get install binutils-{machine}-linux-gnu"
    )


def include_paths() -> list[str]:
    """Return where the headers of TVM's C interface lie."""
    from tvm.libinfo import find_include_path
    from tvm_ffi import libinfo

    paths = (find_include_path, libinfo.find_include_path, libinfo.find_dlpack_include_path)
    return list(dict.fromkeys(str(find()) for find in paths))


def _cross_linked(linker: str, output: str, objects: Sequence[str], **_: Any) -> None:
    """Link as :func:`link_shared` does: generated code needs nothing but the libraries of C."""
    _link([linker, "-shared", "-o", output, *objects])


def is_linked(path: Path) -> bool:
    """Whether an ELF file is a library, not an object that has yet to become one."""
    with path.open("rb") as file:
        header = file.read(18)
    return header[:4] != b"\x7fELF" or header[16:18] not in (b"\x01\x00", b"\x00\x01")


def is_foreign(triple: str) -> bool:
    """Whether machine code of an LLVM triple is for another kind of processor than this one.

    No triple stands for this machine's.
    """
    from costlib.tvm_compat import tvm

    ours = str(tvm.target.codegen.llvm_get_system_triple())
    return bool(triple) and triple.partition("-")[0] != ours.partition("-")[0]
