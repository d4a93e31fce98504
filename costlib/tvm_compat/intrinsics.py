"""Tensor intrinsics of processors that TVM lacks, or has wrong.

Each computes a vector of sums, of a few products each, from weights that lie in memory as it wants
them. TVM's own for 8 bits on x86 do not fit LLVM 22, whose VNNI takes bytes where it took words, or
saturate sums of two products, which these do not.
"""

# mypy: ignore-errors
# ruff: noqa: N803, N806, N812
from __future__ import annotations

import functools
from typing import Any

from tvm.s_tir import TensorIntrin
from tvm.s_tir.tensor_intrin import x86
from tvm.script import tirx as T

VNNI: str = x86.VNNI_DOT_16x4_INTRIN
AVX512: str = x86.AVX512_DOT_16x4_INTRIN
ARM_SDOT = "dot_4x4_i8i8s32_sdot"
ARM_NEON = "dot_4x4_i8i8s32_neon"
"""TVM's for ARM64; the module that has the names parses all of them, which takes a second."""

ARM_USDOT = "dot_4x4_u8i8i32_usdot"
"""A product of unsigned bytes by signed ones: I8MM."""

BF16 = "dot_16x2_bf16"
"""A product of bfloat16, summed in float32: AVX512-BF16."""


_BF16_FUNCTION = """
declare <16 x float> @llvm.x86.avx512bf16.dpbf16ps.512(<16 x float>, <32 x bfloat>, <32 x bfloat>)
define linkonce_odr hidden <16 x float>
@costlib_dot_bf16(<16 x float> %c, <16 x i32> %a, <16 x i32> %b, ptr, ptr) alwaysinline nounwind {
  %x = bitcast <16 x i32> %a to <32 x bfloat>
  %y = bitcast <16 x i32> %b to <32 x bfloat>
  %r = call <16 x float> @llvm.x86.avx512bf16.dpbf16ps.512(
      <16 x float> %c, <32 x bfloat> %x, <32 x bfloat> %y)
  ret <16 x float> %r
}
"""
"""LLVM's intrinsic takes bfloat16, which TVM turns into float32 before LLVM sees it. Buffers of a
program's own, such as padded images, stay bfloat16 only if their address is passed to a function:
hence two pointers that nothing reads."""


@T.prim_func(s_tir=True)
def _vnni(
    A: T.Buffer((4,), "uint8", offset_factor=1),
    B: T.Buffer((16, 4), "int8", offset_factor=1),
    C: T.Buffer((16,), "int32", offset_factor=1),
) -> None:
    with T.sblock("root"):
        T.reads(C[0:16], A[0:4], B[0:16, 0:4])
        T.writes(C[0:16])
        A_word = T.reinterpret(A.vload([0], "uint8x4"), dtype="int32")
        C[T.ramp(T.int32(0), 1, 16)] = T.call_llvm_pure_intrin(
            T.llvm_lookup_intrinsic_id("llvm.x86.avx512.vpdpbusd.512"),
            C.vload([0], dtype="int32x16"),
            T.reinterpret(T.broadcast(A_word, 16), dtype="int8x64"),
            B.vload([0, 0], dtype="int8x64"),
            dtype="int32x16",
        )


@T.prim_func(s_tir=True)
def _avx512(
    A: T.Buffer((4,), "uint8", offset_factor=1),
    B: T.Buffer((16, 4), "int8", offset_factor=1),
    C: T.Buffer((16,), "int32", offset_factor=1),
) -> None:
    with T.sblock("root"):
        T.reads(C[0:16], A[0:4], B[0:16, 0:4])
        T.writes(C[0:16])
        A_word = T.reinterpret(A.vload([0], "uint8x4"), dtype="int32")
        A_pairs = T.reinterpret(T.broadcast(A_word, 16), dtype="uint16x32")
        B_pairs = T.reinterpret(B.vload([0, 0], dtype="int8x64"), dtype="int16x32")
        C[T.ramp(T.int32(0), 1, 16)] += T.call_llvm_pure_intrin(
            T.llvm_lookup_intrinsic_id("llvm.x86.avx512.pmaddw.d.512"),
            T.reinterpret(T.bitwise_and(A_pairs, T.uint16x32(255)), dtype="int16x32"),
            T.shift_right(T.shift_left(B_pairs, T.int16x32(8)), T.int16x32(8)),
            dtype="int32x16",
        ) + T.call_llvm_pure_intrin(
            T.llvm_lookup_intrinsic_id("llvm.x86.avx512.pmaddw.d.512"),
            T.reinterpret(T.shift_right(A_pairs, T.uint16x32(8)), dtype="int16x32"),
            T.shift_right(B_pairs, T.int16x32(8)),
            dtype="int32x16",
        )


