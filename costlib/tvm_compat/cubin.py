"""What a compiled CUDA kernel takes of the device, read from its binary. Knows nothing of TVM.

A cubin is an ELF file. The section ``.nv.info`` has a value for each kernel and attribute, and
``.nv.info.<kernel>`` those of one kernel: a byte for the form, one for the attribute, two for the
size, then the value. The numbers of the attributes are those that cuobjdump shows.
"""

from __future__ import annotations

import io
import math
import struct
from collections.abc import Iterator

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile

from costlib.frozen import FrozenStrict

_INFO, _SHARED = ".nv.info", ".nv.shared."
_SIZED = 4
"""The form of a value that has a size, and follows."""

_FRAME_SIZE, _REGISTERS, _MOST_THREADS = 0x11, 0x2F, 0x05


class CompiledKernel(FrozenStrict):
    """What one launch takes.

    Attributes
    ----------
    name
        Of the kernel.
    registers
        32-bit registers of a thread.
    local_bytes
        What a thread keeps in memory: what was spilled, and arrays that are indexed at run time.
    shared_bytes
        Static shared memory of a block.
    threads
        Threads of a block that it was compiled for; 0 if any number.
    """

    name: str
    registers: int
    local_bytes: int
    shared_bytes: int
    threads: int


def compiled_kernels(binary: bytes) -> list[CompiledKernel]:
    """Read the kernels of a cubin.

    Raises
    ------
    ValueError
        It is none.
    """
    try:
        return list(_kernels(ELFFile(io.BytesIO(binary))))
    except (ELFError, struct.error, AttributeError) as error:
        raise ValueError(f"this is no cubin: {error}") from None


def _kernels(file: ELFFile) -> Iterator[CompiledKernel]:
    symbols = file.get_section_by_name(".symtab")
    of_symbol: dict[int, dict[int, int]] = {}
    for attribute, value in _attributes(file, _INFO):
        if attribute in (_FRAME_SIZE, _REGISTERS):
            symbol, number = struct.unpack_from("<II", value)
            of_symbol.setdefault(symbol, {})[attribute] = number
    for symbol, known in of_symbol.items():
        name = symbols.get_symbol(symbol).name
        own = dict(_attributes(file, f"{_INFO}.{name}"))
        if _REGISTERS not in known or not own:  # A function that kernels call.
            continue
        threads = struct.unpack_from("<III", own[_MOST_THREADS]) if _MOST_THREADS in own else (0,)
        shared = file.get_section_by_name(_SHARED + name)
        yield CompiledKernel(
            name=name,
            registers=known[_REGISTERS],
            local_bytes=known.get(_FRAME_SIZE, 0),
            shared_bytes=0 if shared is None else shared["sh_size"],
            threads=math.prod(threads),
        )


def _attributes(file: ELFFile, section: str) -> Iterator[tuple[int, bytes]]:
    found = file.get_section_by_name(section)
    data = b"" if found is None else found.data()
    place = 0
    while place < len(data):
        form, attribute, size = struct.unpack_from("<BBH", data, place)
        place += 4
        if form == _SIZED:
            yield attribute, data[place : place + size]
            place += size
