"""Products of tiles as tensor intrinsics: AMX's, for bfloat16 and for 8 bits.

A tile register holds 16 rows of 64 bytes. Weights that are packed for products of 16 lanes lie in
memory as the right-hand tile wants them. Which rows and bytes of a tile count has to be configured
in each thread before, and costs as much as several products; so it is done once for as many
products as are summed up in a call.

What is compiled has been seen in object code, and the same calls have been run with the products
computed by loops; none of it has been run on a processor that has AMX.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

from tvm.s_tir import TensorIntrin
from tvm.script import tirx as tirx_script

from costlib.tvm_compat import tvm

ROWS = LANES = 16
"""Of a tile, and of its result."""

_STEP = 16
"""Groups of products that one instruction sums up."""

_ROW_BYTES = 64


class Tiles(NamedTuple):
    """A product of tiles.

    Attributes
    ----------
    feature
        LLVM's name of what has it.
    left, right, sums
        Dtypes of activations, weights and sums.
    group
        Elements of a row that lie together.
    instruction
        LLVM's name of the product.
    groups
        Groups of products that a call sums up.
    """

    feature: str
    left: str
    right: str
    sums: str
    group: int
    instruction: str
    groups: int

    @property
    def name(self) -> str:
        """What the intrinsic is called."""
        return f"costlib_{self.instruction}_{self.groups}"

    @property
    def zero(self) -> str:
        """What the intrinsic is called that sets the sums to zero."""
        return f"costlib_zero_{self.sums}"

    @property
    def depth(self) -> int:
        """Elements of a row."""
        return self.groups * self.group


TILES = tuple(
    Tiles(*kind, groups)
    for kind in (
        ("amx-bf16", "bfloat16", "bfloat16", "float32", 2, "tdpbf16ps"),
        ("amx-int8", "uint8", "int8", "int32", 4, "tdpbusd"),
    )
    for groups in (128, 16)
)
"""Those for long sums first."""

_MEANING = """
@T.prim_func(s_tir=True)
def main(
    A: T.Buffer(({rows}, {depth}), "{left}", offset_factor=1),
    B: T.Buffer(({groups}, {lanes}, {group}), "{right}", offset_factor=1),
    C: T.Buffer(({rows}, {lanes}), "{sums}", offset_factor=1),
) -> None:
    with T.sblock("root"):
        T.reads(C[0:{rows}, 0:{lanes}], A[0:{rows}, 0:{depth}],
                B[0:{groups}, 0:{lanes}, 0:{group}])
        T.writes(C[0:{rows}, 0:{lanes}])
        for i, j, k, g in T.grid({rows}, {lanes}, {groups}, {group}):
            with T.sblock("update"):
                vi, vj, vk, vg = T.axis.remap("SSRR", [i, j, k, g])
                C[vi, vj] = C[vi, vj] + T.cast(A[vi, vk * {group} + vg], "{sums}") * T.cast(
                    B[vk, vj, vg], "{sums}")
"""

_CALL = """
@T.prim_func(s_tir=True)
def main(a: T.handle, b: T.handle, c: T.handle) -> None:
    sa = T.int32()
    sc = T.int32()
    A = T.match_buffer(a, ({rows}, {depth}), "{left}", offset_factor=1, strides=[sa, 1])
    B = T.match_buffer(b, ({groups}, {lanes}, {group}), "{right}", offset_factor=1)
    C = T.match_buffer(c, ({rows}, {lanes}), "{sums}", offset_factor=1, strides=[sc, 1])
    with T.sblock("root"):
        T.reads(C[0:{rows}, 0:{lanes}], A[0:{rows}, 0:{depth}],
                B[0:{groups}, 0:{lanes}, 0:{group}])
        T.writes(C[0:{rows}, 0:{lanes}])
        with T.attr(0, "pragma_import_llvm", CODE):
            T.evaluate(T.call_extern(
                "int32", "{name}",
                T.address_of(C[0, 0]), T.Cast("int64", sc) * T.int64({sum_bytes}),
                T.address_of(A[0, 0]), T.Cast("int64", sa) * T.int64({left_bytes}),
                T.address_of(B[0, 0, 0])))
