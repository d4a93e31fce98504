"""What follows a convolution by Winograd, computed where its outputs are stored.

The kernel that makes outputs writes many in one step. TVM fuses a bias, a residual or an activation
into it, but as loops of their own over what it has written.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from costlib.tvm_compat import nodes, tirx, tvm
from costlib.tvm_compat.rewriting import BLOCK, Rewriter
from costlib.workloads.winograd_kernels import OUTPUT
from costlib.workloads.written_kernels import root, whole


@tvm.transform.module_pass(opt_level=0)  # type: ignore[untyped-decorator]
def with_what_follows(mod: Any, _context: Any) -> Any:
    """Put what TVM fused behind the output of a convolution by Winograd into its stores.

    What is not elementwise stays as it is.
    """
    result = tvm.IRModule(mod.functions, attrs=mod.attrs)
    for name, function in mod.functions.items():
        if isinstance(function, tirx.PrimFunc) and OUTPUT in str(name.name_hint):
            result.update_func(name, _joined(function))
    return result


def _joined(function: Any) -> Any:
    mod = tvm.IRModule({"main": function.with_attr("global_symbol", "main")})
    schedule = tvm.s_tir.Schedule(mod, error_render_level="none")
    blocks = schedule.get_child_blocks(schedule.get_sblock("root"))
    if len(blocks) == 1 or str(schedule.get(blocks[0]).name_hint) != OUTPUT:
        return function
    try:
        for between in blocks[1:-1]:
            schedule.compute_inline(between)
    except tvm.s_tir.ScheduleError:
        return function
    first, last = schedule.mod["main"].body.block.body.seq
    after = _block(last)
    (made,) = _block(first).writes
    if not is_elementwise(after, made.source):
        return function
    return function.with_body(root(_Stores(made.source, after).visit(first)))


def _block(nest: Any) -> Any:
    while isinstance(nest, nodes.For):
        nest = nest.body
    return nest.block


def is_elementwise(block: Any, buffer: Any) -> bool:
    """Whether each number that a block writes is made of the one in its place in a buffer."""
    axes = [axis.var for axis in block.iter_vars]

    def in_place(indices: Any) -> bool:
        return len(indices) == len(axes) and all(map(tvm.ir.Expr.same_as, indices, axes))

    if not isinstance(block.body, nodes.BufferStore) or not in_place(block.body.indices):
        return False
    reads = _Loads(buffer)
    reads.visit(block.body.value)
    return bool(reads.found) and all(in_place(load.indices) for load in reads.found)


class _Loads(Rewriter):
    """Finds where a buffer is read."""

    def __init__(self, buffer: Any) -> None:
        super().__init__()
        self._buffer = buffer
        self.found: list[Any] = []

    def replaced(self, node: Any, key: str, new: dict[str, Any]) -> Any | None:
        if isinstance(node, nodes.TensorLoad) and node.source.same_as(self._buffer):
            self.found.append(node)
        return None


class _Stores(Rewriter):
    """Stores what a block makes of a buffer's numbers, where they were stored."""

    def __init__(self, buffer: Any, after: Any) -> None:
        super().__init__()
        self._buffer, self._after = buffer, after

    def replaced(self, node: Any, key: str, new: dict[str, Any]) -> Any | None:
        store = self._after.body
        if key == BLOCK:
            others = [r.source for r in self._after.reads if not r.source.same_as(self._buffer)]
            new["reads"] = [*node.reads, *map(whole, others)]
            new["writes"] = [whole(store.buffer)]
            return tvm.ir.make_node(key, **new)
        if isinstance(node, nodes.BufferStore) and node.buffer.same_as(self._buffer):
            axes = [axis.var for axis in self._after.iter_vars]
            at = dict(zip(axes, node.indices, strict=True))
            made = _Substituted(at, self._buffer, node.value).visit(store.value)
            return tirx.BufferStore(store.buffer, made, node.indices)
        return None


class _Substituted(Rewriter):
    """Puts other expressions in the place of variables, and of what is read from a buffer."""

    def __init__(self, variables: Mapping[Any, Any], buffer: Any, value: Any) -> None:
        super().__init__()
        self._variables, self._buffer, self._value = variables, buffer, value

    def visit(self, node: Any) -> Any:
        if isinstance(node, tirx.Var) and node in self._variables:
            return self._variables[node]
        return super().visit(node)

    def replaced(self, node: Any, key: str, new: dict[str, Any]) -> Any | None:
        reads = isinstance(node, nodes.TensorLoad) and node.source.same_as(self._buffer)
        return self._value if reads else None
