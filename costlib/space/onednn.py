"""A task's program in which oneDNN computes the product, and TVM the rest.

Rows of the result are divided among TVM's threads, so that there are no others; each computes its
part by one call, and what follows the product while that part is in its cache.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from costlib.tvm_compat import nodes, tirx, tvm
from costlib.tvm_compat.onednn import MATMUL, calling_onednn
from costlib.workloads.winograd_fusion import is_elementwise

_LANES = 16
"""Columns of a step of what follows."""


class _Product(NamedTuple):
    """Buffers of `1 x ... x rows x depth`, `depth x columns` and `1 x ... x rows x columns`."""

    left: Any
    right: Any
    result: Any

    @property
    def extents(self) -> tuple[int, int, int]:
        """Rows, columns and depth."""
        depth, columns = map(int, self.right.ty.shape)
        return int(self.result.ty.shape[-2]), columns, depth


def by_onednn(mod: Any, threads: int) -> Any | None:
    """Return a module that computes what a task's does; ``None`` if it is no such task.

    It is a product of a float32 matrix with a matrix, and what is made of each number of it.

    Parameters
    ----------
    mod
        The task's, unscheduled.
    threads
        How many there are.
    """
    schedule = tvm.s_tir.Schedule(mod, error_render_level="none")
    first, *after = schedule.get_child_blocks(schedule.get_sblock("root"))
    product = _product_of(schedule.get(first))
    if product is None:
        return None
    try:
        for between in after[:-1]:
            schedule.compute_inline(between)
        if after and not is_elementwise(schedule.get(after[-1]), product.result):
            return None
        if not _divided(schedule, first, after, product, threads):
            return None
    except tvm.s_tir.ScheduleError:
        return None
    return _calling(schedule.mod, product, threads)


def _product_of(block: Any) -> _Product | None:
    """Read a block as a product; ``None`` if it is none."""
    store = block.body
    axes = [axis.var for axis in block.iter_vars]
    if not isinstance(store, nodes.BufferStore) or len(axes) < 3:
        return None
    *spatial, depth = axes
    added = store.value
    if not isinstance(added, nodes.Add) or not isinstance(added.b, nodes.Mul):
        return None
    left, right = added.b.a, added.b.b
    if not all(isinstance(load, nodes.TensorLoad) for load in (added.a, left, right)):
        return None
    places = {
        store.buffer: (store.indices, spatial),
        left.source: (left.indices, [*spatial[:-1], depth]),
        right.source: (right.indices, [depth, spatial[-1]]),
    }
    if len(places) < 3 or not all(_same(*pair) for pair in places.values()):
        return None
    product = _Product(left.source, right.source, store.buffer)
    is_float = all(str(buffer.ty.dtype) == "float32" for buffer in product)
    is_matrix = all(int(extent) == 1 for extent in store.buffer.ty.shape[:-2])
    return product if is_float and is_matrix else None


def _same(indices: Sequence[Any], wanted: Sequence[Any]) -> bool:
    return len(indices) == len(wanted) and all(map(tvm.ir.Expr.same_as, indices, wanted))


def _divided(
    schedule: Any, first: Any, after: Sequence[Any], product: _Product, threads: int
) -> bool:
    """Divide the result in parallel, and compute all of a part in one iteration, if that is even.

    A single row is divided by its columns.
    """
    rows, columns, _ = product.extents
    if columns % _LANES or (columns // _LANES if rows == 1 else rows) % threads:
        return False
    last = after[-1] if after else first
    loops = schedule.get_loops(last)[: len(product.result.ty.shape)]
    *outer, row, column = loops
    part, inner = schedule.split(column if rows == 1 else row, [threads, None])
    schedule.reorder(part, *outer, *([row] if rows == 1 else []))
    schedule.parallel(part)
    if after:
        schedule.compute_at(first, part)
        schedule.vectorize(schedule.split(inner if rows == 1 else column, [None, _LANES])[1])
    return True


def _calling(mod: Any, product: _Product, parts: int) -> Any:
    """Put a call in the place of the product's loops."""
    function = mod["main"]
    realize = function.body
    loop = realize.block.body
    is_alone = not isinstance(loop.body, nodes.SeqStmt)
    call = _call(product, loop.loop_var, parts)
    body = call if is_alone else tirx.SeqStmt([call, *list(loop.body.seq)[1:]])
    divided = tirx.For(loop.loop_var, loop.min, loop.extent, loop.kind, body)
    block = realize.block
    root = tvm.s_tir.SBlock(
        [], [], [], "root", divided, None, list(block.alloc_buffers), annotations=block.annotations
    )
    function = function.with_body(tvm.s_tir.SBlockRealize([], True, root))
    return tvm.IRModule({"main": calling_onednn(function)})


def _call(product: _Product, part: Any, parts: int) -> Any:
    """Return the block that computes a part."""
    rows, columns, depth = product.extents
    by_columns = rows == 1
    height, width = (1, columns // parts) if by_columns else (rows // parts, columns)
    row, column = (0, part * width) if by_columns else (part * height, 0)
    zero = tirx.const(0, "int64")

    def address(buffer: Any, *place: Any) -> Any:
        before = [zero] * (len(buffer.ty.shape) - 2)
        return tirx.address_of(tirx.BufferLoad(buffer, [*before, *place]))

    def region(buffer: Any, *ranges: tuple[Any, int]) -> Any:
        before = [(zero, 1)] * (len(buffer.ty.shape) - 2)
        found = [tvm.ir.Range.from_min_extent(at, n) for at, n in (*before, *ranges)]
        return tirx.BufferRegion(buffer, found)

    sizes = (height, width, depth, depth, columns, columns)
    called = tirx.call_extern(
        "int32",
        MATMUL,
        address(product.left, row, zero),
        address(product.right, zero, column),
        address(product.result, row, column),
        *(tirx.const(size, "int64") for size in sizes),
    )
    why = tvm.ir.StringImm("oneDNN is not here, or refuses this product")
    statement = tirx.AssertStmt(called == 0, tvm.ir.StringImm("RuntimeError"), [why])
    reads = [
        region(product.left, (row, height), (zero, depth)),
        region(product.right, (zero, depth), (column, width)),
    ]
    writes = [region(product.result, (row, height), (column, width))]
    block = tvm.s_tir.SBlock([], reads, writes, "onednn", statement)
    return tvm.s_tir.SBlockRealize([], True, block)
