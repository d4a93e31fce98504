"""Products as instructions: that they are in the binary, and that they are right."""

from __future__ import annotations

import itertools
import re
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from costlib.errors import TargetError
from costlib.hardware import Hardware, make_target
from costlib.measure.jobs import allocate
from costlib.space.design_space import DesignSpace
from costlib.tvm_compat import te, tiles, tirx, tvm
from costlib.tvm_compat.api import argument_shapes
from costlib.workloads import extract_tasks
from costlib.workloads.packed_products import packed
from costlib.workloads.task import Task

ROWS, DEPTH, COLUMNS = 12, 32, 48
LANES = 16
TRIES = 4

SPILLED = re.compile(r"vmov\w+\s+%zmm\d+, -?\d*\(%rsp\)")
"""A vector that is stored on the stack."""

INSTRUCTIONS = {
    "vpdpbusd": ("uint8", "int8", "int32", 4, ["+avx512vnni"]),
    "vpmaddwd": ("uint8", "int8", "int32", 4, []),
    "vdpbf16ps": ("bfloat16", "bfloat16", "float32", 2, ["+avx512bf16"]),
}


def product(
    left: str,
    right: str,
    sums: str,
    group: int,
    target: dict[str, Any],
    rows: int = ROWS,
    depth: int = DEPTH,
    columns: int = COLUMNS,
    steps: int = 0,
) -> Task:
    """Return the product of `rows x depth` and packed `depth x columns`, scaled in steps."""
    x = te.placeholder((rows, depth), left, name="x")
    weight = te.placeholder((columns // LANES, depth // group, LANES, group), right, name="weight")
    outer, inner = te.reduce_axis((0, depth // group)), te.reduce_axis((0, group))

    def value(i: Any, j: Any) -> Any:
        one = x[i, outer * group + inner].astype(sums)
        other = weight[j // LANES, outer, j % LANES, inner].astype(sums)
        return te.sum(one * other, axis=[outer, inner])

    result = te.compute((rows, columns), value, name="product")
    if steps:
        sums_of = result

        def scaled(i: Any, j: Any) -> Any:
            value = sums_of[i, j].astype("float32")
            for step in range(steps):
                value = value / (x[i, step % depth].astype("float32") + 1.5)
            return value

        result = te.compute((rows, columns), scaled, name="scaled")
    function = te.create_prim_func([x, weight, result]).with_attr("tirx.noalias", True)
    mod = tvm.IRModule({"main": function.with_attr("global_symbol", "main")})
    return Task("matmul_packed", mod, target)


def operands(
    left: str, right: str, rows: int = ROWS, depth: int = DEPTH, columns: int = COLUMNS
) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    if left == "bfloat16":
        one, other = rng.standard_normal((rows, depth)), rng.standard_normal((depth, columns))
        return one.astype(ml_dtypes.bfloat16), other.astype(ml_dtypes.bfloat16)
    x = rng.integers(0, 256, (rows, depth)).astype(left)
    weight = rng.integers(-128, 128, (depth, columns)).astype(right)
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
    given = [tvm.runtime.tensor(a) for a in (x, np.ascontiguousarray(packed(weight, group, LANES)))]
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


def test_what_a_program_pads_itself_stays_bfloat16() -> None:
    """TVM makes float32 of a program's own buffers, and LLVM then refused the instruction."""
    try:
        hardware = Hardware.local(mcpu="x86-64-v4", mattr=["+avx512bf16"])
    except TargetError as error:
        pytest.skip(str(error))
    tasks = extract_tasks("conv2d 1 32 6 6 32 3 pad=1+bf16", hardware)
    (task,) = (task for task in tasks if "packed" in task.name)
    drawn = (schedule for _, schedule in DesignSpace(task).sample(0) if schedule is not None)
    outputs, found = [], 0
    for mod in (task.mod, *(schedule.mod for schedule in itertools.islice(drawn, TRIES))):
        library = tvm.build(mod, target=task.tvm_target())
        given = allocate(argument_shapes(task.mod), tvm.cpu())
        for argument in given[:-1]:
            rng = np.random.default_rng(0)
            argument.copyfrom(rng.standard_normal(argument.shape).astype(argument.numpy().dtype))
        library["main"](*given)
        outputs.append(given[-1].numpy().astype("float32"))
        found += library.inspect_source("asm").count("vdpbf16ps")
    assert found > 0
    for output in outputs[1:]:
        np.testing.assert_allclose(output, outputs[0], rtol=1e-2, atol=1e-3)


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


@pytest.mark.parametrize("name", ["vpdpbusd", "vdpbf16ps"])
def test_sums_stay_in_registers(name: str) -> None:
    left, right, sums, group, mattr = INSTRUCTIONS[name]
    try:
        hardware = Hardware.local(mcpu="x86-64-v4", mattr=mattr)
    except TargetError as error:
        pytest.skip(str(error))
    task = product(left, right, sums, group, hardware.target, 256, 256, 256)
    space = DesignSpace(task)
    drawn = [schedule for (_, schedule), _ in zip(space.sample(4), range(32), strict=False)]
    assert None in drawn  # It needs more of them, and is refused.
    programs = [one for one in drawn if one and "product_o_update" in one.mod.script()]
    built = [tvm.build(one.mod, target=task.tvm_target()) for one in programs[:8]]
    texts = [library.inspect_source("asm") for library in built]
    assert all(name in text for text in texts)
    assert sum(SPILLED.search(text) is not None for text in texts) <= 1  # Of TVM's tiles, half.


def scaled_programs(steps: int, columns: int) -> list[Any]:
    """Random schedules with the instruction of a product that is scaled in so many steps."""
    try:
        hardware = Hardware.local(mcpu="x86-64-v4")
    except TargetError as error:
        pytest.skip(str(error))
    task = product("uint8", "int8", "int32", 4, hardware.target, 64, DEPTH, columns, steps)
    drawn = zip(DesignSpace(task).sample(3), range(12), strict=False)
    schedules = [schedule for (_, schedule), _ in drawn if schedule is not None]
    found = [one for one in schedules if "product_o_update" in one.mod.script()]
    assert found
    return found


def test_what_follows_an_instruction_is_of_vectors() -> None:
    for schedule in scaled_programs(1, 320):
        *_, last = schedule.get_loops(schedule.get_sblock("scaled"))
        assert int(schedule.get(last).kind) == tirx.ForKind.VECTORIZED


def test_much_that_follows_an_instruction_is_not_unrolled() -> None:
    most = 0
    for schedule in scaled_programs(40, 64):
        assembly = tvm.build(schedule.mod, target=Hardware.local().tvm_target())
        most = max(most, assembly.inspect_source("asm").count("vdivps"))
    assert 0 < most < 2500, "64 x 64 times 40 are 10240 vectors"


@pytest.mark.parametrize("shape", [(5, 3), (4, 16), (3, 3, 7, 33)])
@pytest.mark.parametrize(("group", "lanes"), [(2, 16), (4, 16), (4, 4)])
def test_packed_weights_are_filled_up_with_zeros(
    shape: tuple[int, ...], group: int, lanes: int
) -> None:
    weight = np.arange(1, 1 + np.prod(shape)).reshape(shape)
    blocks = packed(weight, group, lanes)
    *window, depth, columns = shape
    assert blocks.shape == (-(-columns // lanes), *window, -(-depth // group), lanes, group)
    assert (blocks != 0).sum() == weight.size
    for at in ((0,) * len(shape), tuple(n - 1 for n in shape)):
        *place, k, n = at
        found = blocks[(n // lanes, *place, k // group, n % lanes, k % group)]
        assert found == weight[at]


SAPPHIRE = {
    "kind": "llvm",
    "mcpu": "sapphirerapids",
    "num-cores": 1,
    "mattr": ["+amx-bf16", "+amx-int8", "+amx-tile"],
}

_LOOPS = """
define linkonce_odr hidden i32 @{name}(
    ptr %c, i64 %from_c, ptr %a, i64 %from_a, ptr %b) noinline nounwind {{
entry:
  br label %loop
loop:
  %n = phi i64 [ 0, %entry ], [ %next, %loop ]
  %g = urem i64 %n, {group}
  %r0 = udiv i64 %n, {group}
  %k = urem i64 %r0, {groups}
  %r1 = udiv i64 %r0, {groups}
  %j = urem i64 %r1, 16
  %i = udiv i64 %r1, 16
  %ka = mul i64 %k, {group}
  %ag = add i64 %ka, %g
  %row_a = mul i64 %i, %from_a
  %pa0 = getelementptr i8, ptr %a, i64 %row_a
  %pa = getelementptr {narrow}, ptr %pa0, i64 %ag
  %kb = mul i64 %k, 16
  %jb = add i64 %kb, %j
  %gb = mul i64 %jb, {group}
  %bi = add i64 %gb, %g
  %pb = getelementptr {narrow}, ptr %b, i64 %bi
  %row_c = mul i64 %i, %from_c
  %pc0 = getelementptr i8, ptr %c, i64 %row_c
  %pc = getelementptr {wide}, ptr %pc0, i64 %j
  %va = load {narrow}, ptr %pa
  %vb = load {narrow}, ptr %pb
  %vc = load {wide}, ptr %pc
{product}
  store {wide} %sum, ptr %pc
  %next = add i64 %n, 1
  %done = icmp eq i64 %next, {count}
  br i1 %done, label %end, label %loop
end:
  ret i32 0
}}
"""
_OF_INTEGERS = """  %xa = zext i8 %va to i32
  %xb = sext i8 %vb to i32
  %xy = mul i32 %xa, %xb
  %sum = add i32 %vc, %xy"""
_OF_BF16 = """  %za = zext i16 %va to i32
  %zb = zext i16 %vb to i32
  %ua = shl i32 %za, 16
  %ub = shl i32 %zb, 16
  %xa = bitcast i32 %ua to float
  %xb = bitcast i32 %ub to float
  %xy = fmul float %xa, %xb
  %sum = fadd float %vc, %xy"""


def loops_of(kind: tiles.Tiles) -> str:
    """Return a function that computes by loops what a call of tiles computes."""
    is_float = kind.sums == "float32"
    return _LOOPS.format(
        name=kind.name,
        group=kind.group,
        groups=kind.groups,
        narrow="i16" if is_float else "i8",
        wide="float" if is_float else "i32",
        product=_OF_BF16 if is_float else _OF_INTEGERS,
        count=16 * 16 * kind.groups * kind.group,
    )


def with_tiles(task: Task, kind: tiles.Tiles) -> list[Any]:
    """Return programs of a task that call products of tiles of a kind."""
    schedules = (schedule for _, schedule in DesignSpace(task).sample(1))
    found = (schedule for schedule, _ in zip(schedules, range(10 * TRIES), strict=False))
    return [one for one in found if one is not None and kind.name in one.mod.script()]


@pytest.mark.parametrize("kind", tiles.TILES, ids=lambda kind: kind.name)
def test_tiles_are_in_the_object_code_and_their_calls_are_right(
    kind: tiles.Tiles, hardware: Hardware, request: pytest.FixtureRequest
) -> None:
    """This runs on no processor with AMX: what a call computes is computed by loops."""
    rows, depth, columns = 32, kind.depth, 48
    target = make_target(SAPPHIRE)
    task = product(kind.left, kind.right, kind.sums, kind.group, SAPPHIRE, rows, depth, columns)
    programs = with_tiles(task, kind)
    assert programs
    assembly = tvm.build(programs[0].mod, target=target).inspect_source("asm")
    for instruction in ("ldtilecfg", "tileloadd", kind.instruction, "tilestored", "tilerelease"):
        assert f"\t{instruction}" in assembly, instruction
    request.addfinalizer(lambda: tiles.register_as(kind, tiles.code_of(kind)))
    tiles.register_as(kind, loops_of(kind))
    x, weight = operands(kind.left, kind.right, rows, depth, columns)
    expected = x.astype(kind.sums) @ weight.astype(kind.sums)
    blocks = np.ascontiguousarray(packed(weight, kind.group, LANES))
    given = [tvm.runtime.tensor(array) for array in (x, blocks)]
    for schedule in with_tiles(task, kind)[:TRIES]:
        out = tvm.runtime.tensor(np.ones((rows, columns), kind.sums))
        tvm.build(schedule.mod, target=hardware.tvm_target())["main"](*given, out)
        np.testing.assert_allclose(out.numpy(), expected, rtol=1e-3, atol=1e-3)


def test_no_tiles_where_they_are_not_asked_for() -> None:
    kind = tiles.TILES[0]
    target = SAPPHIRE | {"mattr": []}
    task = product(kind.left, kind.right, kind.sums, kind.group, target, 32, kind.depth, 32)
    assert not with_tiles(task, kind)
