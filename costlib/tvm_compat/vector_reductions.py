"""Sums and maxima along a row, a vector at a time.

``s = s + x[k]`` adds one number after the other, and each waits for the one before: no compiler may
reorder floats. Where the innermost loop of a program is such a reduction over neighbours in memory,
it is computed in lanes, in several vectors to keep the processor busy, and the lanes are combined
in the end. Figures: ``docs/results/vector-math.md``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import tvm
from tvm import tirx
from tvm.ir import Call
from tvm.ir.expr import TensorLoad
from tvm.sym import detect_linear_equation
from tvm.tirx import ForKind
from tvm_ffi import structural_equal

from costlib.tvm_compat.rewriting import Rewriter, nodes_in, substituted

_VECTOR_BYTES = 64
_MOST_VECTORS = 4
"""Added to at a time: as many as an addition takes cycles."""

_LEAST_VECTORS = 2
_TYPES = ("float32", "float64")
_COMBINING = (tirx.Add, tirx.Max, tirx.Min)
_CALLED = ("tirx.nan_max", "tirx.nan_min")


def with_vector_reductions(function: Any) -> Any:
    """Return a function of plain loops over flat buffers with its reductions in lanes.

    It is the same object if there is none to change.
    """
    body = _InLanes().visit(function.body)
    return function if body.same_as(function.body) else function.with_body(body)


class _InLanes(Rewriter):
    def replaced(self, node: Any, key: str, new: dict[str, Any]) -> Any | None:
        if key != "tirx.For" or (found := _reduction_of(node)) is None:
            return None
        return tirx.SeqStmt([*found.before, *_Lanes(found).statements()])


class _Reduction(NamedTuple):
    """A loop that combines values, one after the other, with what is in one place.

    Attributes
    ----------
    before
        What is done before the first iteration.
    place
        The load of what values are combined with.
    combine
        Returns an expression of two others.
    value
        An expression of the loop's variable.
    """

    before: list[Any]
    variable: Any
    extent: int
    place: Any
    combine: Callable[[Any, Any], Any]
    value: Any

    def at(self, iteration: Any) -> Any:
        """Return the value of an iteration."""
        return substituted(self.value, {self.variable: iteration})

    def store(self, value: Any) -> Any:
        """Return the statement that combines a value with what is in the place."""
        result = self.combine(self.place, value)
        return tirx.BufferStore(self.place.source, result, self.place.indices)


class _Lanes:
    """Writes a reduction in lanes."""

    def __init__(self, found: _Reduction) -> None:
        dtype = str(found.place.ty)
        self._found = found
        self._index = str(found.variable.ty)
        self._width = _width(dtype)
        self._vectors = min(found.extent // self._width, _MOST_VECTORS)
        self._lanes = tirx.decl_buffer((self._vectors * self._width,), dtype, "lanes")

    def statements(self) -> Iterator[Any]:
        """Return statements to be put in the loop's place."""
        found, width = self._found, self._width
        at_once = self._vectors * width
        firsts = range(0, at_once, width)
        rounds, rest = divmod(found.extent, at_once)
        yield tirx.AllocBuffer(self._lanes)
        for first in firsts:
            yield self._vector(first, found.at)
        if rounds > 1:
            turn = tirx.Var("turn", self._index)
            body = [self._combined(first, (turn + 1) * at_once) for first in firsts]
            yield _loop(turn, rounds - 1, ForKind.SERIAL, tirx.SeqStmt(body))
        for first in range(0, rest - width + 1, width):
            yield self._combined(first, rounds * at_once)
        for first in firsts[1:]:
            yield self._folded(first, width)
        while width > 1:
            width //= 2
            yield self._folded(width, width)
        yield found.store(self._lanes[0])
        if single := rest % self._width:
            last = tirx.Var("last", self._index)
            value = found.at(last + (found.extent - single))
            yield _loop(last, single, ForKind.SERIAL, found.store(value))

    def _combined(self, first: int, start: Any) -> Any:
        """Combine lanes with values, so many iterations after their number."""
        combine, at = self._found.combine, self._found.at
        return self._vector(first, lambda lane: combine(self._lanes[lane], at(lane + start)))

    def _folded(self, distance: int, size: int) -> Any:
        """Combine the first lanes with those at a distance."""
        combine, lanes = self._found.combine, self._lanes
        return self._vector(0, lambda lane: combine(lanes[lane], lanes[lane + distance]), size)

    def _vector(self, first: int, value: Callable[[Any], Any], size: int | None = None) -> Any:
        """Set lanes to an expression of their number."""
        variable = tirx.Var("lane", self._index)
        lane = variable + first
        store = tirx.BufferStore(self._lanes, value(lane), [lane])
        return _loop(variable, size or self._width, ForKind.VECTORIZED, store)


