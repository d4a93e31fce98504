"""Scheduled programs in words."""

from __future__ import annotations

from costlib.tvm_compat import te, tvm
from tools.benchmarks.loops import loops_of


def scheduled(parallel: bool) -> tvm.s_tir.Schedule:
    a, b = (te.placeholder((64, 48), name=name) for name in "ab")
    c = te.compute((64, 48), lambda i, j: a[i, j] + b[i, j], name="c")
    schedule = tvm.s_tir.Schedule(te.create_prim_func([a, b, c]))
    i, j = schedule.get_loops(schedule.get_sblock("c"))
    outer, inner = schedule.split(j, [None, 16])
    if parallel:
        schedule.parallel(i)
    schedule.vectorize(inner)
    schedule.annotate(outer, "pragma_auto_unroll_max_step", 64)
    return schedule


def test_a_loop_is_its_kind_and_its_extent() -> None:
    assert loops_of(scheduled(True).mod) == ["c: parallel 64 · 3 · vector 16 · unroll 64"]
    assert loops_of(scheduled(False).mod) == ["c: 64 · 3 · vector 16 · unroll 64"]


def test_loops_of_a_reduction_are_marked() -> None:
    a = te.placeholder((8, 32), name="a")
    k = te.reduce_axis((0, 32), name="k")
    total = te.compute((8,), lambda i: te.sum(a[i, k], axis=k), name="total")
    schedule = tvm.s_tir.Schedule(te.create_prim_func([a, total]))
    block = schedule.get_sblock("total")
    schedule.split(schedule.get_loops(block)[1], [4, 8])
    assert loops_of(schedule.mod) == ["total: 8 · k4 · k8"]
    schedule.decompose_reduction(block, schedule.get_loops(block)[1])
    assert loops_of(schedule.mod) == ["total_init: 8", "total_update: 8 · k4 · k8"]
