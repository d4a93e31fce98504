"""Relax functions as straight lines: calls of kernels one after the other, with known shapes.

For such a function it can be said ahead of time where each tensor lies: intermediate results in one
piece of memory, constants in another.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np

from costlib.tvm_compat import relax, tirx, tvm

ALIGNMENT = 64
"""Every tensor begins at a multiple of so many bytes, which TVM's kernels take for granted."""

_PACK_BYTES = 1 << 30
"""Of constants in one piece; their places are 32-bit numbers."""

_LARGE_BYTES = 16 << 20
"""Of a constant that is not copied: to pass one more tensor takes no time beside reading it."""


def tensor_bytes(shape: Sequence[int], dtype: str) -> int:
    """Return the size of a tensor; a boolean takes a byte."""
    return math.prod(shape) * max(int(tvm.DataType(dtype).bits) // 8, 1)


class NotStraightError(Exception):
    """A function does something else than call kernels with known shapes."""


class Base(NamedTuple):
    """What a tensor lies in."""

    kind: Literal["input", "constant", "allocation"]
    number: int


@dataclass(frozen=True)
class Tensor:
    """A tensor that begins where its base does."""

    base: Base
    shape: tuple[int, ...]
    dtype: str

    @property
    def nbytes(self) -> int:
        """Its size."""
        return tensor_bytes(self.shape, self.dtype)


class Call(NamedTuple):
    """A call of a kernel of the module (a ``GlobalVar``) or of a function that TVM has."""

    function: Any
    tensors: list[Tensor]

    @property
    def name(self) -> str:
        """What is called."""
        is_kernel = isinstance(self.function, tvm.ir.GlobalVar)
        return str(self.function.name_hint if is_kernel else self.function.global_symbol)


@dataclass
class Line:
    """A function as a straight line of calls.

    Attributes
    ----------
    inputs
        Its arguments.
    constants
        ``GenericConst`` nodes, each array once.
    calls
        In their order.
    result
        What is returned: a tensor, or a nest of lists of them.
    """

    inputs: list[Tensor] = field(default_factory=list)
    constants: list[Any] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    result: Any = None

    @property
    def outputs(self) -> list[Tensor]:
        """The allocations that are returned, each once."""
        found = {leaf.base: leaf for leaf in self.returned if leaf.base.kind == "allocation"}
        return list(found.values())

    @property
    def returned(self) -> list[Tensor]:
        """The tensors that are returned, in their order."""
        return _leaves(self.result)


def line_of(mod: Any, name: str) -> Line:
    """Follow the tensors through a function of a module, after ``CallTIRRewrite``.

    Raises
    ------
    NotStraightError
        It is no straight line.
    """
    line = Line()
    known: dict[Any, Any] = {}
    constants: dict[Any, Base] = {}
    function = mod[name]

    def value(expr: Any) -> Any:
        if isinstance(expr, relax.Var) and expr in known:
            return known[expr]
        if isinstance(expr, relax.Tuple):
            return [value(part) for part in expr.fields]
        if isinstance(expr, relax.TupleGetItem):
            return value(expr.tuple_value)[expr.index]
        if isinstance(expr, tvm.ir.GenericConst):
            if expr.value not in constants:
                constants[expr.value] = Base("constant", len(line.constants))
                line.constants.append(expr)
            return Tensor(constants[expr.value], *static_type(expr))
        raise NotStraightError

    def tensor(expr: Any) -> Tensor:
        found = value(expr)
        if not isinstance(found, Tensor):
            raise NotStraightError
        return found

    for number, param in enumerate(function.params):
        known[param] = Tensor(Base("input", number), *static_type(param))
        line.inputs.append(known[param])
    for number, (variable, bound) in enumerate(_bindings(function.body)):
        if not isinstance(bound, relax.Call):
            known[variable] = value(bound)
        elif getattr(bound.op, "name", None) == "relax.builtin.alloc_tensor":
            known[variable] = Tensor(Base("allocation", number), *static_type(variable))
        elif getattr(bound.op, "name", None) == "relax.reshape":
            known[variable] = Tensor(tensor(bound.args[0]).base, *static_type(variable))
        elif _is_kernel(mod, bound.op) or _returns_nothing(bound):
            line.calls.append(Call(bound.op, [tensor(argument) for argument in bound.args]))
        else:
            raise NotStraightError
    line.result = value(function.body.body)
    return line


def _bindings(body: Any) -> Iterator[tuple[Any, Any]]:
    for block in body.blocks:
        for binding in block.bindings:
            if not isinstance(binding, relax.VarBinding):
                raise NotStraightError
            yield binding.var, binding.value


def _is_kernel(mod: Any, function: Any) -> bool:
    return isinstance(function, tvm.ir.GlobalVar) and isinstance(mod[function], tirx.PrimFunc)


def _returns_nothing(call: Any) -> bool:
    """Whether a function of TVM's is called that writes to its last arguments."""
    fields = getattr(call.ty, "fields", None)
    return isinstance(call.op, relax.ExternFunc) and fields is not None and not len(fields)


def static_type(expr: Any) -> tuple[tuple[int, ...], str]:
    """Return the shape and dtype of an expression; they must be known."""
    shape = getattr(getattr(expr.ty, "shape", None), "values", None)
    if shape is None or not all(isinstance(extent, tirx.IntImm) for extent in shape):
        raise NotStraightError
    return tuple(int(extent) for extent in shape), str(expr.ty.dtype)


def _leaves(result: Any) -> list[Tensor]:
    if isinstance(result, Tensor):
        return [result]
    return [leaf for part in result for leaf in _leaves(part)]


class Plan(NamedTuple):
    """Where tensors lie in a piece of memory: bytes from its start, and its size."""

    offsets: Mapping[Base, int]
    nbytes: int


def plan_memory(line: Line) -> Plan:
    """Give each allocation that is not returned a place that nothing else needs while it lives.

    The largest first, each as low as it can be (Pisarchyk and Lee, arXiv:2001.03288, greedy by
    size).
    """
    kept = {output.base for output in line.outputs}
    lives: dict[Base, tuple[int, int]] = {}
    sizes: dict[Base, int] = {}
    for number, call in enumerate(line.calls):
        for tensor in call.tensors:
            base = tensor.base
            if base.kind == "allocation" and base not in kept:
                lives[base] = lives.get(base, (number,))[0], number
                sizes[base] = max(tensor.nbytes, sizes.get(base, 0))
    offsets: dict[Base, int] = {}
    for base in sorted(sizes, key=lambda base: -sizes[base]):
        first, last = lives[base]
        beside = [
            other for other in offsets if lives[other][0] <= last and first <= lives[other][1]
        ]
        start = 0
        for other in sorted(beside, key=lambda other: offsets[other]):
            if offsets[other] - start >= sizes[base]:
                break
            start = max(start, _aligned(offsets[other] + sizes[other]))
        offsets[base] = start
    return Plan(offsets, max((offsets[base] + sizes[base] for base in offsets), default=0))


class Packs(NamedTuple):
    """Constants one after the other: tensors of TVM, and each constant's tensor and first byte."""

    tensors: list[Any]
    places: Mapping[Base, tuple[int, int]]


def pack_constants(lines: Sequence[Line]) -> list[Packs]:
    """Put the constants that are read by calls together, in the order in which they are read.

    Large ones stay where they are, each by itself. Lines share what is equal: the tensors are those
    of all of them.
    """
    tensors: list[Any] = []
    places: dict[str, tuple[int, int]] = {}
    packed: list[tuple[int, int, Any]] = []
    ends: dict[int, int] = {}
    found: list[dict[Base, tuple[int, int]]] = []
    for line in lines:
        found.append({})
        for tensor in (tensor for call in line.calls for tensor in call.tensors):
            base = tensor.base
            if base.kind != "constant" or base in found[-1]:
                continue
            value = line.constants[base.number].value
            name = _content(value)
            if name not in places:
                places[name] = _place(value, tensor.nbytes, tensors, ends)
                if tensors[places[name][0]] is not value:
                    packed.append((*places[name], value))
            found[-1][base] = places[name]
    for pack, end in ends.items():
        tensors[pack] = tvm.runtime.tensor(np.zeros(end, "uint8"))
    for pack, start, value in packed:
        values = np.ascontiguousarray(value.numpy()).reshape(-1).view("uint8")
        np.from_dlpack(tensors[pack])[start : start + len(values)] = values
    return [Packs(tensors, mine) for mine in found]


def _place(value: Any, nbytes: int, tensors: list[Any], ends: dict[int, int]) -> tuple[int, int]:
    """Find a tensor for a constant and the first byte in it; ``ends`` are those of packs."""
    if nbytes >= _LARGE_BYTES:
        tensors.append(value)
        return len(tensors) - 1, 0
    pack = next(reversed(ends), None)
    if pack is None or ends[pack] + nbytes > _PACK_BYTES:
        pack = len(tensors)
        ends[pack] = 0
        tensors.append(None)
    start = ends[pack]
    ends[pack] = _aligned(start + nbytes)
    return pack, start


def _content(value: Any) -> str:
    """Return what two constants have in common if and only if their bytes are equal."""
    array = np.ascontiguousarray(value.numpy())
    return hashlib.sha256(array.reshape(-1).view("uint8").data).hexdigest()


def _aligned(offset: int) -> int:
    return -(-offset // ALIGNMENT) * ALIGNMENT
