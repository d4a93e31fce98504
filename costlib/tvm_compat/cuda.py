"""Compile CUDA code with what is installed, on machines with a GPU and without.

TVM turns a scheduled program into CUDA source and leaves the rest to NVRTC or nvcc. Where it has
no CUDA runtime, it packs the source into the library as it is, to be compiled by whoever loads
it; :func:`check_compiles` finds out at once whether that will work.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib.util
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from costlib.errors import EnvironmentMismatchError

_MODE = "TVM_CUDA_COMPILE_MODE"
_INSTALL_HINT = (
    "pip install cuda-bindings nvidia-cuda-nvrtc nvidia-cuda-runtime nvidia-cuda-cccl "
    "(all of one CUDA version)"
)


def find_compiler() -> str:
    """Make TVM use the CUDA compiler that is installed.

    nvcc comes first, as it brings its headers along. ``TVM_CUDA_COMPILE_MODE`` overrules this.

    Returns
    -------
    str
        ``"nvcc"`` or ``"nvrtc"``.

    Raises
    ------
    EnvironmentMismatchError
        Neither is installed.
    """
    if _MODE not in os.environ:
        os.environ[_MODE] = _installed_compiler()
    return os.environ[_MODE]


def has_compiler() -> bool:
    """Whether a CUDA compiler is installed."""
    try:
        find_compiler()
    except EnvironmentMismatchError:
        return False
    return True


def _installed_compiler() -> str:
    if shutil.which("nvcc") and shutil.which("gcc"):
        return "nvcc"
    if not _has_nvrtc():
        raise EnvironmentMismatchError(
            f"no CUDA compiler found; install the CUDA toolkit (nvcc) and gcc, or: {_INSTALL_HINT}"
        )
    headers = _packaged_headers()
    if headers is not None:
        os.environ.setdefault("CUDA_PATH", str(headers.parent))
        os.environ.setdefault("TVM_CUDA_NVRTC_EXTRA_OPTS", f"-I{headers / 'cccl'}")
    return "nvrtc"


def _has_nvrtc() -> bool:
    try:
        from cuda.bindings import nvrtc  # type: ignore[import-not-found, unused-ignore]

        nvrtc.nvrtcVersion()
    except Exception:  # The bindings and the library they load each fail in their own way.
        return False
    return True


def _packaged_headers() -> Path | None:
    """Return the headers of the package nvidia-cuda-runtime, if that is installed."""
    package = importlib.util.find_spec("nvidia")
    locations = package.submodule_search_locations if package is not None else None
    found = (p for place in locations or [] for p in Path(place).glob("*/include/cuda_runtime.h"))
    return next((path.parent for path in found), None)


def why_no_runtime() -> str | None:
    """Say what keeps TVM's CUDA runtime from loading; ``None`` if it is loaded."""
    from costlib.tvm_compat import tvm

    if tvm.get_global_func("device_api.cuda", allow_missing=True) is not None:
        return None
    library = runtime_library()
    try:
        ctypes.CDLL(str(library))
    except OSError as error:
        return str(error)
    return f"{library} does not register itself"


def runtime_library() -> Path:
    """Return where TVM's CUDA runtime lies, if it has one."""
    from costlib.tvm_compat import tvm

    return Path(tvm.__path__[0]) / "lib" / "libtvm_runtime_cuda.so"


@contextlib.contextmanager
def binaries_kept() -> Iterator[list[bytes]]:
    """Keep each cubin that TVM or :func:`check_compiles` has made meanwhile."""
    from costlib.tvm_compat import tvm

    nvcc, found = tvm.support.nvcc, list[bytes]()
    stock = nvcc.compile_cuda

    def compile_cuda(code: str, **settings: Any) -> Any:
        binary = stock(code, **(settings | {"target_format": "cubin"}))
        found.append(bytes(binary))
        return binary

    nvcc.compile_cuda = compile_cuda
    try:
        yield found
    finally:
        nvcc.compile_cuda = stock


def check_compiles(library: Any, target: Any) -> None:
    """Compile the CUDA source that a built module and its parts hold, if TVM has not done so.

    Raises
    ------
    RuntimeError
        The compiler refuses the source.
    """
    from costlib.tvm_compat import tvm

    if why_no_runtime() is None:
        return
    compiler = find_compiler()
    with target:
        for module in _modules(library):
            if module.kind == "cuda":
                tvm.support.nvcc.compile_cuda(
                    module.inspect_source("cuda"), target_format="cubin", compiler=compiler
                )


def _modules(library: Any) -> Iterator[Any]:
    for module in library.imports:
        yield module
        yield from _modules(module)
