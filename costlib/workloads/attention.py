"""Attention as one kernel: both of its products, what is done to the scores, and their softmax."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from costlib.hardware import Hardware
from costlib.processor import has_instructions
from costlib.tvm_compat import relax, tirx, tvm
from costlib.workloads.attention_blocks import Attention, Load, Machine, Step
from costlib.workloads.attention_kernel import NAME, attention_kernel
from costlib.workloads.attention_masks import adds_nothing, steps_ahead
from costlib.workloads.folding import count_uses, is_call, static_type
from costlib.workloads.safe_softmax import is_safe_softmax
from costlib.workloads.transposition import transposition
from costlib.workloads.views import ThroughViews, View

_DTYPE = "float32"

_FEWEST_KEYS = 16
"""For which it is worth while."""

_FEW_QUERIES = 16
"""Fewer than these do not pay for transposing the keys."""

_FEWEST_VECTORS = 2
"""Of a key that is multiplied as it lies in memory."""

_COMPUTE: Mapping[tuple[str, int], Callable[..., Any]] = {
    ("relax.add", 0): operator.add,
    ("relax.add", 1): operator.add,
    ("relax.subtract", 0): operator.sub,
    ("relax.multiply", 0): operator.mul,
    ("relax.multiply", 1): operator.mul,
    ("relax.divide", 0): operator.truediv,
    ("relax.where", 1): lambda score, condition, other: tirx.Select(condition, score, other),
    ("relax.where", 2): lambda score, condition, other: tirx.Select(condition, other, score),
}
"""What is computed of a score and the other arguments, by operator and the score's place."""

_UNKNOWN_CACHE_BYTES = 256 << 10


def with_attention(mod: Any, hardware: Hardware) -> Any:
    """Replace attention in a Relax module in canonical form by calls of one kernel each.

    It is that of float32 for x86 processors with AVX2 or AVX-512, where nothing else reads the
    scores; what is done to them is to scale them, and to add tensors such as masks, or to choose.
    """
    machine = _machine(hardware)
    if machine is None:
        return mod
    for name, function in mod.functions.items():
        found = _found(function, mod) if isinstance(function, relax.Function) else {}
        if found:
            rewriter = _Rewriter(mod, function, found, machine)
            rewriter.builder_.update_func(name, rewriter.visit_expr(function))
            mod = rewriter.builder_.get()
    return mod


def _machine(hardware: Hardware) -> Machine | None:
    """Return what a kernel has to know of an x86 processor with vectors of 256 bits or more."""
    lanes = hardware.vector_bits // 32
    if hardware.kind != "cpu" or lanes < 8 or not has_instructions(hardware.target, "fma"):
        return None
    caches = hardware.cache_bytes
    return Machine(
        lanes=lanes,
        vectors=4 if lanes == 16 else 2,  # There are 32 registers with AVX-512, else 16.
        num_cores=max(hardware.num_cores, 1),
        cache_bytes=caches[1] if len(caches) > 1 else _UNKNOWN_CACHE_BYTES,
    )


@dataclass(frozen=True)
class _Found:
    """A product of queries and keys, calls that take it and in which place, and which softmax."""

    product: Any
    steps: tuple[tuple[Any, int], ...] = ()
    is_safe: bool = False


def _found(function: Any, mod: Any) -> dict[Any, _Found]:
    """Return what the scores of each product of a softmax and values are made of."""
    uses = count_uses(function)
    bound = {
        binding.var: binding.value
        for block in function.body.blocks
        for binding in block.bindings
        if isinstance(binding.value, relax.Call)
    }

    def scores(expr: Any) -> _Found | None:
        call = bound.get(expr)
        if call is None or uses[expr] > 1 or static_type(call)[1] != _DTYPE:
            return None
        if is_call(call, "relax.matmul"):
            return _Found(call)
        for place, before in enumerate(call.args):
            is_known = (getattr(call.op, "name", ""), place) in _COMPUTE
            is_whole = is_known and static_type(before)[0] == static_type(call)[0]
            made = scores(before) if is_whole else None
            if made is not None:
                return replace(made, steps=(*made.steps, (call, place)))
        return None

    found: dict[Any, _Found] = {}
    for call in bound.values():
        softmax = bound.get(call.args[0]) if is_call(call, "relax.matmul") else None
        taken = None if softmax is None else _softmax_of(softmax, mod)
        if taken is None or uses[call.args[0]] > 1:
            continue
        made = scores(taken[0])
        if made is not None:
            found[call] = replace(made, is_safe=taken[1])
    return found


def _softmax_of(call: Any, mod: Any) -> tuple[Any, bool] | None:
    """Return of what a call is the softmax over the last axis, and whether it is a safe one."""
    shape, dtype = static_type(call)
    if not shape or dtype != _DTYPE:
        return None
    if is_call(call, "relax.nn.softmax"):
        return (call.args[0], False) if int(call.attrs.axis) in (-1, len(shape) - 1) else None
    if is_call(call, "relax.call_tir") and len(call.args[1].fields) == 1:
        (scores,) = call.args[1].fields
        is_alike = static_type(scores) == (shape, dtype)
        return (scores, True) if is_alike and is_safe_softmax(mod[call.args[0]]) else None
    return None


