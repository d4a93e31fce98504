"""Products of numbers with few digits, summed in float32: of 16 bits, or TF32.

What is multiplied is rounded, weights ahead of time, and takes half the memory; sums and all that
is not a product, normalisations and softmax among it, stay in float32, as they do where PyTorch's
autocast keeps them; so does attention where it is one kernel. What is rounded between two layers is
what the second one multiplies.

TF32 is what tensor cores make of float32: its range with the 10 bits of float16's mantissa. It
stays float32 in memory, and only GPUs are faster for it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Literal

import numpy as np

from costlib.errors import TargetError
from costlib.processor import has_instructions
from costlib.tvm_compat import relax, te, tirx, tvm
from costlib.workloads.folding import constant_of, is_call, numpy_dtype, rewritten, static_type

HalfFormat = Literal["bfloat16", "float16", "tf32"]

SHORT: dict[HalfFormat, str] = {"bfloat16": "bf16", "float16": "f16", "tf32": "tf32"}
"""What is appended to a network's name."""

_PRODUCTS = {
    "relax.matmul",
    *(f"relax.nn.conv{n}d{kind}" for n in (1, 2, 3) for kind in ("", "_transpose")),
}

TF32 = "costlib.tf32"
"""The attribute of a function whose float32 products may be computed in TF32."""

_PRODUCT_NAMES = re.compile("matmul|conv|dense")
_TENSOR_CORES_ARCH = 80

_TF32_HALF, _TF32_KEPT, _EXPONENT = 0x1000, 0xFFFFE000, 0x7F800000

_LISTS = ("strides", "padding", "dilation", "output_padding")
_LAYOUTS = ("data_layout", "kernel_layout", "out_layout")
"""Settings of a convolution."""


def with_half_products(mod: Any, dtype: HalfFormat) -> Any:
    """Round what the float32 products of a Relax module multiply, and multiply it in that type."""
    if dtype == "tf32":
        return with_rounded_products(mod, dtype)
    halved = rewritten(mod, lambda _: _Halver(dtype))
    return relax.transform.EliminateCommonSubexpr()(halved)


def with_rounded_products(mod: Any, dtype: HalfFormat) -> Any:
    """Round the same as :func:`with_half_products` does, and multiply it in float32."""
    for name, function in mod.functions.items():
        if isinstance(function, relax.Function):
            rounder = _Rounder(mod, dtype)
            rounder.builder_.update_func(name, rounder.visit_expr(function))
            mod = rounder.builder_.get()
    return mod


def check_half(dtype: HalfFormat, target: dict[str, Any]) -> None:
    """Check that a target converts a type.

    Raises
    ------
    TargetError
        It is an x86 processor without F16C, and the type float16; or no GPU that has TF32.
    """
    if dtype == "tf32" and not has_tf32(target):
        raise TargetError("TF32 is for tensor cores: choose it with --target cuda, sm_80 or later")
    named = target["kind"] == "llvm" and str(target.get("mcpu", "")).startswith("x86-64")
    if dtype == "float16" and named and not has_instructions(target, "f16c"):
        raise TargetError(
            f"float16 needs the instructions of F16C, which '{target['mcpu']}' lacks; "
            "choose bfloat16, or compile for x86-64-v3"
        )


def has_tf32(target: Mapping[str, Any]) -> bool:
    """Whether a target has tensor cores for TF32, which are those with bfloat16, too."""
    number = re.sub(r"\D", "", str(target.get("arch", "")))
    return target["kind"] == "cuda" and int(number or 0) >= _TENSOR_CORES_ARCH


def allowing_tf32(mod: Any) -> Any:
    """Mark the products of a prepared module: what they multiply was rounded to TF32."""
    for name, function in mod.functions.items():
        if isinstance(function, tirx.PrimFunc) and _PRODUCT_NAMES.search(name.name_hint):
            mod.update_func(name, function.with_attr(TF32, 1))
    return mod


