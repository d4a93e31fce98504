"""Vectors of odd lengths that are loaded as whole ones.

Design spaces split loops without a rest, so that where a dimension is 15 or 1500 long the best
vector has 15 or 60 numbers, which do not fill whole registers. LLVM computes with whole ones all
the same, but loads the last of them as 8, 4, 2 and 1 numbers and puts these together, which takes
longer than to compute. With AVX-512 a load can be told which numbers it is to leave out.
"""

from __future__ import annotations

from typing import Any

import tvm
from tvm import tirx
from tvm.ir.expr import TensorLoad
from tvm.tirx import ForKind

from costlib.tvm_compat.rewriting import Rewriter, nodes_in, stores_in

_VECTOR_BITS = 512
_FEATURE = "avx512f"
_MARK = "costlib.odd_vectors"


def marked(function: Any) -> Any:
    """Mark a function of plain loops, some of which are to become odd vectors.

    What they are loaded by is known once they are vectors, when there is much more to look through.
    """
    if not tvm.target.codegen.target_has_features(_FEATURE, function.attrs["target"]):
        return function
    for store, loops in stores_in(function.body):
        vectors = [loop.extent for loop in loops if loop.kind == ForKind.VECTORIZED]
        if _adds_up(store) and any(_is_odd(lanes, _bits(store.buffer)) for lanes in vectors):
            return function.with_attr(_MARK, True)
    return function


def with_whole_loads(function: Any) -> Any:
    """Return a lowered function in which odd vectors of what it does not write are loaded whole."""
    if _MARK not in function.attrs:
        return function
    written = {store.buffer for store, _ in stores_in(function.body)}
    return function.with_body(_Whole(written).visit(function.body))


class _Whole(Rewriter):
    def __init__(self, written: set[Any]) -> None:
        super().__init__()
        self._written = written

    def visit(self, node: Any) -> Any:
        """Return a node, or what takes its place."""
        if isinstance(node, tirx.BufferStore) and not _adds_up(node):
            return node
        return super().visit(node)

    def replaced(self, node: Any, key: str, new: dict[str, Any]) -> Any | None:
        if not isinstance(node, TensorLoad) or node.source in self._written:
            return None
        (ramp,) = node.indices
        bits = _bits(node.source)
        if not isinstance(ramp, tirx.Ramp) or ramp.stride != 1 or not _is_odd(ramp.lanes, bits):
            return None
        lanes, width = int(ramp.lanes), _VECTOR_BITS // bits
        numbers = range(-(-lanes // width) * width)
        mask = tirx.Shuffle([tirx.const(n < lanes, "bool") for n in numbers], list(numbers))
        place = tirx.Ramp(ramp.base, 1, len(numbers))
        dtype = f"{node.source.dtype}x{len(numbers)}"
        whole = tirx.op.masked_load(dtype, node.source, place, mask)
        return tirx.Shuffle([whole], list(range(lanes)))


def _adds_up(store: Any) -> bool:
    """Whether what is stored comes of what is there, in registers. Copies need no whole vectors."""
    loads = (node for node in nodes_in(store.value) if isinstance(node, TensorLoad))
    return any(load.source.same_as(store.buffer) for load in loads)


def _is_odd(lanes: Any, bits: int) -> bool:
    """Whether so many numbers fill a register in a part that takes several loads."""
    if not isinstance(lanes, (int, tirx.IntImm)) or bits not in (32, 64):
        return False
    rest = int(lanes) % (_VECTOR_BITS // bits)
    return rest.bit_count() > 1


def _bits(buffer: Any) -> int:
    return int(tvm.DataType(str(buffer.dtype)).bits)
