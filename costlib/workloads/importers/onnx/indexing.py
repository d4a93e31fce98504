"""Operators that read and write by indices, which may be negative."""

from __future__ import annotations

from typing import Any

import numpy as np

from costlib.tvm_compat import tirx
from costlib.workloads.importers.onnx.moving import flipped, taken
from costlib.workloads.importers.onnx.node import Node, Refused, converts
from costlib.workloads.importers.onnx.reductions import place_of_extreme
from costlib.workloads.importers.onnx.tensors import (
    SMALL_FLOATS,
    Tensor,
    computed,
    constant,
    emitted,
    op,
    where,
)


def from_front(indices: Tensor, extent: int | np.ndarray) -> Tensor:
    """Count indices from the front; those known to be out of bounds are refused."""
    if indices.array is not None:
        places = np.where(indices.array < 0, indices.array + extent, indices.array)
        if ((places < 0) | (places >= extent)).any():
            raise Refused(f"reads or writes at an index beyond the extent of {extent}")
        return constant(places.astype(np.int64))
    indices = indices.cast("int64")
    count = constant(np.asarray(extent, np.int64))
    return where(indices < 0, indices + count, indices)


def _inside(index: Any, extent: int) -> Any:
    """Keep a read within bounds, whatever the data say."""
    return tirx.max(tirx.min(index, tirx.const(extent - 1, "int64")), tirx.const(0, "int64"))


@converts("Gather")
def _gather(node: Node) -> Tensor:
    x, indices = node[0], node[1]
    axis = x.axis(node.attribute("axis", 0))
    return taken(x, from_front(indices, x.shape[axis]), axis)


@converts("GatherElements")
def _gather_elements(node: Node) -> Tensor:
    x, axis = node[0], node[0].axis(node.attribute("axis", 0))
    return gather_elements(x, from_front(node[1], x.shape[axis]), axis)


def gather_elements(x: Tensor, indices: Tensor, axis: int) -> Tensor:
    """Take an element for each index, at the index's own place along the other axes."""

    def element(data: Any, index: Any, *places: Any) -> Any:
        place = _inside(index[places], x.shape[axis])
        return data[(*places[:axis], place, *places[axis + 1 :])]

    return computed("gather_elements", indices.shape, element, x, indices)


@converts("GatherND")
def _gather_nd(node: Node) -> Tensor:
    x, batch = node[0], node.attribute("batch_dims", 0)
    depth = node[1].shape[-1]
    indices = from_front(node[1], np.array(x.shape[batch : batch + depth]))
    shape = [*indices.shape[:-1], *x.shape[batch + depth :]]
    lead = indices.ndim - 1

    def element(data: Any, index: Any, *places: Any) -> Any:
        read = [_inside(index[(*places[:lead], j)], x.shape[batch + j]) for j in range(depth)]
        return data[(*places[:batch], *read, *places[lead:])]

    return computed("gather_nd", shape, element, x, indices)


_REDUCTIONS = {"none": "update", "add": "add", "mul": "mul", "max": "max", "min": "min"}


@converts("Scatter", "ScatterElements")
def _scatter_elements(node: Node) -> Tensor:
    x, axis = node[0], node[0].axis(node.attribute("axis", 0))
    indices = from_front(node[1], x.shape[axis])
    reduction = _REDUCTIONS[node.attribute("reduction", "none")]
    return emitted(op.scatter_elements(x.expr, indices.expr, node[2].expr, axis, reduction))


@converts("ScatterND")
def _scatter_nd(node: Node) -> Tensor:
    x, depth = node[0], node[1].shape[-1]
    indices = from_front(node[1], np.array(x.shape[:depth]))
    reduction = _REDUCTIONS[node.attribute("reduction", "none")]
    return emitted(op.scatter_nd(x.expr, indices.expr, node[2].expr, reduction))


