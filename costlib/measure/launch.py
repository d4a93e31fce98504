"""Whether a compiled GPU program is worth being run, by what its kernels take of the device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from costlib.space.multiprocessor import MOST_REGISTERS, REGISTERS, WARP
from costlib.tvm_compat.cubin import CompiledKernel

_MOST_LOCAL_BYTES = 2 * 4 * MOST_REGISTERS
"""What a thread may keep in memory: twice what its registers hold. Where it is more, a kernel
waits for that memory most of the time."""

_STEP = 8
"""Registers are handed out by so many."""


def why_not_run(kernels: Sequence[CompiledKernel], target: Mapping[str, Any]) -> str | None:
    """Say in a line why a program is not to be run; ``None`` if it is.

    Parameters
    ----------
    kernels
        Those of the program; none if that is not known, or it is for a CPU.
    target
        The target as a dictionary: it has the device's limits.
    """
    most = int(target.get("registers_per_block", REGISTERS))
    for kernel in kernels:
        registers = _up_to(kernel.registers, _STEP) * _up_to(kernel.threads, WARP)
        if registers > most:
            return (
                f"{kernel.name} cannot be launched: {kernel.threads} threads take {registers} "
                f"registers, and a block may have {most}"
            )
        if kernel.local_bytes > _MOST_LOCAL_BYTES:
            return (
                f"{kernel.name} spills: each thread keeps {kernel.local_bytes} bytes in memory, "
                f"twice what registers hold is {_MOST_LOCAL_BYTES}"
            )
    return None


def _up_to(value: int, step: int) -> int:
    return -(-value // step) * step