class _Rewriter(relax.PyExprMutator):  # type: ignore[misc]
    """Rounds what the float32 products of a function multiply."""

    def visit_call_(self, call: Any) -> Any:
        shape, dtype = static_type(call)
        call = self.visit_expr_post_order(call)
        if getattr(call.op, "name", "") not in _PRODUCTS or shape is None:
            return call
        if dtype != "float32" or {static_type(x)[1] for x in call.args[:2]} != {"float32"}:
            return call
        operands = [self.rounded(argument) for argument in call.args[:2]]
        if is_call(call, "relax.matmul"):
            return relax.op.matmul(*operands, out_dtype=dtype)
        name, attrs = call.op.name.removeprefix("relax.nn."), call.attrs
        settings: dict[str, Any] = {key: str(getattr(attrs, key)) for key in _LAYOUTS}
        for key in _LISTS if name.endswith("_transpose") else _LISTS[:3]:
            settings[key] = [int(n) for n in getattr(attrs, key)]
        convolution = getattr(relax.op.nn, name)
        return convolution(*operands, groups=int(attrs.groups), out_dtype=dtype, **settings)

    def rounded(self, expr: Any) -> Any:
        """Return a tensor in fewer digits."""
        raise NotImplementedError


@relax.expr_functor.mutator
class _Halver(_Rewriter):
    def __init__(self, dtype: HalfFormat) -> None:
        super().__init__()
        self.dtype = dtype

    def rounded(self, expr: Any) -> Any:
        if isinstance(expr, tvm.ir.GenericConst):
            return constant_of(expr.value.numpy().astype(numpy_dtype(self.dtype)))
        return self.builder_.emit(relax.op.astype(expr, self.dtype))


@relax.expr_functor.mutator
class _Rounder(_Rewriter):
    def __init__(self, mod: Any, dtype: HalfFormat) -> None:
        super().__init__(mod)
        self.dtype = dtype

    def rounded(self, expr: Any) -> Any:
        if isinstance(expr, tvm.ir.GenericConst):
            return constant_of(_rounded_array(expr.value.numpy(), self.dtype))

        def compute(x: Any) -> Any:
            return te.compute(x.shape, lambda *at: _ROUNDED[self.dtype](x(*at)), name="rounded")

        return self.builder_.emit_te(compute, expr, primfunc_name_hint="rounded")


def _rounded_array(array: np.ndarray, dtype: HalfFormat) -> np.ndarray:
    if dtype != "tf32":
        return array.astype(numpy_dtype(dtype)).astype("float32")
    rounded = (array.view("uint32") + np.uint32(_TF32_HALF)) & np.uint32(_TF32_KEPT)
    return np.where(np.isfinite(array), rounded.view("float32"), array)


def _rounded_to_tf32(x: Any) -> Any:
    """Round as CUDA does, halves away from zero; NaN and infinity stay."""
    bits = tirx.reinterpret("uint32", x)
    kept = tirx.bitwise_and(bits + _bits(_TF32_HALF), _bits(_TF32_KEPT))
    is_finite = tirx.bitwise_and(bits, _bits(_EXPONENT)) != _bits(_EXPONENT)
    return tirx.if_then_else(is_finite, tirx.reinterpret("float32", kept), x)


def _rounded_to_bfloat16(x: Any) -> Any:
    """Round to even by the bits: TVM drops a cast to bfloat16 and back."""
    bits = tirx.reinterpret("uint32", x)
    odd = tirx.bitwise_and(tirx.shift_right(bits, _bits(16)), _bits(1))
    kept = tirx.bitwise_and(bits + odd + _bits(0x7FFF), _bits(0xFFFF0000))
    return tirx.if_then_else(tirx.isnan(x), x, tirx.reinterpret("float32", kept))


def _bits(value: int) -> Any:
    return tirx.const(value, "uint32")


_ROUNDED: dict[HalfFormat, Callable[[Any], Any]] = {
    "bfloat16": _rounded_to_bfloat16,
    "float16": lambda x: x.astype("float16").astype("float32"),
    "tf32": _rounded_to_tf32,
}