@converts("TensorScatter")
def _tensor_scatter(node: Node) -> Tensor:
    cache, update, start = node[0], node[1], node.get(2)
    axis = cache.axis(node.attribute("axis", -2))
    extent, count = cache.shape[axis], update.shape[axis]
    is_circular = node.attribute("mode", "linear") == "circular"
    start = constant(np.zeros(cache.shape[0], np.int64)) if start is None else start.cast("int64")

    def element(data: Any, new: Any, first: Any, *places: Any) -> Any:
        behind = places[axis] - first[places[0]]
        if is_circular:
            behind = tirx.floormod(behind, tirx.const(extent, "int64"))
        read = (*places[:axis], _inside(behind, count), *places[axis + 1 :])
        return tirx.Select(tirx.all(behind >= 0, behind < count), new[read], data[places])

    return computed("tensor_scatter", cache.shape, element, cache, update, start)


@converts("OneHot")
def _one_hot(node: Node) -> Tensor:
    indices, values = node[0], node[2]
    depth = node.ints(1, "depth")[0]
    axis = node.attribute("axis", -1) % (indices.ndim + 1)
    indices = indices.cast("int64")
    indices = where(indices < 0, indices + depth, indices)
    shape = [*indices.shape[:axis], depth, *indices.shape[axis:]]

    def element(index: Any, off_on: Any, *places: Any) -> Any:
        hot = index[(*places[:axis], *places[axis + 1 :])] == tirx.Cast("int64", places[axis])
        return tirx.Select(hot, off_on[1], off_on[0])

    return computed("one_hot", shape, element, indices, values)


def _sortable(x: Tensor) -> Tensor:
    """Return numbers in the same order, of a dtype that TVM sorts; NaN is behind infinity."""
    if x.is_float:
        return _ordered(x.cast("float32") if x.dtype in SMALL_FLOATS else x)
    if x.dtype == "uint64":
        return x.cast("int64") + np.iinfo(np.int64).min
    return x if x.dtype == "int64" else x.cast("int64" if x.dtype == "uint32" else "int32")


def _ordered(x: Tensor) -> Tensor:
    """Return integers in the order of floating-point numbers."""
    dtype = {"float32": "int32", "float64": "int64"}[str(x.dtype)]
    largest = tirx.max_value(dtype)

    def element(data: Any, *places: Any) -> Any:
        pattern = tirx.reinterpret(dtype, data[places])
        size = pattern & largest
        number = tirx.Select(pattern < 0, -size, size)
        return tirx.Select(tirx.isnan(data[places]), largest, number)

    return computed("ordered", x.shape, element, x)


@converts("TopK")
def _top_k(node: Node) -> list[Tensor]:
    x = node[0]
    axis = x.axis(node.attribute("axis", -1))
    count = node.attribute("k") if node.opset < 10 else node.ints(1, "number k")[0]
    largest = bool(node.attribute("largest", 1))
    order = emitted(op.argsort(_sortable(x).expr, axis, largest, "int64")).slice(axis, 0, count)
    return [gather_elements(x, order, axis), order]


@converts("ArgMax", "ArgMin")
def _arg_extreme(node: Node) -> Tensor:
    x = node[0]
    axis, keepdims = x.axis(node.attribute("axis", 0)), bool(node.attribute("keepdims", 1))
    is_last = bool(node.attribute("select_last_index", 0))
    place = place_of_extreme(x, axis, node.operator == "ArgMax", is_last)
    kept = [n for i, n in enumerate(x.shape) if i != axis]
    return place if keepdims else place.reshape(kept)


@converts("CumSum", "CumProd")
def _cumulative(node: Node) -> Tensor:
    x, axis = node[0], node[0].axis(node.ints(1, "axis")[0])
    function = op.cumsum if node.operator == "CumSum" else op.cumprod
    is_reversed = node.attribute("reverse", 0)
    x = flipped(x, axis) if is_reversed else x
    is_exclusive = bool(node.attribute("exclusive", 0))
    result = emitted(function(x.expr, axis, x.dtype, is_exclusive))
    return flipped(result, axis) if is_reversed else result
