"""Kinds of tasks that TVM's own rules fail on, or get wrong: each has programs, and they are right.

Several reductions, masks that are broadcast, windows of different sizes, scans, writes to
computed places, integers and booleans.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from costlib.hardware import Hardware
from costlib.space.design_space import DesignSpace
from costlib.tvm_compat import relax, tvm
from costlib.workloads import Task, extract_tasks

R = relax.op
PROGRAMS = 3


def tensor(*shape: int, dtype: str = "float32") -> Any:
    return relax.TensorType(shape, dtype)


def group_norm(x: Any, scale: Any, shift: Any) -> Any:
    return R.nn.silu(R.nn.group_norm(x, scale, shift, 4, 1, [2, 3]))


def attention_scores(q: Any, k: Any, mask: Any) -> Any:
    added = R.where(mask, relax.const(0.0), relax.const(-1e9))
    return R.add(R.divide(R.matmul(q, k), relax.const(4.0)), added)


def grouped_query(q: Any, k: Any) -> Any:
    return R.matmul(q, R.reshape(R.broadcast_to(k, (1, 2, 2, 16, 12)), (1, 4, 16, 12)))


KINDS: dict[str, tuple[Any, list[Any]]] = {
    "group_norm": (group_norm, [tensor(2, 16, 9, 9), tensor(16), tensor(16)]),
    "masked_scores": (
        attention_scores,
        [tensor(1, 4, 12, 16), tensor(1, 4, 16, 12), tensor(1, 1, 12, 12, dtype="bool")],
    ),
    "grouped_query": (grouped_query, [tensor(1, 4, 12, 16), tensor(1, 2, 1, 16, 12)]),
    "adaptive_average": (
        lambda x: R.nn.adaptive_avg_pool2d(x, (3, 3)),
        [tensor(1, 3, 7, 7)],
    ),
    "variance": (lambda x: R.variance(x, 1), [tensor(4, 33)]),
    "layer_norm": (
        lambda x, g, b: R.nn.layer_norm(x, g, b, axes=[-1]),
        [tensor(4, 64), tensor(64), tensor(64)],
    ),
    "integer_sum": (lambda x: R.sum(x, 1), [tensor(4, 33, dtype="int64")]),
    "any": (lambda x: R.max(R.astype(x, "int8"), 1), [tensor(4, 33, dtype="bool")]),
    "scatter": (
        lambda x, i, v: R.scatter_elements(x, i, v, 1, "add"),
        [tensor(4, 8), tensor(4, 5, dtype="int64"), tensor(4, 5)],
    ),
}

SCAN = """
@T.prim_func(s_tir=True)
def main(A: T.Buffer((16, 33), "float32"), B: T.Buffer((16, 33), "float32")):
    for i in range(16):
        with T.sblock("scan"):
            v = T.axis.spatial(16, i)
            T.reads(A[v, 0:33])
            T.writes(B[v, 0:33])
            total = T.sblock_alloc_buffer((1,), "float32")
            total[0] = T.float32(0)
            for k in range(33):
                total[0] = total[0] + A[v, k]
                B[v, k] = total[0]
"""


@pytest.fixture(params=[*KINDS, "scan"])
def task(request: pytest.FixtureRequest, hardware: Hardware) -> Task:
    if request.param == "scan":
        mod = tvm.IRModule({"main": tvm.script.from_source(SCAN)})
        return Task("scan", mod, hardware.target)
    make, types = KINDS[request.param]
    builder = relax.BlockBuilder()
    params = [relax.Var(f"x{i}", kind) for i, kind in enumerate(types)]
    with builder.function("main", params):
        with builder.dataflow():
            result = builder.emit_output(make(*params))
        builder.emit_func_output(result)
    return extract_tasks(builder.get(), hardware)[0]


def outputs(mod: Any, task: Task) -> np.ndarray:
    rng = np.random.default_rng(0)
    arguments = []
    for dtype, shape in task.arguments:
        is_float = dtype.startswith("float")
        values = rng.uniform(-1, 1, shape) if is_float else rng.integers(0, 2, shape)
        arguments.append(tvm.runtime.tensor(values.astype(dtype)))
    tvm.compile(mod, target=task.tvm_target())["main"](*arguments)
    return arguments[-1].numpy()


def test_programs_are_right(task: Task) -> None:
    space = DesignSpace(task)
    assert space.left is None
    expected = outputs(task.mod, task)
    drawn = list(itertools.islice(space.sample(0), PROGRAMS))
    valid = [schedule for _, schedule in drawn if schedule is not None]
    assert valid
    for schedule in valid:
        np.testing.assert_allclose(outputs(schedule.mod, task), expected, rtol=1e-3, atol=1e-5)


RECOMPUTED = """
@T.prim_func(s_tir=True)
def main(A: T.Buffer((4, 32), "float32"), B: T.Buffer((4, 32), "float32")):
    total = T.sblock_alloc_buffer((4,), "float32")
    for i, k in T.grid(4, 32):
        with T.sblock("sum"):
            v, r = T.axis.remap("SR", [i, k])
            with T.init():
                total[v] = T.float32(0)
            total[v] = total[v] + A[v, r]
    for i, j in T.grid(4, 32):
        with T.sblock("share"):
            v, w = T.axis.remap("SS", [i, j])
            B[v, w] = A[v, w] / total[v]
"""


def test_a_sum_that_is_computed_for_each_element_starts_from_zero(hardware: Hardware) -> None:
    """TVM's own postprocessor lets it go on growing."""
    task = Task(
        "share", tvm.IRModule({"main": tvm.script.from_source(RECOMPUTED)}), hardware.target
    )
    space = DesignSpace(task)
    expected = outputs(task.mod, task)
    recomputed = 0
    for program in itertools.islice(space.examples(0), 40):
        locations = [value for index, value in program.decisions if value == 1]
        schedule = space.lower(program)
        if schedule is None or "sum_init" not in schedule.mod.script() or not locations:
            continue
        recomputed += 1
        np.testing.assert_allclose(outputs(schedule.mod, task), expected, rtol=1e-3)
        if recomputed == 4:
            break
    assert recomputed
