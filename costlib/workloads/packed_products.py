"""Products whose weights lie in memory as an instruction of the processor wants them.

An AVX-512 instruction adds a few products to each of 16 sums: 4 of bytes, or 2 of bfloat16. Weights
`K x N` are packed for it as `N / 16 x K / 4 x 16 x 4`, ahead of time, and the product is written
with these axes, so that the schedule rule for the instruction recognises it. What does not divide
is filled up with zeros.

NEON's have 4 sums, and bytes that are both signed: without I8MM, unsigned activations are moved by
128, and the sums by 128 times that of the weights, which is exact.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from costlib.processor import has_instructions
from costlib.tvm_compat import relax, te, tirx, topi, tvm
from costlib.workloads.behind_products import Looking
from costlib.workloads.computed import call_computed, cut
from costlib.workloads.folding import constant_of, is_call, static_type

_SHIFT = 128
"""Between unsigned and signed bytes."""


class _Instruction(NamedTuple):
    """Dtypes of activations, weights and sums, products a sum takes, sums, and what has it."""

    left: str
    right: str
    sums: str
    group: int
    lanes: int
    feature: str


_INSTRUCTIONS = (
    _Instruction("uint8", "int8", "int32", 4, 16, "avx512bw"),
    _Instruction("bfloat16", "bfloat16", "float32", 2, 16, "avx512bf16"),
    _Instruction("int8", "int8", "int32", 4, 4, "neon"),
    _Instruction("uint8", "int8", "int32", 4, 4, "i8mm"),
)


def with_packed_products(mod: Any, target: dict[str, Any]) -> Any:
    """Pack the constant weights of products and convolutions in a Relax module.

    Convolutions are those in NHWC without groups. Where the target lacks the instruction they stay
    as they are.
    """
    usable = [one for one in _INSTRUCTIONS if has_instructions(target, one.feature)]
    for name, function in mod.functions.items() if usable else ():
        if isinstance(function, relax.Function):
            rewriter = _Rewriter(mod, usable)
            rewriter.builder_.update_func(name, rewriter.visit_expr(function))
            mod = rewriter.builder_.get()
    return mod


def packed(weight: np.ndarray, group: int, lanes: int) -> np.ndarray:
    """Turn `... x K x N` into `N / lanes x ... x K / group x lanes x group`, filled up with 0."""
    *window, depth, outputs = weight.shape
    missing = [(0, 0)] * len(window) + [(0, -depth % group), (0, -outputs % lanes)]
    whole = np.pad(weight, missing)
    depth, outputs = whole.shape[-2:]
    apart = whole.reshape(*window, depth // group, group, outputs // lanes, lanes)
    count = len(window)
    return apart.transpose(count + 2, *range(count), count, count + 3, count + 1)


@dataclass(frozen=True)
class _Window:
    """How a convolution goes over its images.

    Attributes
    ----------
    before, after
        Rows and columns around an image.
    strides, dilation
        Along rows and columns.
    around
        What stands there.
    """

    before: tuple[int, int]
    after: tuple[int, int]
    strides: tuple[int, int]
    dilation: tuple[int, int]
    around: float


@relax.expr_functor.mutator
class _Rewriter(Looking):
    def __init__(self, mod: Any, instructions: Sequence[_Instruction]) -> None:
        super().__init__(mod)
        self.usable = instructions

    def visit_call_(self, call: Any) -> Any:
        shape, dtype = static_type(call)
        call = self.visit_expr_post_order(call)
        is_matmul = is_call(call, "relax.matmul")
        if shape is None or not (is_matmul or is_call(call, "relax.nn.conv2d")):
            return call
        data, weight = call.args
        found = self._instruction(data, static_type(weight)[1], dtype)
        if found is None or not isinstance(weight, tvm.ir.GenericConst):
            return call
        array = np.asarray(weight.value.numpy())
        if is_matmul:
            if array.ndim != 2 or len(shape) < 2:
                return call
            return self._product(_product(shape, found), data, array, shape, found)
        return self._convolution(call, array, shape, found)

    def _instruction(self, data: Any, right: str, sums: str) -> _Instruction | None:
        """Find one for these dtypes; unsigned activations may be made the signed ones they were."""
        lefts = [static_type(data)[1]]
        if lefts == ["uint8"]:
            lefts.insert(1 if self._before_moved(data) is None else 0, "int8")
        wanted = [(left, right, sums) for left in lefts]
        return next((one for types in wanted for one in self.usable if one[:3] == types), None)

    def _convolution(
        self, call: Any, weight: np.ndarray, shape: tuple[int, ...], instruction: _Instruction
    ) -> Any:
        data, attrs = call.args[0], call.attrs
        layouts = str(attrs.data_layout), str(attrs.kernel_layout)
        if layouts != ("NHWC", "OHWI") or int(attrs.groups) > 1:
            return call
        top, left, bottom, right = (int(n) for n in attrs.padding)
        around = 0.0
        pad = self.bound(data, "relax.nn.pad")
        if pad is not None and not any((top, left, bottom, right)):
            pairs = [int(n) for n in pad.attrs.pad_width]
            if str(pad.attrs.pad_mode) == "constant" and not any(pairs[:2] + pairs[6:]):
                data, around = pad.args[0], float(pad.attrs.pad_value)
                top, bottom, left, right = pairs[2:6]
        down, across = (int(n) for n in attrs.strides)
        window = _Window(
            (top, left),
            (bottom, right),
            (down, across),
            (int(attrs.dilation[0]), int(attrs.dilation[1])),
            around - (_SHIFT if static_type(data)[1] != instruction.left else 0),
        )
        compute = _convolution(shape, instruction, window)
        return self._product(compute, data, weight.transpose(1, 2, 3, 0), shape, instruction)

    def _product(
        self,
        compute: Callable[..., Any],
        data: Any,
        weight: np.ndarray,
        shape: tuple[int, ...],
        instruction: _Instruction,
    ) -> Any:
        """Multiply by weights `... x K x N`."""
        kernel = packed(weight, instruction.group, instruction.lanes)
        if static_type(data)[1] == instruction.left:
            return self._called(compute, data, kernel)
        sums = self._called(compute, self._signed(data), kernel)
        missing = _SHIFT * weight.sum(tuple(range(weight.ndim - 1)), dtype="int32")
        return relax.op.add(self.builder_.emit(sums), constant_of(missing))

    def _called(self, compute: Callable[..., Any], data: Any, weight: np.ndarray) -> Any:
        name = "conv2d_packed" if weight.ndim > 4 else "matmul_packed"
        return call_computed(self.builder_, name, compute, [data, constant_of(weight)])

    def _signed(self, data: Any) -> Any:
        """Return unsigned bytes less 128."""
        before = self._before_moved(data)
        if before is not None:
            return before
        wide = self.builder_.emit(relax.op.astype(data, "int32"))
        less = self.builder_.emit(relax.op.subtract(wide, relax.const(_SHIFT, "int32")))
        return self.builder_.emit(relax.op.astype(less, "int8"))

    def _before_moved(self, data: Any) -> Any | None:
        """Return the signed bytes that unsigned ones are, plus 128; ``None`` if they are not."""
        moved = self.bound(data, "relax.astype")
        added = None if moved is None else self.bound(moved.args[0], "relax.add")
        wide = None if added is None else self.bound(added.args[0], "relax.astype")
        if added is None or wide is None or static_type(wide.args[0])[1] != "int8":
            return None
        number = added.args[1]
        is_shift = isinstance(number, tvm.ir.GenericConst) and number.value.numpy() == _SHIFT
        return wide.args[0] if is_shift else None


def _product(shape: tuple[int, ...], instruction: _Instruction) -> Callable[[Any, Any], Any]:
    def compute(x: Any, weight: Any) -> Any:
        blocks, groups, lanes, group = map(int, weight.shape)
        x = _filled_up(x, groups * group)
        outer, inner = te.reduce_axis((0, groups), name="ko"), te.reduce_axis((0, group), name="ki")

        def value(*at: Any) -> Any:
            column = at[-1]
            left = x(*at[:-1], outer * group + inner).astype(instruction.sums)
            right = weight[column // lanes, outer, column % lanes, inner]
            return te.sum(left * right.astype(instruction.sums), axis=[outer, inner])

        whole = te.compute((*shape[:-1], blocks * lanes), value, name="matmul_packed")
        return cut(whole, shape)

    return compute


def _convolution(
    shape: tuple[int, ...], instruction: _Instruction, window: _Window
) -> Callable[[Any, Any], Any]:
    (top, left), (bottom, right) = window.before, window.after
    (down, across), (apart_y, apart_x) = window.strides, window.dilation

    def compute(x: Any, weight: Any) -> Any:
        blocks, rows, columns, groups, lanes, group = map(int, weight.shape)
        missing = groups * group - int(x.shape[-1])
        if any((top, left, bottom, right, missing)):
            value_around = tirx.const(window.around, str(x.dtype))
            before, after = [0, top, left, 0], [0, bottom, right, missing]
            x = topi.nn.pad(x, before, after, pad_value=value_around, name="pad_temp")
        ky, kx = te.reduce_axis((0, rows), name="ky"), te.reduce_axis((0, columns), name="kx")
        outer, inner = te.reduce_axis((0, groups), name="ko"), te.reduce_axis((0, group), name="ki")

        def value(n: Any, i: Any, j: Any, channel: Any) -> Any:
            y, z = i * down + ky * apart_y, j * across + kx * apart_x
            read = x[n, y, z, outer * group + inner].astype(instruction.sums)
            by = weight[channel // lanes, ky, kx, outer, channel % lanes, inner]
            return te.sum(read * by.astype(instruction.sums), axis=[ky, kx, outer, inner])

        whole = te.compute((*shape[:-1], blocks * lanes), value, name="conv2d_packed")
        return cut(whole, shape)

    return compute


def _filled_up(x: Any, depth: int) -> Any:
    missing = depth - int(x.shape[-1])
    if not missing:
        return x
    before = [0] * len(x.shape)
    return topi.nn.pad(x, before, [*before[1:], missing], name="pad_temp")
