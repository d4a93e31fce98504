"""What the kernels of a scheduled GPU program ask of the device, before anything is compiled.

TVM's passes shrink each buffer to what is used of it; what they leave is what is allocated.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from costlib.space.multiprocessor import MOST_REGISTERS, REGISTERS, WARP
from costlib.tvm_compat import nodes, tvm

_VIRTUAL = "vthread"
_PIPELINE = "software_pipeline_stage"

_MOST_SPILLED = 4
"""Times the registers that a thread may have, which its arrays may take: beyond that nearly
all of them lie in memory, and programs take minutes to compile."""

_MOST_LOCAL_BYTES = 512 << 10
"""Local memory of a thread; more does not launch."""


@dataclass(frozen=True)
class Kernel:
    """One launch.

    Attributes
    ----------
    threads, blocks
        Threads of a block, and blocks, by their tag such as ``"threadIdx.x"``.
    virtual_threads
        Threads that one thread stands for; its arrays are there for each of them.
    shared_bytes
        Shared memory of a block.
    local_bytes
        Arrays of a thread, in registers if they fit; its share of a warp's fragments among them.
    on_tensor_cores
        Whether there are such fragments.
    """

    extents: Mapping[str, int] = field(default_factory=dict)
    virtual_threads: int = 1
    shared_bytes: int = 0
    local_bytes: int = 0
    on_tensor_cores: bool = False

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return self._product("threadIdx")

    @property
    def blocks(self) -> int:
        """Blocks of the launch."""
        return self._product("blockIdx")

    def _product(self, kind: str) -> int:
        return math.prod(n for tag, n in self.extents.items() if tag.startswith(kind))


def kernels(mod: Any) -> list[Kernel]:
    """Return the kernels of a scheduled module's ``main``, in the order they are launched."""
    return list(_kernels(_compacted()(mod)["main"].body))


def why_not_launched(mod: Any, target: Mapping[str, Any]) -> str | None:
    """Say in a line why a device cannot launch a program; ``None`` if it can.

    Parameters
    ----------
    mod
        A scheduled module.
    target
        The target as a dictionary: it has the device's limits.
    """
    limits: tuple[tuple[str, int | None, Callable[[Kernel], int]], ...] = (
        ("threads a block", target.get("max_threads_per_block"), lambda k: k.threads),
        (
            "bytes of shared memory a block",
            target.get("max_shared_memory_per_block"),
            lambda k: k.shared_bytes,
        ),
        ("bytes of local memory a thread", _most_local_bytes(target), lambda k: k.local_bytes),
    )
    for kernel in kernels(mod):
        for what, most, asked in limits:
            if most is not None and asked(kernel) > most:
                return f"it takes {asked(kernel)} {what}, and may take {most}"
    return None


def _most_local_bytes(target: Mapping[str, Any]) -> int:
    registers = min(MOST_REGISTERS, int(target.get("registers_per_block", REGISTERS)))
    return min(_MOST_SPILLED * 4 * registers, _MOST_LOCAL_BYTES)


@functools.cache
def _compacted() -> Any:
    passes = tvm.s_tir.transform
    return tvm.ir.transform.Sequential(
        [
            passes.LowerCrossThreadReduction(),
            passes.LowerInitBlock(),
            passes.PlanAndUpdateBufferAllocationLocation(),
            passes.ConvertBlocksToOpaque(),
            passes.UnifyThreadBinding(),
            passes.CompactBufferAllocation(),
        ]
    )


def _kernels(node: Any) -> Iterator[Kernel]:
    """Find the outermost loops that are bound to blocks or threads."""
    if isinstance(node, nodes.For):
        if _tag(node):
            yield _inside(node, Kernel())
        else:
            yield from _kernels(node.body)
    elif isinstance(node, nodes.SeqStmt):
        for part in node.seq:
            yield from _kernels(part)
    elif isinstance(node, nodes.SBlockRealize):
        yield from _kernels(node.block.body)
    elif isinstance(node, nodes.IfThenElse):
        yield from _kernels(node.then_case)


def _inside(node: Any, found: Kernel, copies: int = 1) -> Kernel:
    """Add up what a statement asks for; ``copies`` of its shared buffers are there at once."""
    if isinstance(node, nodes.For):
        tag, extent = _tag(node), _size(node.extent)
        if tag.startswith(_VIRTUAL):
            found = replace(found, virtual_threads=found.virtual_threads * extent)
        elif tag:
            known = {**found.extents, tag: max(extent, found.extents.get(tag, 1))}
            found = replace(found, extents=known)
        if node.annotations and _PIPELINE in node.annotations:
            stages = [int(stage) for stage in node.annotations[_PIPELINE]]
            copies *= 1 + max(stages) - min(stages)
        return _inside(node.body, found, copies)
    if isinstance(node, nodes.SeqStmt):
        for part in node.seq:
            found = _inside(part, found, copies)
        return found
    if isinstance(node, nodes.SBlockRealize):
        for buffer in node.block.alloc_buffers:
            found = _with_buffer(found, buffer, copies)
        return _inside(node.block.body, found, copies)
    if isinstance(node, nodes.IfThenElse):
        return _inside(node.then_case, found, copies)
    return found


def _with_buffer(found: Kernel, buffer: Any, copies: int) -> Kernel:
    scope = str(buffer.scope())
    bits = int(re.sub(r"\D", "", str(buffer.dtype)) or 8)
    size = math.prod(_size(extent) for extent in buffer.shape) * max(bits // 8, 1)
    if scope.startswith("shared"):
        return replace(found, shared_bytes=found.shared_bytes + copies * size)
    if scope.startswith("local"):
        size *= found.virtual_threads
        return replace(found, local_bytes=found.local_bytes + size)
    if scope.startswith(("wmma", "m16n8k8")):
        local_bytes = found.local_bytes + -(-size // WARP)
        return replace(found, local_bytes=local_bytes, on_tensor_cores=True)
    return found


def _tag(loop: Any) -> str:
    binding = loop.thread_binding
    return "" if binding is None else str(binding.thread_tag)


def _size(extent: Any) -> int:
    return int(extent) if isinstance(extent, nodes.IntImm) else 1
