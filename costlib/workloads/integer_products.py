"""Products of quantised numbers, computed on the integers that they stand for.

A quantised network (ONNX's QDQ, PyTorch's pt2e) expands its integers, multiplies in float32 and
rounds again. ``sum((x - a) * s * ((w - b) * t))`` is ``s * t`` times a sum of integers, which is
exact in 32 bits and which processors have instructions for: unsigned bytes by signed ones. Signed
activations are shifted by 128, and what a zero point adds is a constant for each output.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from costlib.tvm_compat import relax, tvm
from costlib.workloads.channels_last import channels_stay_last, to_first, to_last
from costlib.workloads.folding import constant_of, is_call, permutation, rewritten, static_type

_LARGEST_SUM = 2**31 - 1

_CONV2D, _MATMUL = "relax.nn.conv2d", "relax.matmul"

_RANK = len("NCHW")


def with_integer_products(mod: Any) -> Any:
    """Rewrite 2-D convolutions and products with constant weights in a Relax module.

    Those that have one scale and one zero point for all activations, weights of 8 bits with a scale
    for each output, and sums that 32 bits hold; the others stay as they are. What comes out is the
    same up to the rounding of float32. Convolutions have their channels last.
    """
    rewriters: list[_Rewriter] = []

    def rewriter(_: Any) -> Any:
        rewriters.append(_Rewriter())
        return rewriters[-1]

    changed = rewritten(mod, rewriter)
    convolves = any(one.convolves for one in rewriters)
    return channels_stay_last(changed, [_RANK]) if convolves else changed


@dataclass(frozen=True)
class _Activations:
    """Quantised activations: ``(codes - zero) * scale``.

    Attributes
    ----------
    codes
        A Relax tensor of uint8 or int8.
    zero
        What stands for 0.
    scale
        Without one the product is of integers.
    """

    codes: Any
    zero: int
    scale: np.ndarray | None


@dataclass(frozen=True)
class _Weights:
    """Quantised weights: ``whole * scale``, the scale of each output; int32 and float32."""

    whole: np.ndarray
    scale: np.ndarray | None


@relax.expr_functor.mutator
class _Rewriter(relax.PyExprMutator):  # type: ignore[misc]
    """Rewrites a function; ``convolves`` if there was a convolution to rewrite."""

    def __init__(self) -> None:
        super().__init__()
        self.convolves = False

    def visit_call_(self, call: Any) -> Any:
        shape, _ = static_type(call)
        call = self.visit_expr_post_order(call)
        if shape is None or not (is_call(call, _CONV2D) or is_call(call, _MATMUL)):
            return call
        data, weights = self._activations(call.args[0]), self._weights(call.args[1])
        if data is None or weights is None or (data.scale is None) != (weights.scale is None):
            return call
        if is_call(call, _MATMUL):
            found = self._product(data, weights, shape)
        else:
            found = self._convolution(call, data, weights)
        return call if found is None else found

    def _product(self, data: _Activations, weights: _Weights, shape: tuple[int, ...]) -> Any | None:
        whole, scale = weights.whole, weights.scale
        if whole.ndim != 2 or not _fits(whole, 0):
            return None
        if scale is not None and np.broadcast_shapes(scale.shape, (1, shape[-1])) != (1, shape[-1]):
            return None
        codes, zero = self._unsigned(data)
        sums = self._emit(relax.op.matmul(codes, _signed(whole), out_dtype="int32"))
        sums = self._corrected(sums, -zero * whole.sum(0, dtype="int32"))
        return self._scaled(sums, data, None if scale is None else scale.reshape(-1))

    def _convolution(self, call: Any, data: _Activations, weights: _Weights) -> Any | None:
        whole, scale, attrs = weights.whole, weights.scale, call.attrs
        layouts = str(attrs.data_layout), str(attrs.kernel_layout), str(attrs.out_layout)
        if layouts not in (("NCHW", "OIHW", "NCHW"), ("NCHW", "OIHW", "")):
            return None
        outputs = len(whole)
        if not _fits(whole, (1, 2, 3)) or (scale is not None and scale.size not in (1, outputs)):
            return None
        if scale is not None and scale.size > 1 and scale.shape[0] != outputs:
            return None
        self.convolves = True
        codes, zero = self._unsigned(data)
        codes = self._emit(relax.op.permute_dims(codes, to_last(_RANK)))
        top, left, bottom, right = (int(n) for n in attrs.padding)
        if any((top, left, bottom, right)):
            around = [0, 0, top, bottom, left, right, 0, 0]
            codes = self._emit(relax.op.nn.pad(codes, around, pad_value=float(zero)))
        convolution = relax.op.nn.conv2d(
            codes,
            _signed(whole.transpose(to_last(_RANK))),
            strides=[int(n) for n in attrs.strides],
            dilation=[int(n) for n in attrs.dilation],
            groups=int(attrs.groups),
            data_layout="NHWC",
            kernel_layout="OHWI",
            out_dtype="int32",
        )
        along = (1, 1, 1, -1)
        extra = (-zero * whole.sum((1, 2, 3), dtype="int32")).reshape(along)
        sums = self._corrected(self._emit(convolution), extra)
        scaled = self._scaled(sums, data, None if scale is None else scale.reshape(along))
        return relax.op.permute_dims(self._emit(scaled), to_first(_RANK))

    def _unsigned(self, data: _Activations) -> tuple[Any, int]:
        """Return activations as uint8, and their zero point."""
        if static_type(data.codes)[1] == "uint8":
            return data.codes, data.zero
        wide = self._emit(relax.op.astype(data.codes, "int32"))
        shifted = self._emit(relax.op.add(wide, relax.const(128, "int32")))
        return self._emit(relax.op.astype(shifted, "uint8")), data.zero + 128

    def _corrected(self, sums: Any, extra: np.ndarray) -> Any:
        if not extra.any():
            return sums
        return self._emit(relax.op.add(sums, constant_of(extra.astype("int32"))))

    def _scaled(self, sums: Any, data: _Activations, scale: np.ndarray | None) -> Any:
        if scale is None or data.scale is None:
            return sums
        factor = (data.scale * scale).astype("float32")
        return relax.op.multiply(self._emit(relax.op.astype(sums, "float32")), constant_of(factor))

    def _emit(self, expr: Any) -> Any:
        return self.builder_.emit(expr)

    def _activations(self, expr: Any) -> _Activations | None:
        """Read activations that were quantised, through reshapes and permutations."""
        call = self._bound(expr)
        if is_call(call, "relax.reshape") or is_call(call, "relax.permute_dims"):
            inner = self._activations(call.args[0])
            if inner is None:
                return None
            moved = relax.Call(call.op, [inner.codes, *call.args[1:]], call.attrs)
            return replace(inner, codes=self._emit(moved))
        scale = None
        if is_call(call, "relax.multiply"):
            found = self._constant(call.args[1])
            if found is None or found.size != 1 or static_type(call)[1] != "float32":
                return None
            scale, call = found.reshape(()), self._bound(call.args[0])
            if not is_call(call, "relax.astype"):
                return None
            call = self._bound(call.args[0])
        zero = 0
        if is_call(call, "relax.subtract"):
            given = self._constant(call.args[1])
            if given is None or given.size != 1:
                return None
            zero, call = int(given.reshape(())), self._bound(call.args[0])
        if not is_call(call, "relax.astype") or static_type(call)[1] != "int32":
            return None
        codes = call.args[0]
        is_byte = static_type(codes)[1] in ("uint8", "int8")
        return _Activations(codes, zero, scale) if is_byte else None

    def _weights(self, expr: Any) -> _Weights | None:
        """Read constant weights that were quantised, through permutations."""
        call = self._bound(expr)
        if is_call(call, "relax.permute_dims"):
            inner = self._weights(call.args[0])
            if inner is None:
                return None
            order = permutation(call)
            scale = inner.scale
            if scale is not None and scale.ndim:
                scale = scale.transpose(order)
            return _Weights(inner.whole.transpose(order), scale)
        scale = None
        if is_call(call, "relax.multiply"):
            scale, call = self._constant(call.args[1]), self._bound(call.args[0])
            if scale is None or scale.ndim not in (0, len(static_type(expr)[0] or ())):
                return None
            if not is_call(call, "relax.astype"):
                return None
            call = call.args[0]
        whole = self._constant(call)
        if whole is None or whole.dtype != np.int32 or abs(whole + 0.5).max(initial=0) > 127.5:
            return None
        return _Weights(whole, scale)

    def _constant(self, expr: Any) -> np.ndarray | None:
        """Compute what is made of constants by the few operators that expand weights."""
        expr = self._bound(expr)
        if isinstance(expr, tvm.ir.GenericConst):
            return np.asarray(expr.value.numpy())
        if is_call(expr, "relax.astype"):
            inner = self._constant(expr.args[0])
            return None if inner is None else inner.astype(static_type(expr)[1])
        if is_call(expr, "relax.subtract"):
            one, other = (self._constant(argument) for argument in expr.args)
            return None if one is None or other is None else one - other
        return None

    def _bound(self, expr: Any) -> Any:
        while isinstance(expr, relax.Var):
            found = self.lookup_binding(expr)
            if found is None:
                return expr
            expr = found
        return expr


def _fits(whole: np.ndarray, axes: int | tuple[int, ...]) -> bool:
    """Whether sums of bytes times these weights fit into 32 bits, zero points included."""
    return bool(2 * 255 * np.abs(whole.astype("int64")).sum(axes).max(initial=0) <= _LARGEST_SUM)


def _signed(whole: np.ndarray) -> Any:
    return constant_of(whole.astype("int8"))
