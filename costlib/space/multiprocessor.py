"""What a multiprocessor of an NVIDIA GPU holds, by its architecture. Knows nothing of TVM."""

from __future__ import annotations

import re
from dataclasses import dataclass

MOST_REGISTERS = 255
"""Of 32 bits that one thread may have."""

REGISTERS = 65536
WARP = 32

_RESERVED_BYTES = 1 << 10
"""Shared memory that each block takes beside its own, from architecture 8.0 on."""

_BLOCKS = {"70": 32, "75": 16, "80": 32, "86": 16, "87": 16, "89": 24, "90": 32}
_THREADS = {"75": 1024, "86": 1536, "87": 1536, "89": 1536, "120": 1536}
_SHARED_KIB = {"70": 96, "75": 64, "80": 164, "86": 100, "87": 164, "89": 100, "120": 100}
"""From the table of compute capabilities in NVIDIA's CUDA C++ Programming Guide."""


@dataclass(frozen=True)
class Multiprocessor:
    """What there is for the blocks that run at once.

    Attributes
    ----------
    threads, blocks
        How many at most.
    shared_bytes, reserved_bytes
        Shared memory of all blocks, and what each takes beside its own.
    """

    threads: int
    blocks: int
    shared_bytes: int
    reserved_bytes: int

    @classmethod
    def of_arch(cls, arch: str) -> Multiprocessor:
        """Look up an architecture such as ``"sm_90"``; one that is not known is like that."""
        number = re.sub(r"\D", "", arch)
        return cls(
            threads=_THREADS.get(number, 2048),
            blocks=_BLOCKS.get(number, 32),
            shared_bytes=_SHARED_KIB.get(number, 228) << 10,
            reserved_bytes=_RESERVED_BYTES if int(number or 90) >= 80 else 0,
        )

    def fitting(self, threads: int, shared_bytes: float, registers: float) -> int:
        """Return how many blocks of a kernel run at once; 0 if not even one fits.

        Parameters
        ----------
        threads, shared_bytes
            Of a block.
        registers
            Of a thread.
        """
        warps = -(-threads // WARP)
        by_shared = self.shared_bytes // max(shared_bytes + self.reserved_bytes, 1)
        by_registers = REGISTERS // (warps * WARP * max(registers, 1))
        return int(min(self.blocks, self.threads // (warps * WARP), by_shared, by_registers))
