"""Tensor-core intrinsics for bfloat16 and TF32, which TVM lacks beside those for float16.

Both sum in float32. TF32 is what tensor cores make of float32: 10 bits of the mantissa. What is
loaded must have been rounded to that, see :mod:`costlib.workloads.half_precision`. TVM's code
generator has no fragments of that type: until it has written the code they are of bfloat16, which
has none of that shape, and then get the name that CUDA has for them.
"""

from __future__ import annotations

import functools
import re
from typing import Any

import tvm
from tvm import tirx

from costlib.tvm_compat.rewriting import Rewriter, substituted

ROWS = 16
"""Of a tile of sums, and its columns."""

_DEPTHS = {"bfloat16": 16, "float32": 8}
"""Products that one instruction adds up, by the type of what is loaded."""

_SHORT = {"bfloat16": "bf16", "float32": "tf32"}
SHARED = "shared.dyn"
"""The memory that both matrices are loaded from, and that the sums go to."""

_FRAGMENT = re.compile(r"(wmma::fragment<nvcuda::wmma::matrix_[ab], 16, 16, 8, )[\w:]+")
_ELEMENT = r"\1nvcuda::wmma::precision::tf32"
_SCOPES = ("wmma.matrix_a", "wmma.matrix_b")


def group(dtype: str, *, transposed: bool) -> dict[str, str]:
    """Return the names of what :class:`MultiLevelTilingTensorCore` takes; all are registered.

    Parameters
    ----------
    dtype
        Of what is multiplied: ``"bfloat16"``, or ``"float32"`` for TF32.
    transposed
        Whether the second matrix is.
    """
    _register()
    depth, short = _DEPTHS[dtype], _SHORT[dtype]
    shape = f"{ROWS}x{ROWS}x{depth}"
    side = "_trans" if transposed else ""
    return {
        "init": f"wmma_fill_{shape}_f32",
        "load_a": f"wmma_load_{shape}_{short}_a_shared_dyn",
        "load_b": f"wmma_load_{shape}_{short}_b{side}_shared_dyn",
        "compute": f"wmma_sync_{shape}_{short}{short}f32{side}",
        "store": f"wmma_store_{shape}_f32_shared_dyn",
    }


@functools.cache
def _register() -> None:
    from tvm.s_tir import TensorIntrin
    from tvm.s_tir.tensor_intrin import cuda as stock

    for dtype, depth in _DEPTHS.items():
        short, shape = _SHORT[dtype], f"{ROWS}x{ROWS}x{depth}"
        tile = (ROWS, ROWS, depth)
        made: dict[str, Any] = {
            f"wmma_load_{shape}_{short}_a_shared_dyn": stock.get_wmma_load_intrin(
                *tile, dtype, SHARED, False, False
            ),
            f"wmma_fill_{shape}_f32": stock.get_wmma_fill_intrin(*tile, "float32"),
            f"wmma_store_{shape}_f32_shared_dyn": stock.get_wmma_store_intrin(
                *tile, "float32", SHARED
            ),
        }
        for transposed in (False, True):
            side = "_trans" if transposed else ""
            made[f"wmma_load_{shape}_{short}_b{side}_shared_dyn"] = stock.get_wmma_load_intrin(
                *tile, dtype, SHARED, True, transposed
            )
            made[f"wmma_sync_{shape}_{short}{short}f32{side}"] = stock.get_wmma_sync_intrin(
                *tile, dtype, "float32", transposed
            )
        for name, (meaning, instruction) in made.items():
            TensorIntrin.register(name, meaning, instruction, override=True)


def with_tf32_fragments(function: Any) -> Any:
    """Let a lowered function's fragments of float32 be what TVM writes code for."""
    fragments = _Fragments()
    fragments.visit(function.body)
    if not fragments.replacements:
        return function
    return function.with_body(substituted(function.body, fragments.replacements))


class _Fragments(Rewriter):
    """Finds the fragments of float32 that are multiplied."""

    def __init__(self) -> None:
        super().__init__()
        self.replacements: dict[Any, Any] = {}

    def replaced(self, node: Any, key: str, new: dict[str, Any]) -> Any | None:
        if key == "tirx.AllocBuffer":
            buffer = node.buffer
            if str(buffer.scope()) in _SCOPES and str(buffer.dtype) == "float32":
                self.replacements[buffer] = tirx.decl_buffer(
                    buffer.shape, "bfloat16", buffer.name, scope=buffer.scope(), layout=None
                )
        return None


@tvm.register_global_func(  # type: ignore[untyped-decorator]
    "tvm_callback_cuda_postproc", override=True
)
def _with_tf32(code: str, _target: Any) -> str:
    return _FRAGMENT.sub(_ELEMENT, code)
