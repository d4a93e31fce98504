"""Weights that are on their way from memory while a product is computed with those before them.

A tuned program reads the weights in the order in which they lie, a few lines at a time, and then
computes with them for hundreds of cycles. Processors recognise such a stream late or not at all:
each time the program waits as long as a cache, or memory, takes to answer. Here the next lines are
asked for before the computation with these. That shows where the weights of a network do not stay
in the caches.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import tvm
from tvm import tirx
from tvm.ir.expr import TensorLoad
from tvm.sym import detect_linear_equation

from costlib.tvm_compat.rewriting import Rewriter, nodes_in, stores_in

_SERIAL = 0
_LINE_BYTES = 64

_LEAST_USES = 16
"""How often each line is computed with, at least: asking for it takes an instruction."""

_MOST_LINES = 64
"""Asked for at once."""

_AHEAD = 512
"""Vector instructions before which a line is asked for, at least: what memory takes to answer."""

_READ, _KEEP, _DATA = 0, 3, 1
"""What LLVM's ``prefetch`` is told: not to be written, to stay in all caches, no instructions."""


def with_prefetches(function: Any) -> Any:
    """Return a function of plain loops over flat buffers that asks for what it reads next.

    It is the same object if there is nothing to ask for.
    """
    streams = _streams(function)
    return function.with_body(_Asking(streams).visit(function.body)) if streams else function


class _Stream(NamedTuple):
    """What each iteration of a loop reads anew of a buffer: so many bytes after those before."""

    buffer: Any
    first: Any
    elements: int
    nbytes: int
    uses: int

    @property
    def lines(self) -> int:
        return math.ceil(self.nbytes / _LINE_BYTES)

    def requests(self, loop: Any) -> Iterator[Any]:
        """Return statements that ask for what a later iteration reads."""
        ahead = math.ceil(_AHEAD / (self.lines * self.uses))
        start = self.first + (loop.loop_var + ahead) * self.elements
        line = _LINE_BYTES * self.elements // self.nbytes
        for offset in range(0, self.elements, line):
            address = tirx.address_of(tirx.BufferLoad(self.buffer, [start + offset]))
            how = (tirx.const(number, "int32") for number in (_READ, _KEEP, _DATA))
            yield tirx.Evaluate(tirx.call_llvm_intrin("void", "llvm.prefetch", address, *how))


class _Asking(Rewriter):
    """Lets loops ask for what their next iterations read."""

    def __init__(self, streams: Mapping[Any, Mapping[Any, _Stream]]) -> None:
        super().__init__()
        self._streams = streams

    def replaced(self, node: Any, key: str, new: dict[str, Any]) -> Any | None:
        if key == "tirx.For" and (streams := self._streams.get(node.loop_var)):
            asked = [one for stream in streams.values() for one in stream.requests(node)]
            new["body"] = tirx.SeqStmt([*asked, new["body"]])
        return None


def _streams(function: Any) -> dict[Any, dict[Any, _Stream]]:
    """Return by a loop's variable what its iterations read on, by buffer; none that is written."""
    stores = list(stores_in(function.body))
    written = {store.buffer for store, _ in stores}
    found: dict[Any, dict[Any, _Stream]] = {}
    for store, loops in stores:
        loads = (node for node in nodes_in(store.value) if isinstance(node, TensorLoad))
        for load in loads:
            if load.source not in written and (one := _streamed(load, loops)) is not None:
                loop, stream = one
                found.setdefault(loop.loop_var, {})[load.source] = stream
    return found


def _streamed(load: Any, loops: Sequence[Any]) -> tuple[Any, _Stream] | None:
    """Return the innermost loop whose iterations read on in a buffer, and what they read."""
    variables = [loop.loop_var for loop in loops]
    if not (linear := detect_linear_equation(load.indices[0], variables)):
        return None
    *steps, start = linear
    if not all(isinstance(n, tirx.IntImm) for n in (*steps, *(loop.extent for loop in loops))):
        return None
    known, extents = [int(step) for step in steps], [int(loop.extent) for loop in loops]
    for place in range(len(loops) - 1, -1, -1):
        stream = _stream(load, known[place:], extents[place:])
        if stream is not None:
            outer = zip(variables[:place], known[:place], strict=True)
            first = sum((variable * step for variable, step in outer), start)
            is_asked = int(loops[place].kind) == _SERIAL and stream.lines <= _MOST_LINES
            return (loops[place], stream._replace(first=first)) if is_asked else None
    return None


def _stream(load: Any, steps: list[int], extents: list[int]) -> _Stream | None:
    """Return what a loop, the first of these, reads on of a buffer, if it is in one piece."""
    inner = list(zip(steps[1:], extents[1:], strict=True))
    piece = 1
    for step, extent in sorted(pair for pair in inner if pair[0]):
        if step != piece and extent > 1:
            return None
        piece *= extent
    uses = math.prod(extent for step, extent in inner if not step)
    nbytes = piece * int(tvm.DataType(str(load.source.dtype)).bits) // 8
    if extents[0] < 2 or steps[0] != piece or uses < _LEAST_USES or nbytes < _LINE_BYTES:
        return None
    return _Stream(load.source, None, piece, nbytes, uses)
