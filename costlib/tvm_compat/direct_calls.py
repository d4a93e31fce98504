"""Networks whose kernels are called by one compiled function, not one by one by an interpreter.

Relax's virtual machine takes about a microsecond for each instruction, of which there are several a
kernel: allocating, packing, releasing. Where a network is a straight line, all calls go into one
function. If it is asked to, that notes the time before each of them and after the last.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from enum import IntEnum
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from costlib.tvm_compat import relax, tirx, tvm
from costlib.tvm_compat.concatenations import IN_PLACE, Joining, joined_in_place
from costlib.tvm_compat.straight_line import (
    ALIGNMENT,
    Base,
    Call,
    Line,
    NotStraightError,
    Packs,
    Tensor,
    line_of,
    pack_constants,
    plan_memory,
    static_type,
)

TRACED = "costlib_traced"
"""The function that returns what the network returns, and the clock at each call and at the end."""

CALLS = "costlib_calls"
"""The function that returns the names of what is called, as JSON."""

_CHANGED = re.compile(rf"(_prepacked)?({IN_PLACE}\d*)?$")
"""What TVM appends to the name of a kernel whose weights are laid out anew, and what we do."""

BODY = "costlib_body"
"""The one function, of inputs, outputs, constants, work space, clock and whether it is traced."""

MAIN = "main"
"""The function that computes the network."""

_STORED_AS_INTEGERS = ("bfloat16", "float8", "float4")
"""Types that TVM lowers to integers, also where it writes the type of an argument."""


class _Field(IntEnum):
    """TVM's numbers for the fields of a ``DLTensor``."""

    DATA = 1
    SHAPE = 2
    STRIDES = 3
    DIMENSIONS = 4
    TYPE_CODE = 5
    TYPE_BITS = 6
    TYPE_LANES = 7
    OFFSET = 8
    DEVICE_NUMBER = 9
    DEVICE = 10


_CLOCKS = {"x86_64": "llvm.readcyclecounter", "aarch64": "llvm.readsteadycounter"}


class Direct(NamedTuple):
    """What :data:`BODY` of a network is called with, in its order.

    Attributes
    ----------
    line
        Its inputs and outputs, its calls, and what is returned of it.
    constants
        Tensors of TVM.
    work_bytes
        Size of its work space.
    """

    line: Line
    constants: list[Any]
    work_bytes: int


def with_direct_calls(
    mod: Any,
    target: Any,
    joinings: Mapping[str, Joining] = MappingProxyType({}),
    on_direct: Callable[[Direct], None] = lambda direct: None,
) -> Any:
    """Give a module a ``main`` that calls its kernels directly.

    So does any other function of the network whose name begins so: that of another shape. A
    function that is no straight line stays as it is. The clock is noted by ``main`` alone.

    Parameters
    ----------
    mod
        After ``CallTIRRewrite``, before memory is planned.
    target
        What it is compiled for.
    joinings
        What :func:`costlib.tvm_compat.concatenations.concatenations` returns.
    on_direct
        Told what is called with what.
    """
    lines: dict[str, Line] = {}
    builder = relax.BlockBuilder(mod)
    for name in sorted(str(variable.name_hint) for variable in mod.get_global_vars()):
        if name.startswith(MAIN) and isinstance(mod[name], relax.Function):
            with suppress(NotStraightError):
                lines[name] = joined_in_place(line_of(mod, name), builder, joinings)
    mod = builder.get()
    packs = pack_constants(list(lines.values()))
    for (name, line), pack in zip(lines.items(), packs, strict=True):
        writer = _Writer(name, line, pack, target)
        if name == MAIN:
            on_direct(writer.direct)
        mod = writer.written_to(mod)
    return mod


def prepared_name(name: str) -> str:
    """Return what a kernel was called before its network was compiled."""
    return _CHANGED.sub("", name, count=1)