@relax.expr_functor.mutator
class _Rewriter(ThroughViews):
    def __init__(
        self, mod: Any, function: Any, found: Mapping[Any, _Found], machine: Machine
    ) -> None:
        super().__init__(mod, function)
        self.found, self.machine = found, machine

    def visit_call_(self, call: Any) -> Any:
        visited = self.visit_expr_post_order(call)
        if self.is_done(call):
            return visited.args[0]
        made = self.found.get(call)
        called = None if made is None else self._called(call, made, visited.args[1])
        return visited if called is None else called

    def _called(self, call: Any, found: _Found, values: Any) -> Any | None:
        """Call a kernel; ``None`` if there is none for what it should compute."""
        queries, keys = (self.visit_expr(argument) for argument in found.product.args)
        types = [static_type(tensor) for tensor in (queries, keys, values, call)]
        shapes = [shape for shape, dtype in types if shape is not None and dtype == _DTYPE]
        if len(shapes) < len(types) or len({shape[:-2] for shape in shapes}) > 1:
            return None
        *batch, rows, width = shapes[-1]
        depth, columns = shapes[1][-2:]
        query, value = self.view(queries), self.view(values)
        if query is None or value is None:
            return None
        scores = (*batch, rows, columns)
        steps = [
            (_COMPUTE[step.op.name, place], self._others(step, place))
            for step, place in found.steps
            if not adds_nothing(step, place)
        ]
        others = [operand for _, operands in steps for operand in operands]
        if columns < _FEWEST_KEYS or not all(_fits(one, scores) for one in others):
            return None
        key, are_few = self._rows(keys, shapes[1]), rows < _FEW_QUERIES
        key_place: Callable[[Sequence[Any]], list[Any]] = list
        if not are_few:
            keys = self._columns(keys, shapes[1], key)
        elif key is not None and depth >= _FEWEST_VECTORS * self.machine.lanes:
            keys, key_place = key.source, _of_columns(key)
        else:
            return None
        order = self.order(call) or list(range(len(scores)))
        shape = [shapes[-1][axis] for axis in order]
        arguments, buffers = list[Any](), list[Any]()

        def taken(tensor: Any) -> Any:
            arguments.append(tensor)
            buffers.append(tirx.decl_buffer(*static_type(tensor), layout=None))
            return buffers[-1]

        q, k, v = (taken(tensor) for tensor in (query.source, keys, value.source))
        loads = [
            Step(compute, tuple(_load(operand, taken) for operand in operands))
            for compute, operands in steps
        ]
        buffers.append(tirx.decl_buffer(shape, _DTYPE, layout=None))
        query_place, value_place = query.place(), value.place()
        what = Attention(
            batch=tuple(batch),
            queries=rows,
            keys=columns,
            depth=depth,
            width=width,
            query=lambda at: tirx.BufferLoad(q, query_place(at)),
            key=lambda at: tirx.BufferLoad(k, key_place(at)),
            value=lambda at: tirx.BufferLoad(v, value_place(at)),
            keys_are_rows=are_few,
            steps=tuple(loads),
            is_safe=found.is_safe,
            ahead=steps_ahead(found.steps, rows, columns),
            place=lambda at: [at[axis] for axis in order],
        )
        kernel = attention_kernel(what, self.machine, buffers)
        function = self.builder_.add_func(kernel, NAME)
        return relax.call_tir(function, arguments, relax.TensorType(shape, _DTYPE))

    def _others(self, step: Any, place: int) -> list[Any]:
        """Return the arguments of a step beside the scores."""
        return [self.visit_expr(one) for i, one in enumerate(step.args) if i != place]

    def _rows(self, keys: Any, shape: Sequence[int]) -> View | None:
        """Return keys, each a row, where they are; ``None`` if they are none there."""
        *outer, last, second = range(len(shape))
        swapped = self.builder_.emit(relax.op.permute_dims(keys, [*outer, second, last]))
        rows = self.view(swapped)
        return None if rows is None or rows.source.same_as(swapped) else rows

    def _columns(self, keys: Any, shape: Sequence[int], rows: View | None) -> Any:
        """Return keys as they are multiplied with: each a column, and as many as fill vectors."""
        *batch, depth, columns = shape
        lanes = self.machine.lanes
        missing = -columns % lanes
        if rows is None or depth % lanes:
            pairs = [0] * (2 * len(shape) - 1) + [missing]
            return self.builder_.emit(relax.op.nn.pad(keys, pairs)) if missing else keys
        whole = (*batch, depth, columns + missing)
        source = tirx.decl_buffer(rows.extents, _DTYPE, layout=None)
        target = tirx.decl_buffer(whole, _DTYPE, layout=None)
        kernel = transposition(source, target, columns, lanes, rows.place())
        function = self.builder_.add_func(kernel, "transpose")
        call = relax.call_tir(function, [rows.source], relax.TensorType(whole, _DTYPE))
        return self.builder_.emit(call)


def _of_columns(rows: View) -> Callable[[Sequence[Any]], list[Any]]:
    """Return what turns the indices of a column into those of the source of rows."""
    place = rows.place()
    return lambda at: place([*at[:-2], at[-1], at[-2]])


def _fits(operand: Any, scores: Sequence[int]) -> bool:
    """Whether an operand is a number or a condition, or is spread over the scores."""
    shape, dtype = static_type(operand)
    if shape is None or dtype not in (_DTYPE, "bool") or len(shape) > len(scores):
        return False
    pairs = zip(reversed(shape), reversed(scores), strict=False)
    return all(extent in (1, whole) for extent, whole in pairs)


def _load(operand: Any, taken: Callable[[Any], Any]) -> Load:
    """Return what loads of an operand what belongs to a score."""
    extents, dtype = static_type(operand)
    if isinstance(operand, tvm.ir.GenericConst) and not extents:
        number = tirx.const(operand.value.numpy().item(), dtype)
        return lambda at: number
    buffer = taken(operand)

    def load(at: Sequence[Any]) -> Any:
        last = at[len(at) - len(extents or ()) :]
        place = [0 if n == 1 else i for n, i in zip(extents or (), last, strict=True)]
        return tirx.BufferLoad(buffer, place)

    return load
