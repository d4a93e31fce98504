"""The loop nests of a scheduled program: extents, kinds, and what each access touches.

MetaSchedule's ``PerStoreFeature`` describes each loop nest as a whole. What decides between two
good programs is in the innermost loops (which accumulators stay in registers, what is loaded for
each multiplication) and in where the data of an inner nest stops fitting a cache. Both follow from
how far each access reaches at each depth of its nest, which is what this module finds out;
:mod:`costlib.features.nest_features` makes numbers of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from costlib.arrays import Integers
from costlib.features.nest import LANES, LINE_BYTES, PARALLEL, Access, LoopNest
from costlib.tvm_compat import nodes
from costlib.workloads.task import weight_arguments

_UNROLL = "pragma_auto_unroll_max_step"
_REWRITE = "meta_schedule.layout_rewrite_preproc"
_BOUND_TO_THREADS = 4

_BINARY: dict[type, Callable[[Integers, Integers], Integers]] = {
    nodes.Add: np.add,
    nodes.Sub: np.subtract,
    nodes.Mul: np.multiply,
    nodes.FloorDiv: lambda a, b: a // np.where(b == 0, 1, b),
    nodes.FloorMod: lambda a, b: a % np.where(b == 0, 1, b),
    nodes.Min: np.minimum,
    nodes.Max: np.maximum,
}
_OPERANDS = ("a", "b", "value", "condition", "true_value", "false_value")


def loop_nests(mod: Any) -> list[LoopNest]:
    """Return the nests of a scheduled module's ``main``, in the order they run.

    Re-layouting of constant weights is left out: it happens once, ahead of time.
    """
    main = mod["main"]
    weights = frozenset(main.params[number] for number in weight_arguments(mod))
    return list(_walk(main.body, _Surroundings(weights=weights)))


class _Loop(NamedTuple):
    """A loop: its variable, iterations and kind, and the threads of a GPU that it is bound to."""

    variable: Any
    extent: int
    kind: int
    thread: str


@dataclass(frozen=True)
class _Surroundings:
    """What encloses a statement: weights, block, loops, what the axes stand for, unrolling."""

    weights: frozenset[Any] = frozenset()
    block: str = ""
    loops: tuple[_Loop, ...] = ()
    axes: Mapping[Any, Any] = field(default_factory=dict)
    unroll_steps: int = 0


def _walk(node: Any, around: _Surroundings) -> Iterator[LoopNest]:
    if isinstance(node, nodes.For):
        extent = _constant(node.extent)
        kind = PARALLEL if int(node.kind) == _BOUND_TO_THREADS else int(node.kind)
        steps = around.unroll_steps
        if node.annotations:
            steps = int(node.annotations.get(_UNROLL, steps))
        thread = "" if node.thread_binding is None else str(node.thread_binding.thread_tag)
        loops = (*around.loops, _Loop(node.loop_var, extent, kind, thread))
        yield from _walk(node.body, replace(around, loops=loops, unroll_steps=steps))
    elif isinstance(node, nodes.SeqStmt):
        for part in node.seq:
            yield from _walk(part, around)
    elif isinstance(node, nodes.SBlockRealize):
        block = node.block
        if block.annotations and _REWRITE in block.annotations:
            return
        bound = zip((axis.var for axis in block.iter_vars), node.iter_values, strict=True)
        inside = replace(around, block=block.name_hint, axes={**around.axes, **dict(bound)})
        if block.init is not None:
            yield from _walk(block.init, inside)
        yield from _walk(block.body, inside)
    elif isinstance(node, nodes.BufferStore):
        yield _nest(node, around)
    elif isinstance(node, nodes.IfThenElse):
        yield from _walk(node.then_case, around)
    elif hasattr(node, "body"):
        yield from _walk(node.body, around)


def _nest(store: Any, around: _Surroundings) -> LoopNest:
    loops = [loop for loop in around.loops if loop.extent > 1]
    values = _Values(loops, around)
    expression = _Expression()
    expression.read(store.value)
    loads = [values.access(buffer, indices) for buffer, indices in expression.loads]
    return LoopNest(
        around.block,
        np.array([loop.extent for loop in loops], "int64"),
        np.array([loop.kind for loop in loops], "int64"),
        around.unroll_steps,
        expression.arithmetic,
        expression.calls,
        expression.branches,
        values.access(store.buffer, store.indices),
        tuple(loads),
        tuple(loop.thread for loop in loops),
    )


class _Expression:
    """What an expression loads and computes."""

    def __init__(self) -> None:
        self.loads: list[tuple[Any, Any]] = []
        self.arithmetic = self.calls = self.branches = 0

    def read(self, node: Any) -> None:
        if isinstance(node, nodes.TensorLoad):
            self.loads.append((node.source, node.indices))
            return
        if isinstance(node, nodes.Call):
            is_branch = getattr(node.op, "name", "").endswith("if_then_else")
            self.branches += is_branch
            self.calls += not is_branch
            for argument in node.args[is_branch:]:
                self.read(argument)
            return
        if type(node) in _BINARY or isinstance(node, nodes.Div):
            self.arithmetic += 1
        elif isinstance(node, nodes.Select):
            self.branches += 1
        for name in _OPERANDS:
            operand = getattr(node, name, None)
            if isinstance(operand, nodes.Expr):
                self.read(operand)


class _Values:
    """Evaluates indices with the loops standing at several points at once.

    The points are, for each depth, the last iteration of the loops from there inwards and the first
    of the others (`l + 1` of them); then a step of one loop alone (`l`); on a GPU, each thread of
    the first warp, all other loops standing at their first.
    """

    def __init__(self, loops: Sequence[_Loop], around: _Surroundings) -> None:
        count = len(loops)
        self._depths = count + 1
        warp = _first_warp(loops)
        self._lanes = 2 * count + 1
        self._zero = np.zeros(self._lanes + (LANES if warp else 0), "int64")
        self._known: dict[Any, Integers] = {}
        self._iterations = np.ones(count + 1)
        for place in range(count - 1, -1, -1):
            self._iterations[place] = self._iterations[place + 1] * loops[place].extent
        for place, loop in enumerate(loops):
            points = self._zero.copy()
            points[: place + 1] = loop.extent - 1
            points[self._depths + place] = 1
            if loop.thread in warp:
                points[self._lanes :] = warp[loop.thread]
            self._known[loop.variable] = points
        self._axes = around.axes
        self._weights = around.weights

    def access(self, buffer: Any, indices: Any) -> Access:
        """Find out what an access touches."""
        bits = re.sub(r"\D", "", str(buffer.dtype))
        element_bytes = max(1, int(bits or 8) // 8)
        shape = [_constant(size) for size in buffer.shape]
        steps = np.zeros((len(shape), self._lanes - self._depths), "int64")
        run = elements = np.ones(self._depths)
        contiguous = np.ones(self._depths, bool)
        rows = np.ones(self._depths)
        offset, unit = self._zero, 1
        for dimension in range(len(shape) - 1, -1, -1):
            size, values = shape[dimension], self._evaluate(indices[dimension])
            steps[dimension] = values[self._depths : self._lanes] - values[self._depths - 1]
            offset = offset + unit * values
            unit *= size
            reach = np.abs(values[: self._depths] - values[self._depths - 1]) + 1
            reach = np.minimum(reach, size)
            elements = elements * reach
            run = np.where(contiguous, run * reach, run)
            rows = np.where(contiguous, rows, rows * reach)
            contiguous = contiguous & (reach == size)
        lines = rows * np.ceil(run * element_bytes / LINE_BYTES)
        return Access(
            np.minimum(elements, self._iterations),
            np.minimum(lines, self._iterations),
            offset[self._depths : self._lanes] - offset[self._depths - 1],
            steps,
            tuple(shape),
            element_bytes,
            buffer in self._weights,
            str(buffer.scope()),
            offset[self._lanes :],
        )

    def _evaluate(self, node: Any) -> Integers:
        operation = _BINARY.get(type(node))
        if operation is not None:
            return operation(self._evaluate(node.a), self._evaluate(node.b))
        if isinstance(node, nodes.Var):
            known = self._known.get(node)
            if known is None:
                bound = self._axes.get(node)
                known = self._zero if bound is None else self._evaluate(bound)
                self._known[node] = known
            return known
        if isinstance(node, nodes.IntImm):
            return self._zero + int(node)
        if isinstance(node, nodes.Cast):
            return self._evaluate(node.value)
        return self._zero


def _first_warp(loops: Sequence[_Loop]) -> dict[str, Integers]:
    """Return where each thread of a block's first warp stands in the loops bound to threads."""
    places = np.arange(LANES)
    found: dict[str, Integers] = {}
    extents = {loop.thread: loop.extent for loop in loops}
    for thread in ("threadIdx.x", "threadIdx.y", "threadIdx.z"):
        if thread in extents:
            found[thread] = places % extents[thread]
            places = places // extents[thread]
    return found


def _constant(extent: Any) -> int:
    """Return an extent; 1 for one that is not known before the program runs."""
    return int(extent) if isinstance(extent, nodes.IntImm) else 1
