"""Transposed convolutions with channels last, a phase at a time.

Outputs of a transposed convolution of stride s are of s phases in each dimension: those of a phase
are an ordinary convolution of the input with every s-th tap. One kernel computes all phases and
writes each output where it belongs, so nothing is multiplied with zeros between inputs and no
outputs are moved (:mod:`costlib.workloads.transposed` is for other layouts).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from costlib.tvm_compat import relax, te, tirx, topi, tvm
from costlib.workloads.computed import call_computed
from costlib.workloads.folding import constant_of, static_type

LAYOUTS = {
    "relax.nn.conv1d_transpose": ["NWC", "IOW"],
    "relax.nn.conv2d_transpose": ["NHWC", "IOHW"],
}
"""Of data and kernel, as :func:`with_phases` takes them."""

_FIRST = {"NCW", "NCHW"}

_LANES = 8
"""Outputs come in multiples of it, as they are what vectors are of."""


def with_phases(mod: Any) -> Any:
    """Compute the transposed convolutions of a Relax module that have channels last by phases."""
    for name, function in mod.functions.items():
        if isinstance(function, relax.Function):
            rewriter = _Rewriter(mod)
            rewriter.builder_.update_func(name, rewriter.visit_expr(function))
            mod = rewriter.builder_.get()
    return mod


def is_phased(call: Any, weight: Any) -> bool:
    """Whether a transposed convolution, its channels first, suits :func:`with_phases`."""
    extents, size = static_type(call.args[0])[0], static_type(call)[0]
    return (
        extents is not None
        and size is not None
        and isinstance(weight, tvm.ir.GenericConst)
        and {static_type(e)[1] for e in (call, call.args[0], weight)} == {"float32"}
        and str(call.attrs.data_layout) == str(call.attrs.out_layout)
        and str(call.attrs.data_layout) in _FIRST
        and int(call.attrs.groups) == 1
        and all(int(n) == 1 for n in call.attrs.dilation)
        and size[1] % _LANES == 0
        and _phases(call, extents[2:], static_type(weight)[0][2:], size[2:]) is not None  # type: ignore[index]
    )


@dataclass(frozen=True)
class _Phases:
    """One dimension of a transposed convolution.

    Output `stride * i + phase` is the sum over its taps of input `i + tap`, one further for the
    last ``moved`` phases, where the first input comes after ``before`` zeros.

    Attributes
    ----------
    steps, stride
        Outputs of a phase, and phases.
    moved
        How many phases start an input later than the others.
    before, after
        Zeros around the input.
    taps
        For each phase, the place in the kernel of each of its taps; the kernel's extent for a tap
        that is none.
    """

    steps: int
    stride: int
    moved: int
    before: int
    after: int
    taps: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, extent: int, kernel: int, stride: int, padding: int, size: int) -> Self | None:
        """Return the phases; ``None`` if they are of unlike sizes, or inputs are not read."""
        if extent == 1:  # Each output depends on one tap: there are no steps.
            return cls(1, size, 0, 0, 0, tuple((min(n + padding, kernel),) for n in range(size)))
        first, moved = divmod(padding, stride)
        if size % stride:
            return None
        steps, count = size // stride, -(-kernel // stride)
        before = count - 1 - first
        after = steps + min(moved, 1) + count - 1 - before - extent
        if min(before, after) < 0:
            return None
        taps = tuple(
            tuple(
                min((phase + padding) % stride + stride * tap, kernel)
                for tap in reversed(range(count))
            )
            for phase in range(stride)
        )
        return cls(steps, stride, moved, before, after, taps)

    def later(self, phase: Any) -> Any:
        """Return how many inputs later than the first a phase starts."""
        if not self.moved:
            return 0
        return phase if self.stride == 2 else tirx.indexdiv(phase + self.moved, self.stride)


def _phases(
    call: Any, extents: Sequence[int], kernel: Sequence[int], sizes: Sequence[int]
) -> list[_Phases] | None:
    strides = [int(n) for n in call.attrs.strides]
    padding = [int(n) for n in call.attrs.padding][: len(strides)]
    found = [
        _Phases.of(*numbers)
        for numbers in zip(extents, kernel, strides, padding, sizes, strict=True)
    ]
    return None if None in found else [one for one in found if one is not None]


@relax.expr_functor.mutator
class _Rewriter(relax.PyExprMutator):  # type: ignore[misc]
    def visit_call_(self, call: Any) -> Any:
        size, _ = static_type(call)
        call = self.visit_expr_post_order(call)
        name = getattr(call.op, "name", "")
        if name not in LAYOUTS or str(call.attrs.data_layout) != LAYOUTS[name][0] or size is None:
            return call
        data, weight = call.args
        kernel = np.asarray(weight.value.numpy())
        extents = static_type(data)[0]
        assert extents is not None
        phases = _phases(call, extents[1:-1], kernel.shape[2:], size[1:-1])
        assert phases is not None, "others are not converted"
        weights = constant_of(_by_phase(kernel, phases))
        kind = name.removeprefix("relax.nn.")
        result = self.builder_.emit(
            call_computed(self.builder_, kind, _computed(phases), [data, weights])
        )
        return relax.op.reshape(result, size)


def _by_phase(kernel: np.ndarray, phases: Sequence[_Phases]) -> np.ndarray:
    """Turn `i x o x k...` into `phases... x taps... x i x o`, with zeros for taps that are none."""
    padded = np.pad(kernel, [(0, 0), (0, 0), *[(0, 1)] * len(phases)])
    everything = (np.arange(extent) for extent in kernel.shape[:2])
    chosen = padded[np.ix_(*everything, *(np.ravel(one.taps) for one in phases))]
    apart = chosen.reshape(*kernel.shape[:2], *(n for one in phases for n in np.shape(one.taps)))
    count = len(phases)
    order = [*range(2, 2 + 2 * count, 2), *range(3, 2 + 2 * count, 2), 0, 1]
    return np.ascontiguousarray(apart.transpose(order))


def _computed(phases: Sequence[_Phases]) -> Any:
    """Return what computes `n x (steps x phases)... x o` of `n x extents... x i`."""

    def compute(x: Any, weight: Any) -> Any:
        before = [0, *(one.before for one in phases), 0]
        after = [0, *(one.after for one in phases), 0]
        if any((*before, *after)):
            x = topi.nn.pad(x, before, after, name="pad_temp")
        taps = [te.reduce_axis((0, len(one.taps[0])), name="k") for one in phases]
        channel = te.reduce_axis((0, weight.shape[-2]), name="c")

        def value(image: Any, *at: Any) -> Any:
            *places, out = at
            steps, chosen = places[::2], places[1::2]
            read = [
                step + one.later(phase) + tap
                for one, step, phase, tap in zip(phases, steps, chosen, taps, strict=True)
            ]
            product = x(image, *read, channel) * weight(*chosen, *taps, channel, out)
            return te.sum(product, axis=[*taps, channel])

        sizes = [n for one in phases for n in (one.steps, one.stride)]
        return te.compute((x.shape[0], *sizes, weight.shape[-1]), value, name="conv_transpose")

    return compute
