"""Places added around tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from costlib.tvm_compat import tirx
from costlib.workloads.importers.onnx.moving import sliced, taken
from costlib.workloads.importers.onnx.node import Node, converts
from costlib.workloads.importers.onnx.tensors import Tensor, computed, constant, emitted, op


@converts("Pad")
def _pad(node: Node) -> Tensor:
    x, mode = node[0], str(node.attribute("mode", "constant"))
    widths = [0] * (2 * x.ndim)
    value: Tensor | None = None
    if node.opset < 11:
        widths = list(node.attribute("pads", node.attribute("paddings")))
        value = x.like(node.attribute("value", 0.0))
    else:
        given = node.ints(1, "width of padding")
        axes = list(range(x.ndim))
        if node.get(3) is not None:
            axes = [x.axis(axis) for axis in node.ints(3, "list of axes")]
        for i, axis in enumerate(axes):
            widths[axis], widths[x.ndim + axis] = given[i], given[len(given) // 2 + i]
        value = node.get(2)
    return padded(x, widths[: x.ndim], widths[x.ndim :], mode, value)


def padded(
    x: Tensor,
    before: list[int],
    after: list[int],
    mode: str = "constant",
    value: Tensor | None = None,
) -> Tensor:
    """Add places around a tensor, or take them away where a width is negative."""
    ranges = [
        range(max(0, -b), n - max(0, -a)) for n, b, a in zip(x.shape, before, after, strict=True)
    ]
    x = sliced(x, ranges)
    before, after = [max(0, n) for n in before], [max(0, n) for n in after]
    if mode == "constant":
        return _padded_with(x, before, after, x.like(0) if value is None else value.reshape([]))
    for axis, width in enumerate(zip(before, after, strict=True)):
        if any(width):
            places = np.pad(np.arange(x.shape[axis]), width, mode=mode)  # type: ignore[call-overload]
            x = taken(x, constant(places.astype(np.int64)), axis)
    return x


def _padded_with(x: Tensor, before: list[int], after: list[int], value: Tensor) -> Tensor:
    if not any(before + after):
        return x
    if x.is_float and value.array is not None and np.isfinite(value.array.astype(float)):
        widths = [n for pair in zip(before, after, strict=True) for n in pair]
        return emitted(op.nn.pad(x.expr, widths, "constant", float(value.array)))
    shape = [n + b + a for n, b, a in zip(x.shape, before, after, strict=True)]

    def element(data: Any, fill: Any, *indices: Any) -> Any:
        inside, places = [], []
        for i, n, b, a in zip(indices, x.shape, before, after, strict=True):
            inside += [i >= b] if b else []
            inside += [i < n + b] if a else []
            places.append(i - b)
        return tirx.if_then_else(tirx.all(*inside), data[tuple(places)], fill[()])

    return computed("pad", shape, element, x, value)
