"""Concatenations that move nothing: what they join is written where it is wanted.

A kernel that joins tensors copies them, which takes as long as to make them where that is little
work. What writes or reads them can as well write and read a part of the whole.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from costlib.tvm_compat import nodes, te, tirx, topi, tvm
from costlib.tvm_compat.rewriting import Rewriter, are_alike
from costlib.tvm_compat.straight_line import Base, Call, Line, Tensor

IN_PLACE = "_in_place"
"""What is appended to the name of a kernel that writes or reads a part, and a number after it."""


class Joining(NamedTuple):
    """What a kernel does that joins its arguments: along which axis, and to what shape.

    It may return that in another shape, as a stack of tensors does.
    """

    axis: int
    shape: tuple[int, ...]


def concatenations(mod: Any) -> dict[str, Joining]:
    """Return how kernels join their arguments, by the names of those that do nothing else."""
    found: dict[str, Joining] = {}
    for variable, function in mod.functions.items():
        if isinstance(function, tirx.PrimFunc) and (joining := _joining(function)) is not None:
            found[str(variable.name_hint)] = joining
    return found


def _joining(function: Any) -> Joining | None:
    """Return how, if a function is what TVM makes of a concatenation and nothing else."""
    arguments = list(function.params)
    if len(arguments) < 3 or not all(_has_known_shape(argument) for argument in arguments):
        return None
    *parts, whole = (tuple(map(int, argument.shape)) for argument in arguments)
    dtypes = {str(argument.dtype) for argument in arguments}
    for axis in range(len(parts[0])) if len(dtypes) == 1 else ():
        shape = _joined(parts, axis)
        if shape is None or math.prod(shape) != math.prod(whole):
            continue
        inputs = [te.placeholder(part, *dtypes) for part in parts]
        joined = topi.concatenate(inputs, axis)
        if shape != whole:
            joined = topi.reshape(joined, whole)
        if are_alike(
            function, te.create_prim_func([*inputs, joined], index_dtype_override="int64")
        ):
            return Joining(axis, shape)
    return None


def _has_known_shape(argument: Any) -> bool:
    shape = getattr(argument, "shape", None)
    return shape is not None and all(isinstance(extent, nodes.IntImm) for extent in shape)


def _joined(parts: Sequence[tuple[int, ...]], axis: int) -> tuple[int, ...] | None:
    """Return the shape of tensors one after the other along an axis, if they fit together."""
    if len({len(part) for part in parts}) > 1:
        return None
    others = {(*part[:axis], *part[axis + 1 :]) for part in parts}
    total = sum(part[axis] for part in parts)
    return (*parts[0][:axis], total, *parts[0][axis + 1 :]) if len(others) == 1 else None


class _Place(NamedTuple):
    """Where a tensor lies in another one: its first index along each axis."""

    whole: Tensor
    start: tuple[int, ...]


def joined_in_place(line: Line, builder: Any, joinings: Mapping[str, Joining]) -> Line:
    """Drop the concatenations of a line whose arguments can be parts of their result.

    Parameters
    ----------
    line
        Calls as they are.
    builder
        A block builder of the module; kernels that write or read parts are added to it.
    joinings
        What :func:`concatenations` returns.
    """
    mod = builder.get()
    returned = {leaf.base for leaf in line.returned}
    places: dict[Base, _Place] = {}
    dropped: set[int] = set()
    for number, call in reversed(list(enumerate(line.calls))):
        if call.name not in joinings:
            continue
        (axis, shape), (*parts, whole) = joinings[call.name], call.tensors
        bases = {part.base for part in parts}
        taken = bases & (returned | places.keys())
        if taken or len(bases) < len(parts) or not all(_is_free(p, line, mod) for p in parts):
            continue
        if whole.base in places and whole.shape != shape:
            continue
        dropped.add(number)
        joined = replace(whole, shape=shape)
        whole, start = places.get(whole.base, _Place(joined, (0,) * len(shape)))
        for part in parts:
            places[part.base] = _Place(whole, start)
            start = (*start[:axis], start[axis] + part.shape[axis], *start[axis + 1 :])

    def placed(call: Call) -> Call:
        found = [places.get(tensor.base) for tensor in call.tensors]
        if not any(found):
            return call
        function = _of_parts(mod[call.function], found).without_attr("global_symbol")
        variable = builder.add_func(function, call.name + IN_PLACE)
        pairs = zip(found, call.tensors, strict=True)
        return Call(variable, [tensor if place is None else place.whole for place, tensor in pairs])

    kept = [call for number, call in enumerate(line.calls) if number not in dropped]
    return replace(line, calls=[placed(call) for call in kept])


def _is_free(part: Tensor, line: Line, mod: Any) -> bool:
    """Whether a tensor may lie anywhere: kernels alone write and read it, element by element."""
    if part.base.kind != "allocation":
        return False
    for call in line.calls:
        for number, tensor in enumerate(call.tensors):
            if tensor.base != part.base:
                continue
            if tensor.shape != part.shape or not isinstance(call.function, tvm.ir.GlobalVar):
                return False
            function = mod[call.function]
            if _Uses(function.params[number]).are_in(function.body):
                return False
    return True


_REGION = "ir.TensorRegion"

_ACCESSES = {("ir.TensorLoad", "source"), ("tirx.BufferStore", "buffer"), (_REGION, "source")}
"""Fields that are buffers of which elements, or a region, are named."""


class _Uses(Rewriter):
    """Finds whether a statement does anything with a buffer but to load and store elements."""

    def __init__(self, buffer: Any) -> None:
        super().__init__()
        self._buffer, self._found = buffer, False

    def are_in(self, statement: Any) -> bool:
        self.visit(statement)
        return self._found

    def part(self, node: Any, key: str, name: str, value: Any) -> Any:
        is_access = (key, name) in _ACCESSES
        if isinstance(value, nodes.Var) and value.same_as(self._buffer) and not is_access:
            self._found = True
        return super().part(node, key, name, value)


def _of_parts(function: Any, places: Sequence[_Place | None]) -> Any:
    """Let a function take whole tensors for parts of them."""
    body, parameters = function.body, list(function.params)
    for number, place in enumerate(places):
        if place is not None:
            part = parameters[number]
            whole = tirx.decl_buffer(place.whole.shape, part.dtype, name=part.name)
            body = _Moved(part, whole, place.start).visit(body)
            parameters[number] = whole
    return tirx.PrimFunc(parameters, body, function.ret_type, function.attrs)


class _Moved(Rewriter):
    """Loads and stores elements of a tensor in the larger one that it is a part of."""

    def __init__(self, part: Any, whole: Any, start: Sequence[int]) -> None:
        super().__init__()
        self._part, self._whole, self._start = part, whole, start

    def replaced(self, node: Any, key: str, new: dict[str, Any]) -> Any | None:
        if isinstance(node, nodes.BufferStore) and node.buffer.same_as(self._part):
            return tirx.BufferStore(self._whole, new["value"], self._moved(new["indices"]))
        if isinstance(node, nodes.TensorLoad) and node.source.same_as(self._part):
            return tirx.BufferLoad(self._whole, self._moved(new["indices"]))
        if key == _REGION and node.source.same_as(self._part):
            firsts = self._moved([one.min for one in node.region])
            pairs = zip(firsts, node.region, strict=True)
            ranges = [tvm.ir.Range.from_min_extent(first, one.extent) for first, one in pairs]
            return tirx.BufferRegion(self._whole, ranges)
        return None

    def _moved(self, indices: Sequence[Any]) -> list[Any]:
        return [index + start for index, start in zip(indices, self._start, strict=True)]