class _Writer:
    """Writes the function that calls, and those that allocate what it needs and call it."""

    def __init__(self, name: str, line: Line, packs: Packs, target: Any) -> None:
        self._name = name
        self._line = line
        self._plan = plan_memory(line)
        self._packs = packs
        self._work_bytes = max(self._plan.nbytes, ALIGNMENT)
        triple = target.attrs.get("mtriple") or tvm.target.codegen.llvm_get_system_triple()
        self._clock = _CLOCKS.get(str(triple).partition("-")[0])

    @property
    def direct(self) -> Direct:
        return Direct(self._line, self._packs.tensors, self._work_bytes)

    def written_to(self, mod: Any) -> Any:
        builder = relax.BlockBuilder(mod)
        body = builder.add_func(self._body(), f"{BODY}{self._name.removeprefix(MAIN)}")
        result = builder.get()
        caller = self._caller(body, traced=False)
        result.update_func(mod.get_global_var(self._name), caller)
        if self._clock is not None and self._name == MAIN:
            result[TRACED] = self._caller(body, traced=True)
            result[CALLS] = self._names()
        return result

    def _body(self) -> Any:
        """Write the function of inputs, outputs, constants, work space, clock and "traced"."""
        line, packs = self._line, self._packs
        parameters: list[Any] = []

        def parameter(name: str, shape: Sequence[int], dtype: str) -> Any:
            parameters.append(tirx.decl_buffer(shape, dtype, name=name))
            return parameters[-1]

        places: dict[Base, tuple[Any, int]] = {}
        for tensor in (*line.inputs, *line.outputs):
            kind, number = tensor.base
            places[tensor.base] = parameter(f"{kind}{number}", tensor.shape, tensor.dtype), 0
        pieces = [
            parameter(f"pack{n}", pack.shape, str(pack.dtype))
            for n, pack in enumerate(packs.tensors)
        ]
        places |= {base: (pieces[number], start) for base, (number, start) in packs.places.items()}
        work = parameter("work", [self._work_bytes], "uint8")
        places |= {base: (work, start) for base, start in self._plan.offsets.items()}
        clock = parameter("clock", [len(line.calls) + 1], "int64")
        traced = tirx.Var("traced", "int64")

        def note(number: int) -> list[Any]:
            if self._clock is None:
                return []
            now = tirx.call_llvm_intrin("int64", self._clock)
            return [tirx.IfThenElse(traced != 0, tirx.BufferStore(clock, now, [number]), None)]

        statements = note(0)
        for number, call in enumerate(line.calls, start=1):
            arrays = [_array(*places[tensor.base], tensor) for tensor in call.tensors]
            statements += [statement for array in arrays for statement in array.statements]
            statements += [_call(call, [array.value for array in arrays]), *note(number)]
        body = tirx.stmt_seq(*statements) if statements else tirx.Evaluate(0)
        function = tirx.PrimFunc([*parameters, traced], body)
        return function.with_attr({"tirx.is_scheduled": True, "tirx.noalias": True})

    def _caller(self, body: Any, *, traced: bool) -> Any:
        """Write a Relax function that allocates, and calls that one."""
        line = self._line
        params = [
            relax.Var(f"{t.base.kind}{t.base.number}", relax.TensorType(t.shape, t.dtype))
            for t in line.inputs
        ]
        builder = relax.BlockBuilder()

        def allocated(shape: Sequence[int], dtype: str) -> Any:
            return builder.emit(relax.op.builtin.alloc_tensor(relax.ShapeExpr(shape), dtype, 0))

        with builder.function("caller", params, attrs={"relax.force_pure": True}):
            outputs = [allocated(output.shape, output.dtype) for output in line.outputs]
            packs = [relax.const(pack, str(pack.dtype)) for pack in self._packs.tensors]
            work = allocated([self._work_bytes], "uint8")
            clock = allocated([len(line.calls) + 1], "int64")
            flag = relax.prim_value(tirx.IntImm("int64", int(traced)))
            builder.emit(relax.Call(body, [*params, *outputs, *packs, work, clock, flag]))
            made = {Base("constant", n): constant for n, constant in enumerate(line.constants)}
            tensors = (*line.inputs, *line.outputs)
            made |= {t.base: v for t, v in zip(tensors, (*params, *outputs), strict=True)}

            def returned(result: Any) -> Any:
                if isinstance(result, list):
                    return relax.Tuple([returned(part) for part in result])
                tensor = made[result.base]
                if static_type(tensor)[0] == result.shape:
                    return tensor
                return builder.emit(relax.op.reshape(tensor, result.shape))

            found = returned(line.result)
            builder.emit_func_output(relax.Tuple([found, clock]) if traced else found)
        return builder.get()["caller"]

    def _names(self) -> Any:
        text = json.dumps([call.name for call in self._line.calls])
        builder = relax.BlockBuilder()
        with builder.function("names", []):
            builder.emit_func_output(relax.const(np.frombuffer(text.encode(), "uint8")))
        return builder.get()["names"]


