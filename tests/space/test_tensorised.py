"""Products as instructions: that they are in the binary, and that they are right."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from costlib.errors import TargetError
from costlib.hardware import Hardware
from costlib.space.design_space import DesignSpace
from costlib.tvm_compat import te, tirx, tvm
from costlib.workloads.packed_products import LANES, packed
from costlib.workloads.task import Task

ROWS, DEPTH, COLUMNS = 12, 32, 48
TRIES = 4

INSTRUCTIONS = {
    "vpdpbusd": ("uint8", "int8", "int32", 4, ["+avx512vnni"]),
    "vpmaddwd": ("uint8", "int8", "int32", 4, []),
    "vdpbf16ps": ("bfloat16", "bfloat16", "float32", 2, ["+avx512bf16"]),
}


def product(left: str, right: str, sums: str, group: int, target: dict[str, Any]) -> Task:
    """Return the product of `12 x 32` and packed `32 x 48`."""
    x = te.placeholder((ROWS, DEPTH), left, name="x")
    weight = te.placeholder((COLUMNS // LANES, DEPTH // group, LANES, group), right, name="weight")
    outer, inner = te.reduce_axis((0, DEPTH // group)), te.reduce_axis((0, group))

    def value(i: Any, j: Any) -> Any:
        one = x[i, outer * group + inner].astype(sums)
        other = weight[j // LANES, outer, j % LANES, inner].astype(sums)
        return te.sum(one * other, axis=[outer, inner])

    result = te.compute((ROWS, COLUMNS), value, name="product")
    function = te.create_prim_func([x, weight, result]).with_attr("tirx.noalias", True)
    mod = tvm.IRModule({"main": function.with_attr("global_symbol", "main")})
    return Task("matmul_packed", mod, target)


def operands(left: str, right: str) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    if left == "bfloat16":
        one, other = rng.standard_normal((ROWS, DEPTH)), rng.standard_normal((DEPTH, COLUMNS))
        return one.astype(ml_dtypes.bfloat16), other.astype(ml_dtypes.bfloat16)
    x = rng.integers(0, 256, (ROWS, DEPTH)).astype(left)
    weight = rng.integers(-128, 128, (DEPTH, COLUMNS)).astype(right)
    x[0], weight[:, 0] = 255, -128  # Sums of two of these do not fit into 16 bits.
    return x, weight


@pytest.mark.parametrize("name", INSTRUCTIONS)
def test_the_instruction_is_in_the_binary_and_right(name: str) -> None:
    left, right, sums, group, mattr = INSTRUCTIONS[name]
    try:
        target = Hardware.local(mcpu="x86-64-v4", mattr=mattr).target
    except TargetError as error:
        pytest.skip(str(error))
    task = product(left, right, sums, group, target)
    space = DesignSpace(task)
    assert space.left is None
    x, weight = operands(left, right)
    expected = x.astype(sums) @ weight.astype(sums)
    given = [tvm.runtime.tensor(a) for a in (x, np.ascontiguousarray(packed(weight, group)))]
    schedules = (schedule for _, schedule in space.sample(1))
    found = 0
    for schedule, _ in zip(schedules, range(TRIES), strict=False):
        if schedule is None:
            continue
        library = tvm.build(schedule.mod, target=task.tvm_target())
        out = tvm.runtime.tensor(np.zeros((ROWS, COLUMNS), sums))
        library["main"](*given, out)
        if sums == "int32":
            np.testing.assert_array_equal(out.numpy(), expected)
        else:
            np.testing.assert_allclose(out.numpy(), expected, rtol=1e-4, atol=1e-4)
        found += library.inspect_source("asm").count(name)
    assert found > 0


def test_the_loop_around_an_instruction_is_not_vectorised() -> None:
    try:
        hardware = Hardware.local(mcpu="x86-64-v4")
    except TargetError as error:
        pytest.skip(str(error))
    space = DesignSpace(product("uint8", "int8", "int32", 4, hardware.target))
    schedule = next(schedule for _, schedule in space.sample(2) if schedule is not None)
    block = schedule.get_sblock("product_o_update")
    kinds = [int(schedule.get(loop).kind) for loop in schedule.get_loops(block)]
    assert tirx.ForKind.VECTORIZED not in kinds
    assert int(schedule.get(schedule.get_loops(block)[-1]).extent) == 1


@pytest.mark.parametrize("shape", [(5, 3), (4, 16), (3, 3, 7, 33)])
@pytest.mark.parametrize("group", [2, 4])
def test_packed_weights_are_filled_up_with_zeros(shape: tuple[int, ...], group: int) -> None:
    weight = np.arange(1, 1 + np.prod(shape)).reshape(shape)
    blocks = packed(weight, group)
    *window, depth, columns = shape
    assert blocks.shape == (-(-columns // LANES), *window, -(-depth // group), LANES, group)
    assert (blocks != 0).sum() == weight.size
    for at in ((0,) * len(shape), tuple(n - 1 for n in shape)):
        *place, k, n = at
        found = blocks[(n // LANES, *place, k // group, n % LANES, k % group)]
        assert found == weight[at]
