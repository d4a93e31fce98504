"""Kernels that are written with their schedule; there is nothing in them to tune."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from costlib.tvm_compat import tirx, tvm

_BY_HAND = {"schedule_rule": "None"}
"""Annotations of blocks that MetaSchedule's rules are to leave alone."""


def written_kernel(
    name: str,
    buffers: Sequence[Any],
    loops: Sequence[tuple[int, Any]],
    body: Callable[..., Any],
    scratch: Sequence[Any] = (),
) -> Any:
    """Return a function of one nest of loops.

    Parameters
    ----------
    name
        Of its block.
    buffers
        Its arguments, the result last.
    loops
        The extent of each loop and its kind, the outermost first.
    body
        Returns what is done, given the index of each loop.
    scratch
        Buffers that every step has for itself.
    """
    zero, extents = tirx.const(0, "int64"), [tirx.const(extent, "int64") for extent, _ in loops]
    variables = [tirx.Var(f"i{number}", "int64") for number in range(len(loops))]
    indices = [tirx.Var(f"v{variable.name}", "int64") for variable in variables]
    block = tvm.s_tir.SBlock(
        [
            tirx.IterVar((zero, extent), index, tirx.IterVar.DataPar)
            for extent, index in zip(extents, indices, strict=True)
        ],
        [whole(buffer) for buffer in buffers[:-1]],
        [whole(buffers[-1])],
        name,
        body(*indices),
        alloc_buffers=list(scratch),
        annotations=_BY_HAND,
    )
    nest = tvm.s_tir.SBlockRealize(variables, True, block)
    for variable, extent, (_, kind) in reversed(list(zip(variables, extents, loops, strict=True))):
        nest = tirx.For(variable, zero, extent, kind, nest)
    return tirx.PrimFunc(list(buffers), root(nest)).with_attr("tirx.noalias", True)


def indices_of(number: Any, extents: Sequence[int]) -> list[Any]:
    """Return the indices of what has a number in row-major order."""
    found = list[Any]()
    for extent in reversed(extents):
        found.append(tirx.indexmod(number, extent))
        number = tirx.indexdiv(number, extent)
    return found[::-1]


def root(nest: Any) -> Any:
    """Return the body of a function that consists of loops with a schedule."""
    block = tvm.s_tir.SBlock([], [], [], "root", nest, annotations=_BY_HAND)
    return tvm.s_tir.SBlockRealize([], True, block)


def whole(buffer: Any) -> Any:
    """Return all of a buffer as a region."""
    zero = tirx.const(0, "int64")
    return tirx.BufferRegion(
        buffer, [tvm.ir.Range.from_min_extent(zero, n) for n in buffer.ty.shape]
    )


def loop_of(extent: Any, body: Callable[[Any], Any], kind: Any = tirx.ForKind.SERIAL) -> Any:
    """Return a loop, or what it does once or never, if its extent is known and is that."""
    extent = number_of(extent) if isinstance(extent, int) else extent
    if isinstance(extent, tirx.IntImm) and extent.value == 0:
        return tirx.Evaluate(0)
    if isinstance(extent, tirx.IntImm) and extent.value == 1:
        return body(number_of(0))
    variable = tirx.Var("i", "int64")
    return tirx.For(variable, number_of(0), extent, kind, body(variable))


def number_of(value: int) -> Any:
    """Return an integer as indices have it."""
    return tirx.const(value, "int64")


def scratch_of(name: str, shape: Sequence[int], scope: str = "global") -> Any:
    """Return a float32 buffer for what a kernel keeps between its steps."""
    extents = [number_of(extent) for extent in shape]
    return tirx.decl_buffer(extents, "float32", name, scope=scope, layout=None)
