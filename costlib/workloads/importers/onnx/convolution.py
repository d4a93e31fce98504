"""Convolutions, ordinary and transposed."""

from __future__ import annotations

from typing import Any

import numpy as np

from costlib.tvm_compat import tirx
from costlib.workloads.importers.onnx.moving import flipped
from costlib.workloads.importers.onnx.node import MICROSOFT, Node, Refused, converts
from costlib.workloads.importers.onnx.padding import padded
from costlib.workloads.importers.onnx.products import activated
from costlib.workloads.importers.onnx.tensors import (
    SMALL_FLOATS,
    Tensor,
    computed,
    constant,
    emitted,
    op,
)

_CONVOLUTIONS = {1: op.nn.conv1d, 2: op.nn.conv2d, 3: op.nn.conv3d}
_TRANSPOSED = {1: op.nn.conv1d_transpose, 2: op.nn.conv2d_transpose}


def window_padding(
    node: Node, extents: tuple[int, ...], kernel: list[int], strides: list[int], apart: list[int]
) -> tuple[list[int], list[int]]:
    """Return how many places are added before and after each axis that a window slides along."""
    count = len(extents)
    mode = str(node.attribute("auto_pad", "NOTSET"))
    if mode in ("NOTSET", ""):
        pads = list(node.attribute("pads", [0] * (2 * count)))
        return pads[:count], pads[count:]
    if mode == "VALID":
        return [0] * count, [0] * count
    before, after = [], []
    for n, k, step, dilation in zip(extents, kernel, strides, apart, strict=True):
        total = max(0, (-(-n // step) - 1) * step + (k - 1) * dilation + 1 - n)
        small, large = total // 2, total - total // 2
        before.append(small if mode == "SAME_UPPER" else large)
        after.append(large if mode == "SAME_UPPER" else small)
    return before, after


def convolved(node: Node, x: Tensor, weight: Tensor) -> Tensor:
    """Convolve by the attributes of a node."""
    count = x.ndim - 2
    if count not in _CONVOLUTIONS:
        raise Refused(f"over {count} axes is not supported; 1, 2 or 3 are")
    kernel = list(weight.shape[2:])
    strides = list(node.attribute("strides", [1] * count))
    apart = list(node.attribute("dilations", [1] * count))
    before, after = window_padding(node, x.shape[2:], kernel, strides, apart)
    return convolve(x, weight, strides, [*before, *after], apart, node.attribute("group", 1))


def convolve(
    x: Tensor, weight: Tensor, strides: list[int], pads: list[int], apart: list[int], groups: int
) -> Tensor:
    """Convolve, adding up half precision in single precision."""
    if min(pads, default=0) < 0:
        count = len(strides)
        x = padded(x, [0, 0, *pads[:count]], [0, 0, *pads[count:]])
        pads = [0] * len(pads)
    wide = "float32" if x.dtype in SMALL_FLOATS else None
    if x.dtype not in ("float32", *SMALL_FLOATS):
        wide = x.dtype
    call = _CONVOLUTIONS[len(strides)](
        x.expr,
        weight.expr,
        strides=strides,
        padding=pads,
        dilation=apart,
        groups=groups,
        out_dtype=wide,
    )
    return emitted(call)


def _biased(result: Tensor, bias: Tensor | None) -> Tensor:
    if bias is None:
        return result
    return result + bias.cast(result.dtype).reshape([1, -1, *[1] * (result.ndim - 2)])


@converts("Conv")
def _conv(node: Node) -> Tensor:
    return _biased(convolved(node, node[0], node[1]), node.get(2)).cast(node[0].dtype)


@converts("FusedConv", domain=MICROSOFT)
def _fused_conv(node: Node) -> Tensor:
    result = _biased(convolved(node, node[0], node[1]), node.get(2))
    if node.get(3) is not None:
        result = result + node[3]
    return activated(result, node.attribute("activation"))


@converts("ConvTranspose")
def _conv_transpose(node: Node) -> Tensor:
    x, weight = node[0], node[1]
    count, groups = x.ndim - 2, node.attribute("group", 1)
    if count not in _CONVOLUTIONS:
        raise Refused(f"over {count} axes is not supported; 1, 2 or 3 are")
    strides = list(node.attribute("strides", [1] * count))
    apart = list(node.attribute("dilations", [1] * count))
    extra = list(node.attribute("output_padding", [0] * count))
    reach = [(k - 1) * d + 1 for k, d in zip(weight.shape[2:], apart, strict=True)]
    whole = [(n - 1) * s + r for n, s, r in zip(x.shape[2:], strides, reach, strict=True)]
    before, size = _transposed_size(node, x.shape[2:], strides, whole, extra)
    if groups == 1 and count in _TRANSPOSED and max(apart) == 1:
        result = _TRANSPOSED[count](
            x.expr,
            weight.expr,
            strides=strides,
            out_dtype="float32" if x.dtype in SMALL_FLOATS else x.dtype,
            padding=_cut(before, size, whole, reach),
        )
        done = _cut(before, size, whole, reach)
        result = emitted(result)
        before = [b - d for b, d in zip(before, done, strict=False)]
    else:
        result = _over_zeros(x, weight, strides, apart, reach, groups)
    beyond = [s - n + b for s, n, b in zip(size, result.shape[2:], before, strict=True)]
    result = padded(result, [0, 0, *(-b for b in before)], [0, 0, *beyond])
    return _biased(result, node.get(2)).cast(x.dtype)


def _cut(before: list[int], size: list[int], whole: list[int], reach: list[int]) -> list[int]:
    """Return what TVM can cut off itself: no more than a kernel reaches."""
    front = [min(b, r - 1) for b, r in zip(before, reach, strict=True)]
    after = [n - b - s for n, b, s in zip(whole, before, size, strict=True)]
    back = [max(0, min(a, r - 1)) for a, r in zip(after, reach, strict=True)]
    return [*(max(0, b) for b in front), *back]


def _transposed_size(
    node: Node, extents: tuple[int, ...], strides: list[int], whole: list[int], extra: list[int]
) -> tuple[list[int], list[int]]:
    """Return how much is cut off before each axis of the whole result, and what is left."""
    count = len(extents)
    mode = str(node.attribute("auto_pad", "NOTSET"))
    size = node.attribute("output_shape")
    if size is None and mode in ("NOTSET", "VALID", ""):
        pads = (
            list(node.attribute("pads", [0] * (2 * count)))
            if mode != "VALID"
            else [0] * (2 * count)
        )
        before = pads[:count]
        size = [
            n + e - b - a for n, e, b, a in zip(whole, extra, before, pads[count:], strict=True)
        ]
        return before, size
    if size is None:
        size = [n * s for n, s in zip(extents, strides, strict=True)]
    total = [max(0, n + e - s) for n, e, s in zip(whole, extra, size[-count:], strict=True)]
    is_upper = mode == "SAME_UPPER"
    before = [n // 2 if is_upper else n - n // 2 for n in total]
    return before, list(size[-count:])


def _over_zeros(
    x: Tensor, weight: Tensor, strides: list[int], apart: list[int], reach: list[int], groups: int
) -> Tensor:
    """Convolve the input, spread out with zeros, with the kernel backwards."""
    count = len(strides)
    channels, outputs, *kernel = weight.shape
    for axis in range(2, 2 + count):
        weight = _backwards(weight, axis)
    weight = weight.reshape([groups, channels // groups, outputs, *kernel])
    weight = weight.transpose([0, 2, 1, *range(3, 3 + count)])
    weight = weight.reshape([groups * outputs, channels // groups, *kernel])
    shape = [*x.shape[:2], *((n - 1) * s + 1 for n, s in zip(x.shape[2:], strides, strict=True))]

    def element(data: Any, *indices: Any) -> Any:
        steps = list(zip(indices[2:], strides, strict=True))
        on = [tirx.floormod(i, s) == 0 for i, s in steps]
        read = data[(*indices[:2], *(tirx.floordiv(i, s) for i, s in steps))]
        return tirx.if_then_else(tirx.all(*on), read, tirx.const(0, x.dtype))

    spread = x if max(strides) == 1 else computed("spread", shape, element, x)
    pads = [r - 1 for r in reach] * 2
    return convolve(spread, weight, [1] * count, pads, apart, groups)


def _backwards(x: Tensor, axis: int) -> Tensor:
    return flipped(x, axis) if x.array is None else constant(np.flip(x.array, axis))
