"""Transposed convolutions as ordinary ones.

TVM computes a transposed convolution of stride s by an ordinary one over the input spread out
with zeros, so that of s multiplications in each dimension one counts. The same comes of an
ordinary convolution of the input as it is, with a channel for each of the s places that an input
has outputs at, and of moving these channels to their places (Shi et al., arXiv:1609.07009).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from costlib.tvm_compat import relax, tvm
from costlib.workloads.folding import constant_of, rewritten, static_type

_ORDINARY = {
    "relax.nn.conv1d_transpose": (relax.op.nn.conv1d, "NCW", "IOW"),
    "relax.nn.conv2d_transpose": (relax.op.nn.conv2d, "NCHW", "IOHW"),
}


def without_transposed_convolutions(mod: Any, leave: Callable[[Any, Any], bool]) -> Any:
    """Replace transposed convolutions with a stride in a Relax module whose constants are folded.

    Those with groups or dilation, or with weights that are no constants, stay as they are, and
    those to be left: ``leave`` is asked with the call and its weight.
    """
    return rewritten(mod, lambda _: _Rewriter(leave))


@dataclass(frozen=True)
class _Axis:
    """One dimension of a transposed convolution.

    Output `i` is at place `i + padding` of what the whole input reaches, which is `phase` of the
    `stride` places of step `(i + padding) // stride`.

    Attributes
    ----------
    stride, taps
        Places of a step, and inputs that each of them depends on.
    before, after
        Padding of the ordinary convolution, whose outputs are the steps that are needed.
    skipped, size
        Places of the first step before the first output, and outputs.
    """

    stride: int
    taps: int
    before: int
    after: int
    skipped: int
    size: int

    @classmethod
    def of(cls, extent: int, kernel: int, stride: int, padding: int, size: int) -> Self:
        taps = -(-kernel // stride)
        first, last = padding // stride, (padding + size - 1) // stride
        before = taps - 1 - first
        after = last - first + taps - extent - before
        return cls(stride, taps, before, after, padding - stride * first, size)


@relax.expr_functor.mutator
class _Rewriter(relax.PyExprMutator):  # type: ignore[misc]
    def __init__(self, leave: Callable[[Any, Any], bool]) -> None:
        super().__init__()
        self.leave = leave

    def visit_call_(self, call: Any) -> Any:
        name = getattr(call.op, "name", "")
        size, dtype = static_type(call)
        original, call = call, self.visit_expr_post_order(call)
        if name not in _ORDINARY or size is None or self.leave(original, call.args[1]):
            return call
        convolution, data_layout, kernel_layout = _ORDINARY[name]
        data, weight = call.args
        extents, attrs = static_type(data)[0], call.attrs
        strides = [int(n) for n in attrs.strides]
        padding = [int(n) for n in attrs.padding][: len(strides)]
        if (
            extents is None
            or not isinstance(weight, tvm.ir.GenericConst)
            or (str(attrs.data_layout), str(attrs.kernel_layout)) != (data_layout, kernel_layout)
            or str(attrs.out_layout) != data_layout
            or static_type(data)[1] != dtype
            or int(attrs.groups) > 1
            or any(int(n) > 1 for n in attrs.dilation)
            or max(strides) == 1
        ):
            return call
        kernel = np.asarray(weight.value.numpy())
        axes = [
            _Axis.of(*numbers)
            for numbers in zip(
                extents[2:], kernel.shape[2:], strides, padding, size[2:], strict=True
            )
        ]
        if any(min(axis.before, axis.after) < 0 for axis in axes):
            return call
        around = [*(axis.before for axis in axes), *(axis.after for axis in axes)]
        ordinary = constant_of(_ordinary_kernel(kernel, axes))
        steps = self.builder_.emit(convolution(data, ordinary, padding=around))
        return self._placed(steps, axes)

    def _placed(self, steps: Any, axes: list[_Axis]) -> Any:
        """Move `n x (o s...) x q...` to `n x o x (q s)...` and cut out what is wanted."""
        emit, count = self.builder_.emit, len(axes)
        batch, channels, *extents = static_type(steps)[0]  # type: ignore[misc]
        strides = [axis.stride for axis in axes]
        outputs = channels // int(np.prod(strides))
        apart = emit(relax.op.reshape(steps, [batch, outputs, *strides, *extents]))
        order = [place for i in range(count) for place in (2 + count + i, 2 + i)]
        moved = emit(relax.op.permute_dims(apart, [0, 1, *order]))
        places = [q * s for q, s in zip(extents, strides, strict=True)]
        joined = emit(relax.op.reshape(moved, [batch, outputs, *places]))
        if places == [axis.size for axis in axes]:
            return joined
        begin = [axis.skipped for axis in axes]
        end = [axis.skipped + axis.size for axis in axes]
        return relax.op.strided_slice(joined, list(range(2, 2 + count)), begin, end)


def _ordinary_kernel(kernel: np.ndarray, axes: list[_Axis]) -> np.ndarray:
    """Turn `i x o x k...` into `(o s...) x i x taps...`, last tap first, zeros at the end."""
    count = len(axes)
    missing = [
        (0, axis.stride * axis.taps - extent)
        for axis, extent in zip(axes, kernel.shape[2:], strict=True)
    ]
    padded = np.pad(kernel, [(0, 0), (0, 0), *missing])
    apart = [n for axis in axes for n in (axis.taps, axis.stride)]
    phases = padded.reshape(*kernel.shape[:2], *apart)
    taps = [2 + 2 * i for i in range(count)]
    strides = [3 + 2 * i for i in range(count)]
    ordered = np.flip(phases, tuple(taps)).transpose(1, *strides, 0, *taps)
    return np.ascontiguousarray(ordered.reshape(-1, kernel.shape[0], *(axis.taps for axis in axes)))