@T.prim_func(s_tir=True)
def _bf16_meaning(
    A: T.Buffer((2,), "bfloat16", offset_factor=1),
    B: T.Buffer((16, 2), "bfloat16", offset_factor=1),
    C: T.Buffer((16,), "float32", offset_factor=1),
) -> None:
    with T.sblock("root"):
        T.reads(C[0:16], A[0:2], B[0:16, 0:2])
        T.writes(C[0:16])
        for i in T.serial(0, 16):
            for k in T.serial(0, 2):
                with T.sblock("update"):
                    vi, vk = T.axis.remap("SR", [i, k])
                    C[vi] = C[vi] + T.cast(A[vk], "float32") * T.cast(B[vi, vk], "float32")


@T.prim_func(s_tir=True)
def _bf16(
    A: T.Buffer((2,), "bfloat16", offset_factor=1),
    B: T.Buffer((16, 2), "bfloat16", offset_factor=1),
    C: T.Buffer((16,), "float32", offset_factor=1),
) -> None:
    with T.sblock("root"):
        T.reads(C[0:16], A[0:2], B[0:16, 0:2])
        T.writes(C[0:16])
        with T.attr(0, "pragma_import_llvm", _BF16_FUNCTION):
            C[T.ramp(T.int32(0), 1, 16)] = T.call_extern(
                "float32x16",
                "costlib_dot_bf16",
                C.vload([0], dtype="float32x16"),
                T.broadcast(T.reinterpret(A.vload([0], "bfloat16x2"), dtype="int32"), 16),
                T.reinterpret(B.vload([0, 0], dtype="bfloat16x32"), dtype="int32x16"),
                A.data,
                B.data,
            )


@T.prim_func(s_tir=True)
def _usdot_meaning(
    A: T.Buffer((4,), "uint8", offset_factor=1),
    B: T.Buffer((4, 4), "int8", offset_factor=1),
    C: T.Buffer((4,), "int32", offset_factor=1),
) -> None:
    with T.sblock("root"):
        T.reads(C[0:4], A[0:4], B[0:4, 0:4])
        T.writes(C[0:4])
        for i in T.serial(0, 4):
            for k in T.serial(0, 4):
                with T.sblock("update"):
                    vi, vk = T.axis.remap("SR", [i, k])
                    C[vi] = C[vi] + T.cast(A[vk], "int32") * T.cast(B[vi, vk], "int32")


@T.prim_func(s_tir=True)
def _usdot(
    A: T.Buffer((4,), "uint8", offset_factor=1),
    B: T.Buffer((4, 4), "int8", offset_factor=1),
    C: T.Buffer((4,), "int32", offset_factor=1),
) -> None:
    with T.sblock("root"):
        T.reads(C[0:4], A[0:4], B[0:4, 0:4])
        T.writes(C[0:4])
        A_word = T.reinterpret(A.vload([0], "uint8x4"), dtype="int32")
        C[T.ramp(T.int32(0), 1, 4)] = T.call_llvm_pure_intrin(
            T.llvm_lookup_intrinsic_id("llvm.aarch64.neon.usdot.v4i32.v16i8"),
            C.vload([0], dtype="int32x4"),
            T.reinterpret(T.broadcast(A_word, 4), dtype="uint8x16"),
            B.vload([0, 0], dtype="int8x16"),
            dtype="int32x4",
        )


@functools.cache
def register() -> None:
    """Register them, in place of TVM's where it has them."""
    meaning: Any = x86.dot_product_16x4_u8i8i32_desc
    TensorIntrin.register(VNNI, meaning, _vnni, override=True)
    TensorIntrin.register(AVX512, meaning, _avx512, override=True)
    TensorIntrin.register(BF16, _bf16_meaning, _bf16, override=True)
    TensorIntrin.register(ARM_USDOT, _usdot_meaning, _usdot, override=True)
