"""What a product reads next is asked for while it is computed with what it reads now."""

from __future__ import annotations

import numpy as np
import pytest

from costlib.tvm_compat import te, tvm

ROWS, INNER, COLUMNS, WIDTH = 32, 48, 96, 32
TARGET = {"kind": "llvm", "num-cores": 1}


def product(rows, inner, columns, step, dtype="float32"):
    """Build a product with weights that lie in the order in which they are read."""
    a = te.placeholder((rows, inner), dtype, name="a")
    blocks, steps = columns // WIDTH, inner // step
    w = te.placeholder((blocks, steps, step, WIDTH), dtype, name="w")
    k = te.reduce_axis((0, inner), name="k")
    c = te.compute(
        (rows, columns),
        lambda i, j: te.sum(a[i, k] * w[j // WIDTH, k // step, k % step, j % WIDTH], k),
        name="c",
    )
    module = tvm.IRModule({"main": te.create_prim_func([a, w, c])})
    schedule = tvm.s_tir.Schedule(module)
    block = schedule.get_sblock("c")
    i, j, k = schedule.get_loops(block)
    outer, lanes = schedule.split(j, [blocks, WIDTH])
    far, near = schedule.split(k, [steps, step])
    schedule.reorder(outer, far, i, near, lanes)
    schedule.vectorize(lanes)
    return tvm.build(schedule.mod, target=tvm.target.Target(TARGET))


def requests(library):
    return library.inspect_source("ll").count("call void @llvm.prefetch")


@pytest.mark.parametrize(("step", "dtype"), [(4, "float32"), (6, "float32"), (6, "float64")])
def test_it_computes_the_same(step, dtype):
    library = product(ROWS, INNER, COLUMNS, step, dtype)
    assert requests(library) >= step * WIDTH * np.dtype(dtype).itemsize // 64
    rng = np.random.default_rng(0)
    a = rng.normal(size=(ROWS, INNER)).astype(dtype)
    w = rng.normal(size=(INNER, COLUMNS)).astype(dtype)
    blocks = COLUMNS // WIDTH
    packed = w.reshape(INNER // step, step, blocks, WIDTH).transpose(2, 0, 1, 3).copy()
    c = tvm.runtime.empty((ROWS, COLUMNS), dtype)
    library["main"](tvm.runtime.tensor(a), tvm.runtime.tensor(packed), c)
    np.testing.assert_allclose(c.numpy(), a @ w, rtol=1e-4, atol=1e-4)


def test_it_does_not_pay_where_lines_are_used_little():
    assert requests(product(8, INNER, COLUMNS, 6)) == 0


def test_the_processor_sees_a_long_piece_coming():
    assert requests(product(ROWS, 2 * INNER, COLUMNS, INNER)) == 0


def test_other_targets_are_left_alone():
    a = te.placeholder((4,), name="a")
    module = tvm.IRModule({"main": te.create_prim_func([a, te.compute((4,), lambda i: a[i] + 1)])})
    built = tvm.build(module, target=tvm.target.Target({"kind": "c"}))
    assert "prefetch" not in built.inspect_source()