def _call(call: Call, arguments: Sequence[Any]) -> Any:
    is_kernel = isinstance(call.function, tvm.ir.GlobalVar)
    function = tirx.call_cpacked if is_kernel else tirx.call_packed
    return tirx.Evaluate(function(call.name, *arguments))


class _Array(NamedTuple):
    """A ``DLTensor`` on the stack, and the statements that write it before it is passed."""

    value: Any
    statements: Sequence[Any] = ()


def _array(buffer: Any, offset: int, tensor: Tensor) -> _Array:
    """Write a ``DLTensor``."""
    pointer = tirx.buffer.buffer_data(buffer)
    if offset:
        pointer = tirx.handle_add_byte_offset(pointer, offset)
    if tensor.dtype.startswith(_STORED_AS_INTEGERS):
        return _array_of_its_type(pointer, tensor)
    shape = tirx.tvm_stack_make_shape(*(tirx.IntImm("int64", extent) for extent in tensor.shape))
    return _Array(tirx.tvm_stack_make_array(pointer, shape, 0, len(tensor.shape), tensor.dtype, 0))


def _array_of_its_type(pointer: Any, tensor: Tensor) -> _Array:
    """Write a ``DLTensor`` field by field, as TVM would write another type into it."""
    array = tirx.Var("array", "handle")
    extents = tirx.Var("extents", tvm.ir.PointerType(tvm.ir.PrimType("int64")))
    dimensions = max(len(tensor.shape), 1)
    shape = tirx.decl_buffer([dimensions], "int64", data=extents)
    dtype = tvm.DataType(tensor.dtype)
    fields = {
        _Field.DATA: pointer,
        _Field.SHAPE: extents,
        _Field.STRIDES: tirx.reinterpret("handle", tirx.IntImm("uint64", 0)),
        _Field.DIMENSIONS: tirx.IntImm("int32", len(tensor.shape)),
        _Field.TYPE_CODE: tirx.IntImm("uint8", int(dtype.type_code)),
        _Field.TYPE_BITS: tirx.IntImm("uint8", int(dtype.bits)),
        _Field.TYPE_LANES: tirx.IntImm("uint16", 1),
        _Field.OFFSET: tirx.IntImm("uint64", 0),
        _Field.DEVICE_NUMBER: tirx.IntImm("int32", 0),
        _Field.DEVICE: tirx.IntImm("int32", 1),
    }
    return _Array(
        array,
        [
            tirx.Bind(array, tirx.tvm_stack_alloca("array", 1)),
            tirx.Bind(extents, tirx.tvm_stack_alloca("shape", dimensions)),
            tirx.DeclBuffer(shape, data=extents),
            *(
                tirx.BufferStore(shape, tirx.IntImm("int64", extent), [place])
                for place, extent in enumerate(tensor.shape)
            ),
            *(
                tirx.Evaluate(tirx.tvm_struct_set(array, 0, field, value))
                for field, value in fields.items()
            ),
        ],
    )
