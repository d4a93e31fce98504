"""oneDNN, a library whose products programs may call: where it is, and what is linked for it.

A program calls :data:`MATMUL`, a C function in ``onednn.c`` that is compiled and linked into it.
That looks for the library when it is first called.
"""

from __future__ import annotations

import ctypes.util
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from costlib.errors import EnvironmentMismatchError, InputError

MATMUL = "costlib_onednn_matmul"
"""The function: of three addresses, three extents and three strides; it returns 0."""

ENVIRONMENT = "COSTLIB_ONEDNN"
"""The variable that may say where the library is."""

NEEDED = "libdnnl.so.3"
"""What a network that calls it needs where it runs."""

_CALLS = "costlib.onednn"
"""An attribute of functions that call it."""


def find_onednn() -> str:
    """Return the library's path, or a name that the system finds it by.

    Raises
    ------
    InputError
        It is not installed.
    """
    places = [Path(sys.prefix) / "lib" / NEEDED]
    if ENVIRONMENT in os.environ:
        places = [Path(os.environ[ENVIRONMENT])]
    for place in places:
        if place.is_file():
            return str(place)
    if ENVIRONMENT not in os.environ and ctypes.util.find_library("dnnl") == NEEDED:
        return NEEDED
    raise InputError(
        f'oneDNN 3 is not installed: pip install "costlib[vendor]", or let {ENVIRONMENT} '
        f"say where {NEEDED} is"
    )


def calling_onednn(function: Any) -> Any:
    """Note of a function that it calls oneDNN."""
    return function.with_attr(_CALLS, 1)


def calls_onednn(mod: Any) -> bool:
    """Whether a function of a module calls it."""
    return any(f.attrs is not None and _CALLS in f.attrs for f in mod.functions.values())


def compiled_calls(folder: Path) -> str:
    """Compile :data:`MATMUL` to an object file in a folder.

    Raises
    ------
    EnvironmentMismatchError
        No compiler is installed, or it does not take it.
    """
    from tvm.support import cc

    compiler = cc.get_cc()
    if compiler is None:
        raise EnvironmentMismatchError("no C compiler found; install gcc or clang")
    file = folder / "onednn.o"
    source = Path(__file__).with_suffix(".c")
    command = [compiler, "-x", "c", "-O2", "-fPIC", f'-DONEDNN="{find_onednn()}"', "-c"]
    done = subprocess.run(
        [*command, str(source), "-o", str(file)], check=False, capture_output=True, text=True
    )
    if done.returncode:
        said = (done.stderr.strip().splitlines() or ["no message"])[0]
        raise EnvironmentMismatchError(f"{compiler} does not compile {source.name}: {said}")
    return str(file)
