"""The TVM versions this release of costlib was tested with."""

from __future__ import annotations

import re
from importlib import metadata

from costlib.errors import EnvironmentMismatchError

TVM_SERIES = (0, 27)
FFI_BELOW = (0, 1, 15)
"""``apache-tvm-ffi`` from 0.1.15 on crashes in ``tvm.ir.save_json`` with TVM 0.27."""

INSTALL_HINT = 'pip install "apache-tvm==0.27.0.post1" "apache-tvm-ffi<0.1.15"'


def check_versions() -> None:
    """Raise unless the installed TVM and tvm-ffi are the tested ones.

    Raises
    ------
    EnvironmentMismatchError
        One of the two is missing or of another version; the message holds the command
        that mends it.
    """
    tvm_version = _installed("apache-tvm")
    if _numbers(tvm_version)[: len(TVM_SERIES)] != TVM_SERIES:
        raise EnvironmentMismatchError(
            f"apache-tvm {tvm_version} is installed, but costlib needs "
            f"{'.'.join(map(str, TVM_SERIES))}; run: {INSTALL_HINT}"
        )
    ffi_version = _installed("apache-tvm-ffi")
    if _numbers(ffi_version) >= FFI_BELOW:
        raise EnvironmentMismatchError(
            f"apache-tvm-ffi {ffi_version} is installed, with which TVM "
            f"{tvm_version} crashes; run: {INSTALL_HINT}"
        )


def _installed(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        raise EnvironmentMismatchError(f"{package} is not installed; run: {INSTALL_HINT}") from None


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version)[:3])
