"""Vectors that do not fill whole registers compute the same, however they are loaded."""

from __future__ import annotations

import numpy as np
import pytest

from costlib.hardware import Hardware
from costlib.tvm_compat import te, tvm

ROWS, INNER = 8, 24


def product(lanes, mcpu, dtype="float32"):
    a = te.placeholder((ROWS, INNER), dtype, name="a")
    w = te.placeholder((INNER, 2 * lanes), dtype, name="w")
    k = te.reduce_axis((0, INNER), name="k")
    c = te.compute((ROWS, 2 * lanes), lambda i, j: te.sum(a[i, k] * w[k, j], k), name="c")
    return vectorised([a, w, c], lanes, mcpu)


def vectorised(tensors, lanes, mcpu):
    schedule = tvm.s_tir.Schedule(tvm.IRModule({"main": te.create_prim_func(tensors)}))
    rows, columns, *inner = schedule.get_loops(schedule.get_sblock("c"))
    outer, vector = schedule.split(columns, [None, lanes])
    schedule.reorder(rows, outer, *inner, vector)
    schedule.vectorize(vector)
    if inner:
        schedule.decompose_reduction(schedule.get_sblock("c"), inner[0])
    return tvm.build(schedule.mod, target=tvm.target.Target({"kind": "llvm", "mcpu": mcpu}))


def is_masked(library):
    return "llvm.masked.load" in library.inspect_source("ll")


@pytest.mark.parametrize("lanes", [3, 7, 12, 15, 28, 60])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_it_computes_the_same(lanes, dtype):
    runs_here = Hardware.local().vector_bits == 512
    library = product(lanes, "x86-64-v4", dtype)
    assert is_masked(library) == (dtype == "float32" or lanes not in (12, 28, 60))
    if not runs_here:
        return
    rng = np.random.default_rng(0)
    a = rng.integers(-9, 9, (ROWS, INNER)).astype(dtype)
    w = rng.integers(-9, 9, (INNER, 2 * lanes)).astype(dtype)
    c = tvm.runtime.empty((ROWS, 2 * lanes), dtype)
    library["main"](tvm.runtime.tensor(a), tvm.runtime.tensor(w), c)
    np.testing.assert_array_equal(c.numpy(), a @ w)


@pytest.mark.parametrize("lanes", [4, 16, 20, 24, 32])
def test_what_fills_registers_is_loaded_as_ever(lanes):
    assert not is_masked(product(lanes, "x86-64-v4"))


def test_without_avx512_too():
    assert not is_masked(product(15, "x86-64-v3"))


def test_copies_are_left_alone():
    x = te.placeholder((4, 30), name="x")
    doubled = te.compute((4, 30), lambda i, j: x[i, j] * 2, name="c")
    assert not is_masked(vectorised([x, doubled], 15, "x86-64-v4"))
