"""Whether the NVIDIA driver of this machine is there, starts, and is new enough for TVM."""

from __future__ import annotations

import ctypes
import re

from costlib.tvm_compat.cuda import runtime_library

_DRIVER = "libcuda.so.1"
_NO_DEVICE = 100


def driver_problem() -> str | None:
    """Say in a line what is wrong with the driver; ``None`` if nothing is."""
    try:
        driver = ctypes.CDLL(_DRIVER)
    except OSError:
        return f"no NVIDIA driver is installed ({_DRIVER} is missing)"
    version = ctypes.c_int()
    code = driver.cuDriverGetVersion(ctypes.byref(version))
    needed = needed_cuda()
    if code == 0 and needed is not None and version.value // 1000 < needed:
        known = f"{version.value // 1000}.{version.value % 1000 // 10}"
        return f"the NVIDIA driver is for CUDA {known}, and TVM needs {needed}.0: update the driver"
    code = driver.cuInit(0)
    if code == _NO_DEVICE:
        return "the NVIDIA driver finds no GPU"
    return f"the NVIDIA driver does not start (error {code})" if code else None


def needed_cuda() -> int | None:
    """Return the major version of CUDA that TVM's runtime was built with, if it says so."""
    library = runtime_library()
    found = re.search(rb"libcudart\.so\.(\d+)", library.read_bytes()) if library.exists() else None
    return int(found[1]) if found else None
