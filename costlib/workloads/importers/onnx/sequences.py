"""Sequences and optionals, which exist while a model is imported and nowhere else."""

from __future__ import annotations

from typing import Any

import numpy as np

from costlib.workloads.importers.onnx.casting import known_or
from costlib.workloads.importers.onnx.node import Node, converts
from costlib.workloads.importers.onnx.tensors import concatenated, constant, stacked


@converts("SequenceEmpty")
def _empty(node: Node) -> list[Any]:
    return [[]]


@converts("SequenceConstruct")
def _construct(node: Node) -> list[Any]:
    return [list(node.inputs)]


@converts("SequenceLength")
def _length(node: Node) -> Any:
    return constant(np.array(len(node.sequence(0)), np.int64))


@converts("SequenceAt")
def _at(node: Node) -> list[Any]:
    return [node.sequence(0)[int(known_or(0, node, 1, "position"))]]


@converts("SequenceInsert")
def _insert(node: Node) -> list[Any]:
    items = list(node.sequence(0))
    items.insert(int(known_or(len(items), node, 2, "position")), node[1])
    return [items]


@converts("SequenceErase")
def _erase(node: Node) -> list[Any]:
    items = list(node.sequence(0))
    del items[int(known_or(-1, node, 1, "position"))]
    return [items]


@converts("ConcatFromSequence")
def _concat(node: Node) -> Any:
    join = stacked if node.attribute("new_axis", 0) else concatenated
    return join(node.sequence(0), node.attribute("axis"))


@converts("SplitToSequence")
def _split(node: Node) -> list[Any]:
    x = node[0]
    axis = x.axis(node.attribute("axis", 0))
    extent = x.shape[axis]
    if node.get(1) is None:
        pieces = x.split(axis, [1] * extent)
        if not node.attribute("keepdims", 1):
            rest = [n for i, n in enumerate(x.shape) if i != axis]
            pieces = [piece.reshape(rest) for piece in pieces]
        return [pieces]
    sizes = node.ints(1, "size of pieces")
    if node[1].ndim == 0:
        sizes = [min(sizes[0], extent - start) for start in range(0, extent, sizes[0])]
    return [x.split(axis, sizes)]


@converts("Optional")
def _optional(node: Node) -> list[Any]:
    return [node.inputs[0] if node.inputs else None]


@converts("OptionalHasElement")
def _has_element(node: Node) -> Any:
    return constant(np.array(bool(node.inputs) and node.inputs[0] is not None))


@converts("OptionalGetElement")
def _get_element(node: Node) -> list[Any]:
    return [node.inputs[0]]
