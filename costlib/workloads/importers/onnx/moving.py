"""Operators that move elements and compute nothing."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from costlib.tvm_compat import tirx
from costlib.workloads.importers.onnx.node import Node, Refused, converts
from costlib.workloads.importers.onnx.tensors import (
    Tensor,
    computed,
    concatenated,
    constant,
    emitted,
    numpy_dtype,
    op,
)


@converts("Shape")
def _shape(node: Node) -> Tensor:
    extents = node[0].shape[node.attribute("start", 0) : node.attribute("end")]
    return constant(np.array(extents, np.int64))


@converts("Size")
def _size(node: Node) -> Tensor:
    return constant(np.array(node[0].size, np.int64))


@converts("Reshape")
def _reshape(node: Node) -> Tensor:
    x = node[0]
    shape = list(node.attribute("shape", ())) if node.opset < 5 else node.ints(1, "shape")
    if not node.attribute("allowzero", 0):
        shape = [x.shape[i] if n == 0 else n for i, n in enumerate(shape)]
    return x.reshape(shape)


@converts("Flatten")
def _flatten(node: Node) -> Tensor:
    axis = node.attribute("axis", 1)
    rows = math.prod(node[0].shape[:axis])
    return node[0].reshape([rows, math.prod(node[0].shape[axis:])])


@converts("Squeeze")
def _squeeze(node: Node) -> Tensor:
    x = node[0]
    axes = node.axes(x.ndim, since=13)
    gone = [i for i, n in enumerate(x.shape) if n == 1] if axes is None else axes
    return x.reshape([n for i, n in enumerate(x.shape) if i not in gone])


@converts("Unsqueeze")
def _unsqueeze(node: Node) -> Tensor:
    x = node[0]
    axes = list(node.attribute("axes")) if node.opset < 13 else node.ints(1, "list of axes")
    return x.expand(*axes)


@converts("Transpose")
def _transpose(node: Node) -> Tensor:
    x = node[0]
    return x.transpose(node.attribute("perm", list(reversed(range(x.ndim)))))


@converts("Concat")
def _concat(node: Node) -> Tensor:
    return concatenated(
        [x for x in node.tensors() if x.size] or node.tensors()[:1],
        node[0].axis(node.attribute("axis", 1)),
    )


@converts("Split")
def _split(node: Node) -> list[Tensor]:
    x = node[0]
    axis, count = x.axis(node.attribute("axis", 0)), len(node.outputs)
    sizes = node.attribute("split")
    if node.opset >= 13:
        sizes = None if node.get(1) is None else node.ints(1, "list of sizes")
    if sizes is None:
        each = math.ceil(x.shape[axis] / node.attribute("num_outputs", count))
        sizes = [each] * (count - 1)
        sizes = [*sizes, x.shape[axis] - sum(sizes)]
    return x.split(axis, sizes)


@converts("Slice")
def _slice(node: Node) -> Tensor:
    x = node[0]
    if node.opset < 10:
        starts, ends = node.attribute("starts"), node.attribute("ends")
        axes, steps = node.attribute("axes"), None
    else:
        starts, ends = node.ints(1, "start"), node.ints(2, "end")
        axes = None if node.get(3) is None else node.ints(3, "list of axes")
        steps = None if node.get(4) is None else node.ints(4, "step")
    axes = range(len(starts)) if axes is None else [x.axis(axis) for axis in axes]
    ranges = [range(n) for n in x.shape]
    for axis, start, end, step in zip(axes, starts, ends, steps or [1] * len(starts), strict=True):
        ranges[axis] = _places(x.shape[axis], start, end, step)
    return sliced(x, ranges)


def _places(extent: int, start: int, end: int, step: int) -> range:
    """Return what a slice takes; backwards, one that starts before the axis starts at its first."""
    if step > 0 or not extent:
        return range(*slice(start, end, step).indices(extent))
    first, last = (place + extent if place < 0 else place for place in (start, end))
    return range(min(max(first, 0), extent - 1), min(max(last, -1), extent - 1), step)


def sliced(x: Tensor, ranges: list[range]) -> Tensor:
    """Take the places of a range along each axis."""
    shape = [len(places) for places in ranges]
    if 0 in shape:
        return constant(np.zeros(shape, numpy_dtype(x.dtype)))
    if x.array is not None:
        return constant(x.array[np.ix_(*ranges)] if ranges else x.array)
    if all(places.step == 1 for places in ranges):
        cut = [i for i, places in enumerate(ranges) if len(places) < x.shape[i]]
        if not cut:
            return x
        begin, end = [ranges[i].start for i in cut], [ranges[i].stop for i in cut]
        return emitted(op.strided_slice(x.expr, cut, begin, end))

    def element(data: Any, *indices: Any) -> Any:
        return data[tuple(r.start + i * r.step for i, r in zip(indices, ranges, strict=True))]

    return computed("strided_slice", shape, element, x)


def flipped(x: Tensor, axis: int) -> Tensor:
    """Reverse an axis."""
    ranges = [range(n) for n in x.shape]
    ranges[axis] = ranges[axis][::-1]
    return sliced(x, ranges)


@converts("Expand")
def _expand(node: Node) -> Tensor:
    return node[0].broadcast(np.broadcast_shapes(node[0].shape, node.ints(1, "shape")))


@converts("Tile")
def _tile(node: Node) -> Tensor:
    x, repeats = node[0], node.ints(1, "number of repetitions")
    shape = [n * count for n, count in zip(x.shape, repeats, strict=True)]

    def element(data: Any, *indices: Any) -> Any:
        return data[tuple(tirx.floormod(i, n) for i, n in zip(indices, x.shape, strict=True))]

    return x if list(x.shape) == shape else computed("tile", shape, element, x)


def taken(x: Tensor, indices: Tensor, axis: int) -> Tensor:
    """Take places along an axis, by indices that are not negative."""
    return emitted(op.take(x.expr, indices.expr, axis, mode="clip"))


@converts("DepthToSpace")
def _depth_to_space(node: Node) -> Tensor:
    n, c, h, w = node[0].shape
    b = node.attribute("blocksize")
    if str(node.attribute("mode", "DCR")) == "DCR":
        x = node[0].reshape([n, b, b, c // b**2, h, w]).transpose([0, 3, 4, 1, 5, 2])
    else:
        x = node[0].reshape([n, c // b**2, b, b, h, w]).transpose([0, 1, 4, 2, 5, 3])
    return x.reshape([n, c // b**2, h * b, w * b])


@converts("SpaceToDepth")
def _space_to_depth(node: Node) -> Tensor:
    n, c, h, w = node[0].shape
    b = node.attribute("blocksize")
    x = node[0].reshape([n, c, h // b, b, w // b, b])
    if str(node.attribute("mode", "DCR")) == "DCR":
        x = x.transpose([0, 3, 5, 1, 2, 4])
    else:
        x = x.transpose([0, 1, 3, 5, 2, 4])
    return x.reshape([n, c * b * b, h // b, w // b])


@converts("ReverseSequence")
def _reverse_sequence(node: Node) -> Tensor:
    x, lengths = node[0], node[1]
    time, batch = node.attribute("time_axis", 0), node.attribute("batch_axis", 1)

    def element(data: Any, length: Any, *indices: Any) -> Any:
        i = tirx.Cast("int64", indices[time])
        n = tirx.Cast("int64", length[indices[batch]])
        place = tirx.Select(i < n, n - tirx.const(1, "int64") - i, i)
        places = [place if axis == time else index for axis, index in enumerate(indices)]
        return data[tuple(places)]

    return computed("reverse_sequence", x.shape, element, x, lengths)


@converts("Trilu")
def _trilu(node: Node) -> Tensor:
    x = node[0]
    k = 0 if node.get(1) is None else node.ints(1, "diagonal")[0]
    is_upper = node.attribute("upper", 1)

    def element(data: Any, *indices: Any) -> Any:
        row, column = indices[-2], indices[-1]
        kept = column - row >= k if is_upper else column - row <= k
        return tirx.Select(kept, data[indices], tirx.const(0, x.dtype))

    return computed("trilu", x.shape, element, x)


@converts("EyeLike")
def _eye_like(node: Node) -> Tensor:
    from costlib.workloads.importers.onnx.casting import dtype_of

    rows, columns = node[0].shape
    code = node.attribute("dtype")
    dtype = node[0].dtype if code is None else dtype_of(code)
    return constant(np.eye(rows, columns, node.attribute("k", 0)).astype(numpy_dtype(dtype)))


@converts("ConstantOfShape")
def _constant_of_shape(node: Node) -> Tensor:
    value = np.asarray(node.attribute("value", np.zeros(1, np.float32))).reshape(())
    return Tensor.of_shape(node.ints(0, "shape"), value, str(value.dtype))


@converts("NonZero", "Unique", "StringNormalizer", "TfIdfVectorizer", "NonMaxSuppression")
def _data_dependent(node: Node) -> None:
    raise Refused(
        "gives a tensor whose shape depends on the data; write it with masks (Where, TopK) instead"
    )


@converts("Compress")
def _compress(node: Node) -> Tensor:
    x, axis = node[0], node.attribute("axis")
    places = np.flatnonzero(node.known(1, "condition"))
    if axis is None:
        x, axis = x.reshape([-1]), 0
    if not len(places):
        shape = [0 if i == x.axis(axis) else n for i, n in enumerate(x.shape)]
        return constant(np.zeros(shape, numpy_dtype(x.dtype)))
    return taken(x, constant(places.astype(np.int64)), x.axis(axis))