"""

_ZERO = """
@T.prim_func(s_tir=True)
def main(C: T.Buffer(({rows}, {lanes}), "{sums}", offset_factor=1)) -> None:
    with T.sblock("root"):
        T.reads()
        T.writes(C[0:{rows}, 0:{lanes}])
        for i, j in T.grid({rows}, {lanes}):
            with T.sblock("init"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = T.{sums}(0)
"""

_ZERO_ROWS = """
@T.prim_func(s_tir=True)
def main(c: T.handle) -> None:
    sc = T.int32()
    C = T.match_buffer(c, ({rows}, {lanes}), "{sums}", offset_factor=1, strides=[sc, 1])
    with T.sblock("root"):
        T.reads()
        T.writes(C[0:{rows}, 0:{lanes}])
        for i in range({rows}):
            C[i, T.ramp(T.int32(0), 1, {lanes})] = T.broadcast(T.{sums}(0), {lanes})
"""

_BYTES = {"uint8": 1, "bfloat16": 2, "float32": 4, "int32": 4}


def code_of(tiles: Tiles) -> str:
    """Return the function that a call is of, as LLVM reads it.

    It takes the sums, the bytes from one row of them to the next, the same of the activations, and
    the weights.
    """
    config = [0] * 64
    config[0] = 1  # The only palette there is.
    for tile in range(3):
        config[16 + 2 * tile] = _ROW_BYTES
        config[48 + tile] = ROWS
    steps = "".join(
        f"""
  %a{n} = getelementptr i8, ptr %a, i64 {_ROW_BYTES * n}
  %b{n} = getelementptr i8, ptr %b, i64 {_STEP * _ROW_BYTES * n}
  call void @llvm.x86.tileloadd64(i8 1, ptr %a{n}, i64 %from_a)
  call void @llvm.x86.tileloadd64(i8 2, ptr %b{n}, i64 {_ROW_BYTES})
  call void @llvm.x86.{tiles.instruction}(i8 0, i8 1, i8 2)"""
        for n in range(tiles.groups // _STEP)
    )
    numbers = ", ".join(f"i8 {number}" for number in config)
    return f"""
@{tiles.name}_config = linkonce_odr hidden constant [64 x i8] [{numbers}], align 64
declare void @llvm.x86.ldtilecfg(ptr)
declare void @llvm.x86.tilerelease()
declare void @llvm.x86.tileloadd64(i8 immarg, ptr, i64)
declare void @llvm.x86.tilestored64(i8 immarg, ptr, i64)
declare void @llvm.x86.{tiles.instruction}(i8 immarg, i8 immarg, i8 immarg)
define linkonce_odr hidden i32 @{tiles.name}(
    ptr %c, i64 %from_c, ptr %a, i64 %from_a, ptr %b) nounwind {{
  call void @llvm.x86.ldtilecfg(ptr @{tiles.name}_config)
  call void @llvm.x86.tileloadd64(i8 0, ptr %c, i64 %from_c){steps}
  call void @llvm.x86.tilestored64(i8 0, ptr %c, i64 %from_c)
  call void @llvm.x86.tilerelease()
  ret i32 0
}}
"""


def register_as(tiles: Tiles, code: str) -> None:
    """Register a product of tiles that is computed by a function of LLVM's, and its zeros."""
    words = tiles._asdict() | {
        "name": tiles.name,
        "rows": ROWS,
        "lanes": LANES,
        "depth": tiles.depth,
        "sum_bytes": _BYTES[tiles.sums],
        "left_bytes": _BYTES[tiles.left],
    }
    names = {"T": tirx_script, "CODE": code}
    pairs = {tiles.name: (_MEANING, _CALL), tiles.zero: (_ZERO, _ZERO_ROWS)}
    for name, texts in pairs.items():
        meaning, done = (
            tvm.script.from_source(text.format(**words), extra_vars=names) for text in texts
        )
        TensorIntrin.register(name, meaning, done, override=True)


@functools.cache
def register() -> None:
    """Register all of them."""
    for tiles in TILES:
        register_as(tiles, code_of(tiles))
