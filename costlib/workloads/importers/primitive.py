"""A single ``PrimFunc`` as a network: what it reads are the inputs, what it writes the outputs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from costlib.errors import UnsupportedModelError, quoted
from costlib.tvm_compat import nodes, relax, tirx, tvm
from costlib.tvm_compat.api import argument_shapes
from costlib.tvm_compat.rewriting import without_scopes

_EXPRESSIONS = ("min", "extent", "condition", "value", "expr")
_STATEMENTS = ("then_case", "else_case", "body")
_PARTS = ("a", "b", "value", "condition", "true_value", "false_value", "body", "base", "stride")
"""Operands of expressions, under whatever name they have."""


def called(mod: Any, name: str) -> Any:
    """Return a Relax module whose ``main`` calls the ``PrimFunc`` called ``main``.

    Outputs are the buffers that it writes, wherever they stand among its arguments; one that it
    reads before is an input as well, and the function gets a copy of that.

    Raises
    ------
    UnsupportedModelError
        It takes something besides buffers of static shape, or writes none of them.
    """
    function = mod["main"].without_attr("global_symbol")
    try:
        types = [relax.TensorType(shape, dtype) for dtype, shape in argument_shapes(mod)]
    except Exception as error:
        raise UnsupportedModelError(
            f"{name}: 'main' takes something besides buffers of static shape: {quoted(error)}"
        ) from None
    read_first, written = _uses(function.body)
    buffers = list(zip(function.params, types, strict=True))
    outputs = [(buffer, kind) for buffer, kind in buffers if buffer in written]
    if not outputs:
        raise UnsupportedModelError(f"{name}: 'main' writes none of its arguments")
    inputs = []
    body = function.body
    for buffer, kind in buffers:
        if buffer not in written:
            inputs.append((buffer, kind))
        elif buffer in read_first:
            before = tirx.Var(f"{buffer.name}_before", buffer.ty)
            inputs.append((before, kind))
            body = _after_copy(before, buffer, kind, body)
    params = [buffer for buffer, _ in (*inputs, *outputs)]
    function = tirx.PrimFunc(params, body, function.ret_type, function.attrs)
    return _caller(function, [kind for _, kind in inputs], [kind for _, kind in outputs])


def with_root(function: Any) -> Any:
    """Put the body of a ``PrimFunc`` into a block in a root block, as TVM's passes expect.

    Some have no block at all; what TVM scatters with has one that is no root.
    """
    if isinstance(function.body, nodes.SBlockRealize):
        if str(function.body.block.name_hint) == "root":
            return function
        root = tvm.s_tir.SBlock([], [], [], "root", without_scopes(function.body))
        return function.with_body(tvm.s_tir.SBlockRealize([], True, root))
    accesses = list(_accesses(function.body))
    reads, writes = (
        [_whole(p) for p in function.params if (p, is_written) in accesses]
        for is_written in (False, True)
    )
    inner = tvm.s_tir.SBlock([], reads, writes, "body", function.body)
    root = tvm.s_tir.SBlock([], [], [], "root", tvm.s_tir.SBlockRealize([], True, inner))
    return function.with_body(tvm.s_tir.SBlockRealize([], True, root))


def _whole(buffer: Any) -> Any:
    ranges = [tvm.ir.Range.from_min_extent(0, extent) for extent in buffer.ty.shape]
    return tirx.BufferRegion(buffer, ranges)


def _after_copy(source: Any, target: Any, kind: Any, body: Any) -> Any:
    """Put a block before what a root block does that copies a buffer to another."""
    extents = [int(extent) for extent in kind.shape]
    loops = [tirx.Var(f"i{axis}", "int32") for axis in range(len(extents))]
    axes = [
        tirx.IterVar((0, extent), f"v{axis}", tirx.IterVar.DataPar)
        for axis, extent in enumerate(extents)
    ]
    indices = [axis.var for axis in axes]
    region = [tvm.ir.Range.from_min_extent(index, 1) for index in indices]
    copy = tirx.BufferStore(target, tirx.BufferLoad(source, indices), indices)
    block = tvm.s_tir.SBlock(
        axes,
        [tirx.BufferRegion(source, region)],
        [tirx.BufferRegion(target, region)],
        f"{target.name}_copy",
        copy,
    )
    statement = tvm.s_tir.SBlockRealize(loops, True, block)
    for loop, extent in zip(reversed(loops), reversed(extents), strict=True):
        statement = tirx.For(loop, 0, extent, tirx.ForKind.SERIAL, statement)
    root = body.block
    whole = tvm.s_tir.SBlock(
        root.iter_vars,
        root.reads,
        root.writes,
        root.name_hint,
        tirx.SeqStmt([statement, root.body]),
        root.init,
        root.alloc_buffers,
        root.match_buffers,
        root.annotations,
    )
    return tvm.s_tir.SBlockRealize(body.iter_values, body.predicate, whole)


def _caller(function: Any, inputs: list[Any], results: list[Any]) -> Any:
    builder = relax.BlockBuilder()
    variable = builder.add_func(function, "operator")
    params = [relax.Var(f"x{place}", kind) for place, kind in enumerate(inputs)]
    with builder.function("main", params):
        with builder.dataflow():
            call = relax.call_tir(variable, params, results if len(results) > 1 else results[0])
            result = builder.emit_output(call)
        builder.emit_func_output(result)
    return builder.get()


def _uses(body: Any) -> tuple[set[Any], set[Any]]:
    """Return the buffers that are read before anything is written to them, and those written."""
    read_first: set[Any] = set()
    written: set[Any] = set()
    for buffer, is_written in _accesses(body):
        if is_written:
            written.add(buffer)
        elif buffer not in written:
            read_first.add(buffer)
    return read_first, written


def _accesses(node: Any) -> Iterator[tuple[Any, bool]]:
    """Yield (buffer, whether it is written) in the order in which a program does it."""
    if isinstance(node, nodes.SeqStmt):
        for part in node.seq:
            yield from _accesses(part)
    elif isinstance(node, nodes.SBlockRealize):
        for value in (*node.iter_values, node.predicate):
            yield from _reads(value)
        if node.block.init is not None:
            yield from _accesses(node.block.init)
        yield from _accesses(node.block.body)
    elif isinstance(node, nodes.BufferStore):
        for part in (*node.indices, node.value):
            yield from _reads(part)
        yield node.buffer, True
    else:  # A loop, a branch, an assertion, the definition of a variable.
        parts = [getattr(node, name, None) for name in _EXPRESSIONS]
        yield from (use for part in parts if isinstance(part, nodes.Expr) for use in _reads(part))
        inner = [getattr(node, name, None) for name in _STATEMENTS]
        yield from (use for part in inner if part is not None for use in _accesses(part))


def _reads(node: Any) -> Iterator[tuple[Any, bool]]:
    if isinstance(node, nodes.TensorLoad):
        yield node.source, False
        for index in node.indices:
            yield from _reads(index)
    elif isinstance(node, nodes.Call):
        for argument in node.args:
            yield from _reads(argument)
    else:
        for name in _PARTS:
            if isinstance(part := getattr(node, name, None), nodes.Expr):
                yield from _reads(part)
