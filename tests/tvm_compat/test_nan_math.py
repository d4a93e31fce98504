"""Maxima, minima and comparisons as they are compiled, with NaN and infinities."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from costlib.space.design_space import DesignSpace
from costlib.tvm_compat import te, tirx, tvm
from costlib.workloads import Task

SPECIAL = np.array([0.0, 1.0, -2.0, np.inf, -np.inf, np.nan], "float32")
A, B = (grid.ravel().copy() for grid in np.meshgrid(SPECIAL, SPECIAL))
DEEP = 20
TARGET = {"kind": "llvm", "num-cores": 1}


def computed(function, *arrays, dtype="float32"):
    inputs = [te.placeholder(a.shape, str(a.dtype), name=f"x{i}") for i, a in enumerate(arrays)]
    output = function(*inputs)
    module = tvm.IRModule({"main": te.create_prim_func([*inputs, output])})
    library = tvm.build(module, target=tvm.target.Target(TARGET))
    tensors = [tvm.runtime.tensor(a) for a in arrays]
    result = tvm.runtime.tensor(np.zeros([int(n) for n in output.shape], dtype))
    library["main"](*tensors, result)
    return result.numpy()


def with_constant(function, bound, is_first, a):
    constant = tirx.const(bound, "float32")
    sides = (lambda x: (constant, x)) if is_first else (lambda x: (x, constant))
    return te.compute(a.shape, lambda i: function(*sides(a[i])))


@pytest.mark.parametrize(("ours", "theirs"), [(tirx.max, np.maximum), (tirx.min, np.minimum)])
def test_of_two_operands(ours, theirs):
    both = computed(lambda a, b: te.compute(a.shape, lambda i: ours(a[i], b[i])), A, B)
    np.testing.assert_array_equal(both, theirs(A, B))
    for bound in (0.0, np.float32(1.5)):
        constants = np.full(len(A), bound, "float32")
        first = computed(partial(with_constant, ours, float(bound), True), A)
        last = computed(partial(with_constant, ours, float(bound), False), A)
        np.testing.assert_array_equal(first, theirs(A, constants))
        np.testing.assert_array_equal(last, theirs(A, constants))


def test_many_in_a_row_are_written_out_once_each() -> None:
    """TVM's simplifier takes time exponential in the depth of named values."""

    def clipped(a):
        def value(i):
            x = a[i]
            for _ in range(DEEP):
                x = tirx.max(
                    tirx.min(x * 2, tirx.const(3.0, "float32")), tirx.const(-1.0, "float32")
                )
            return x

        return te.compute(a.shape, value)

    np.testing.assert_array_equal(
        computed(clipped, SPECIAL), np.array([0, 3, -1, 3, -1, np.nan], "float32")
    )


def test_different_from_itself_is_nan_alone():
    found = computed(
        lambda a, b: te.compute(a.shape, lambda i: (a[i] != b[i]).astype("float32")), A, B
    )
    np.testing.assert_array_equal(found, (A != B).astype("float32"))


def test_booleans_are_compared():
    bits = np.array([True, False, True, False])
    found = computed(
        lambda a, b: te.compute(a.shape, lambda i: (a[i] == b[i]).astype("float32")),
        bits,
        bits[::-1].copy(),
    )
    np.testing.assert_array_equal(found, (bits == bits[::-1]).astype("float32"))


@pytest.mark.parametrize(("ours", "theirs"), [(te.max, np.max), (te.min, np.min)])
def test_reductions_in_every_schedule(ours, theirs):
    rows = np.stack(
        [SPECIAL[:3], SPECIAL[1:4], SPECIAL[3:], np.full(3, -np.inf), np.full(3, np.inf)]
    )
    rows = rows.astype("float32")
    k = te.reduce_axis((0, 3), name="k")
    x = te.placeholder(rows.shape, "float32", name="x")
    y = te.compute((len(rows),), lambda i: ours(x[i, k], axis=k), name="y")
    task = Task("extreme", tvm.IRModule({"main": te.create_prim_func([x, y])}), TARGET)
    schedules = (schedule for _, schedule in DesignSpace(task).sample(0) if schedule is not None)
    for schedule, _ in zip(schedules, range(3), strict=False):
        library = tvm.build(schedule.mod, target=task.tvm_target())
        result = tvm.runtime.tensor(np.zeros(len(rows), "float32"))
        library["main"](tvm.runtime.tensor(rows), result)
        np.testing.assert_array_equal(result.numpy(), theirs(rows, axis=1))
