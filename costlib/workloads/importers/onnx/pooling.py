"""Pooling over windows, and over everything."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from costlib.tvm_compat import te, tirx
from costlib.workloads.importers.onnx.convolution import window_padding
from costlib.workloads.importers.onnx.node import Node, Refused, converts
from costlib.workloads.importers.onnx.padding import padded
from costlib.workloads.importers.onnx.reductions import extreme
from costlib.workloads.importers.onnx.tensors import (
    Tensor,
    absolute,
    computed,
    constant,
    emitted,
    op,
)

_MAX_POOLS = {1: op.nn.max_pool1d, 2: op.nn.max_pool2d, 3: op.nn.max_pool3d}
_AVERAGE_POOLS = {1: op.nn.avg_pool1d, 2: op.nn.avg_pool2d, 3: op.nn.avg_pool3d}


class _Windows:
    """The windows of a pooling: where they are, how many there are.

    ``after`` has the places that the last windows reach beyond the padding, too.
    """

    def __init__(self, node: Node, x: Tensor) -> None:
        self.kernel = list(node.attribute("kernel_shape"))
        self.count = len(self.kernel)
        if x.ndim != self.count + 2 or self.count not in _MAX_POOLS:
            raise Refused(f"over {self.count} of {x.ndim} axes is not supported")
        ones = [1] * self.count
        self.strides = list(node.attribute("strides", ones))
        self.apart = list(node.attribute("dilations", ones))
        extents = x.shape[2:]
        self.before, self.given = window_padding(
            node, extents, self.kernel, self.strides, self.apart
        )
        self.size, self.after = [], []
        for n, k, s, d, b, a in zip(
            extents, self.kernel, self.strides, self.apart, self.before, self.given, strict=True
        ):
            reach = (k - 1) * d + 1
            room = n + b + a - reach
            steps = -(-room // s) if node.attribute("ceil_mode", 0) else room // s
            if node.attribute("ceil_mode", 0) and steps * s >= n + b:
                steps -= 1
            self.size.append(steps + 1)
            self.after.append(max(0, steps * s + reach - n - b))
        self.is_plain = max(self.apart) == 1
        self.pads = [*self.before, *self.after]

    def around(self, x: Tensor, value: Any) -> Tensor:
        """Add the places that windows reach beyond a tensor."""
        fill = constant(np.asarray(value, x.like(0).array.dtype))  # type: ignore[union-attr]
        return padded(x, [0, 0, *self.before], [0, 0, *self.after], "constant", fill)

    def places(self, indices: Any, offsets: Any) -> list[Any]:
        """Return where an element of a window is in the padded tensor."""
        steps = zip(indices, self.strides, offsets, self.apart, strict=True)
        return [i * s + k * d for i, s, k, d in steps]

    def sum(self, x: Tensor) -> Tensor:
        """Add up the elements of each window."""
        padded_x = self.around(x, 0)

        def element(data: Any, *indices: Any) -> Any:
            inner = [te.reduce_axis((0, k), name=f"k{i}") for i, k in enumerate(self.kernel)]
            read = data[(*indices[:2], *self.places(indices[2:], inner))]
            return te.sum(read, axis=inner)

        return computed("pool_sum", [*x.shape[:2], *self.size], element, padded_x)

    def counts(self, x: Tensor, with_padding: bool) -> np.ndarray:
        """Return how many elements of each window are counted, the padding or not."""
        total = np.ones(self.size)
        for axis in range(self.count):
            n, b, a = x.shape[2 + axis], self.before[axis], self.given[axis]
            first, last = (-b, n + a) if with_padding else (0, n)
            starts = np.arange(self.size[axis]) * self.strides[axis] - b
            taps = starts[:, None] + np.arange(self.kernel[axis]) * self.apart[axis]
            inside = ((taps >= first) & (taps < last)).sum(1)
            total *= inside.reshape([-1 if i == axis else 1 for i in range(self.count)])
        return total


@converts("MaxPool")
def _max_pool(node: Node) -> Any:
    x, windows = node[0], _Windows(node, node[0])
    pooled = emitted(
        _MAX_POOLS[windows.count](
            x.expr,
            pool_size=windows.kernel,
            strides=windows.strides,
            padding=windows.pads,
            dilation=windows.apart,
        )
    )
    if len(node.outputs) == 1:
        return pooled
    return [pooled, _places_of(node, x, pooled, windows)]


def _places_of(node: Node, x: Tensor, pooled: Tensor, windows: _Windows) -> Tensor:
    """Return where in the flattened input each window has its first largest element, or NaN."""
    extents = x.shape[2:]
    weights = [math.prod(extents[i + 1 :]) for i in range(len(extents))]
    if node.attribute("storage_order", 0):
        weights = [math.prod(extents[:i]) for i in range(len(extents))]
    beyond = np.iinfo(np.int64).max

    def element(data: Any, largest: Any, *indices: Any) -> Any:
        inner = [te.reduce_axis((0, k), name=f"k{i}") for i, k in enumerate(windows.kernel)]
        places = [
            p - b for p, b in zip(windows.places(indices[2:], inner), windows.before, strict=True)
        ]
        inside = [t for p, n in zip(places, extents, strict=True) for t in (p >= 0, p < n)]
        first = (indices[0] * x.shape[1] + indices[1]) * math.prod(extents)
        flat = first + sum(p * w for p, w in zip(places, weights, strict=True))
        read = [tirx.max(tirx.min(p, n - 1), 0) for p, n in zip(places, extents, strict=True)]
        value = data[(*indices[:2], *read)]
        is_largest = value == largest[indices]
        if x.is_float:
            is_largest = tirx.any(is_largest, tirx.isnan(value))
        found = tirx.all(*inside, is_largest)
        place = tirx.Select(found, tirx.Cast("int64", flat), tirx.const(beyond, "int64"))
        return te.min(place, axis=inner)

    return computed("pool_places", pooled.shape, element, x, pooled)


@converts("AveragePool")
def average_pool(node: Node) -> Tensor:
    """Import an average pooling."""
    x, windows = node[0], _Windows(node, node[0])
    with_padding = bool(node.attribute("count_include_pad", 0))
    if windows.is_plain and windows.after == windows.given and x.dtype == "float32":
        return emitted(
            _AVERAGE_POOLS[windows.count](
                x.expr,
                pool_size=windows.kernel,
                strides=windows.strides,
                padding=windows.pads,
                count_include_pad=with_padding,
            )
        )
    wide = x.cast("float64" if x.dtype == "float64" else "float32")
    counts = constant(windows.counts(x, with_padding)).cast(wide.dtype)
    return (windows.sum(wide) / counts).cast(x.dtype)


@converts("LpPool")
def _lp_pool(node: Node) -> Tensor:
    x, p = node[0], node.attribute("p", 2)
    wide = absolute(x.cast("float64" if x.dtype == "float64" else "float32"))
    return _root(_Windows(node, x).sum(_power(wide, p)), p).cast(x.dtype)


def _power(x: Tensor, p: float) -> Tensor:
    return x if p == 1 else x * x if p == 2 else emitted(op.power(x.expr, x.like(p).expr))


def _root(x: Tensor, p: float) -> Tensor:
    if p == 2:
        return emitted(op.sqrt(x.expr))
    return x if p == 1 else emitted(op.power(x.expr, x.like(1 / p).expr))


@converts("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")
def _global_pool(node: Node) -> Tensor:
    x = node[0]
    axes = list(range(2, x.ndim))
    if node.operator == "GlobalMaxPool":
        return extreme(x, axes, True)
    wide = x.cast("float64" if x.dtype == "float64" else "float32")
    if node.operator == "GlobalAveragePool":
        return emitted(op.mean(wide.expr, axes, True)).cast(x.dtype)
    p = node.attribute("p", 2)
    return _root(_power(absolute(wide), p).sum(axes), p).cast(x.dtype)


@converts("MaxUnpool")
def _max_unpool(node: Node) -> Tensor:
    x, indices = node[0], node[1]
    kernel = node.attribute("kernel_shape")
    strides = node.attribute("strides", [1] * len(kernel))
    pads = node.attribute("pads", [0] * 2 * len(kernel))
    size = [
        (n - 1) * s + k - b - a
        for n, s, k, b, a in zip(
            x.shape[2:], strides, kernel, pads[: len(kernel)], pads[len(kernel) :], strict=True
        )
    ]
    shape = [*x.shape[:2], *size]
    blank = Tensor.of_shape([math.prod(shape)], 0, x.dtype)
    flat = indices.reshape([-1]).cast("int64")
    result = op.scatter_elements(blank.expr, flat.expr, x.reshape([-1]).expr, 0, "update")
    placed = emitted(result).reshape(shape)
    target = shape if node.get(2) is None else node.ints(2, "output shape")
    rest = [n - m for n, m in zip(target, shape, strict=True)]
    return padded(placed, [0] * x.ndim, rest)


@converts("LRN")
def _lrn(node: Node) -> Tensor:
    x, size = node[0], node.attribute("size")
    before = (size - 1) // 2
    wide = x.cast("float64" if x.dtype == "float64" else "float32")
    around = [0] * (x.ndim - 2)
    square = padded(wide * wide, [0, before, *around], [0, size - 1 - before, *around])

    def element(data: Any, *indices: Any) -> Any:
        k = te.reduce_axis((0, size), name="k")
        return te.sum(data[(indices[0], indices[1] + k, *indices[2:])], axis=k)

    total = computed("lrn_sum", x.shape, element, square)
    alpha, beta = node.attribute("alpha", 1e-4), node.attribute("beta", 0.75)
    base = total * (alpha / size) + node.attribute("bias", 1.0)
    return (wide / emitted(op.power(base.expr, base.like(beta).expr))).cast(x.dtype)


@converts("Col2Im")
def _col2im(node: Node) -> Tensor:
    """Add the columns of each window up at their places, by one shift for each of its elements."""
    x = node[0]
    image, block = node.ints(1, "image shape"), node.ints(2, "block shape")
    count = len(image)
    strides = list(node.attribute("strides", [1] * count))
    apart = list(node.attribute("dilations", [1] * count))
    pads = list(node.attribute("pads", [0] * (2 * count)))
    steps = [
        (n + b + a - (k - 1) * d - 1) // s + 1
        for n, b, a, k, d, s in zip(
            image, pads[:count], pads[count:], block, apart, strides, strict=True
        )
    ]
    channels = x.shape[1] // math.prod(block)
    columns = x.reshape([x.shape[0], channels, *block, *steps])

    def element(data: Any, n: Any, c: Any, *indices: Any) -> Any:
        value = tirx.const(0, x.dtype)
        for offsets in itertools.product(*map(range, block)):
            inside, places = [], []
            for axis, k in enumerate(offsets):
                at = indices[axis] + pads[axis] - k * apart[axis]
                step = tirx.floordiv(at, strides[axis])
                inside += [tirx.floormod(at, strides[axis]) == 0, at >= 0, step < steps[axis]]
                places.append(step)
            read = data[(n, c, *offsets, *places)]
            value = value + tirx.if_then_else(tirx.all(*inside), read, tirx.const(0, x.dtype))
        return value

    return computed("col2im", [x.shape[0], channels, *image], element, columns)