def _loop(variable: Any, extent: int, kind: Any, body: Any) -> Any:
    start, end = (tirx.const(number, str(variable.ty)) for number in (0, extent))
    return tirx.For(variable, start, end, kind, body)


def _reduction_of(loop: Any) -> _Reduction | None:
    """Return what a loop reduces; ``None`` if it does something else, or is as fast as it is."""
    if loop.kind != ForKind.SERIAL or not isinstance(loop.extent, tirx.IntImm) or loop.min != 0:
        return None
    before, store = _first_iteration(loop.loop_var, loop.body)
    if not isinstance(store, tirx.BufferStore) or str(store.value.ty) not in _TYPES:
        return None
    extent, dtype = int(loop.extent), str(store.value.ty)
    found = _combined(store)
    if found is None or extent < _LEAST_VECTORS * _width(dtype):
        return None
    place, combine, value = found
    nodes = nodes_in(value)
    loads = [node for node in nodes if isinstance(node, TensorLoad)]
    if any(_is_branch(node) for node in nodes) or any(
        load.source.same_as(store.buffer) for load in loads
    ):
        return None
    steps = [_step(index, loop.loop_var) for load in loads for index in load.indices]
    if 1 not in steps or not {0, 1}.issuperset(steps) or _step(store.indices[0], loop.loop_var):
        return None
    return _Reduction(before, loop.loop_var, extent, place, combine, value)


def _first_iteration(variable: Any, body: Any) -> tuple[list[Any], Any]:
    """Take what a loop does in its first iteration alone apart from what it always does."""
    if not isinstance(body, tirx.SeqStmt) or len(body.seq) != 2:
        return [], body
    first, rest = body.seq
    start = tirx.const(0, str(variable.ty))
    is_first = tirx.EQ(variable, start)
    if isinstance(first, tirx.IfThenElse) and structural_equal(first.condition, is_first):
        return [substituted(first.then_case, {variable: start})], rest
    return [], body


def _combined(store: Any) -> tuple[Any, Callable[[Any, Any], Any], Any] | None:
    """Return the place, how values are combined, and the value that a store combines with it."""
    node = store.value
    combine: Callable[[Any, Any], Any]
    if type(node) in _COMBINING:
        operands, combine = (node.a, node.b), type(node)
    elif isinstance(node, Call) and getattr(node.op, "name", "") in _CALLED:
        operands = tuple(node.args)
        combine = partial(tirx.call_intrin, str(node.ty), node.op.name)
    else:
        return None
    for place, value in (operands, operands[::-1]):
        is_place = isinstance(place, TensorLoad) and place.source.same_as(store.buffer)
        if is_place and structural_equal(place.indices, store.indices):
            return place, combine, value
    return None


def _is_branch(node: Any) -> bool:
    return isinstance(node, Call) and getattr(node.op, "name", "").endswith("if_then_else")


def _step(index: Any, variable: Any) -> int | None:
    """Return by how much an index grows with a variable; ``None`` if that is not known."""
    linear = detect_linear_equation(index, [variable])
    return int(linear[0]) if linear and isinstance(linear[0], tirx.IntImm) else None


def _width(dtype: str) -> int:
    return _VECTOR_BYTES * 8 // int(tvm.DataType(dtype).bits)
