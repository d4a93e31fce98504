"""Control flow, decided or unrolled while a model is imported."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx

from costlib.workloads.importers.onnx.folding import attribute_values
from costlib.workloads.importers.onnx.moving import flipped
from costlib.workloads.importers.onnx.node import Refused, Value
from costlib.workloads.importers.onnx.tensors import (
    Tensor,
    constant,
    emitted,
    op,
    stacked,
    where,
)

if TYPE_CHECKING:
    from costlib.workloads.importers.onnx.graph import Scope, Walker

_MOST_ITERATIONS = 1024

Control = Callable[["Walker", onnx.NodeProto, "Scope", list[Value]], list[Value]]


def _if(walker: Walker, proto: onnx.NodeProto, scope: Scope, values: list[Value]) -> list[Value]:
    """Import one branch if the condition is known, otherwise both, and choose."""
    attributes = attribute_values(proto)
    (condition,) = values
    assert isinstance(condition, Tensor)
    if condition.array is not None:
        branch = "then_branch" if condition.array.any() else "else_branch"
        return walker.inner(attributes[branch], scope, ())
    one = walker.inner(attributes["then_branch"], scope, ())
    other = walker.inner(attributes["else_branch"], scope, ())
    return [_chosen(condition, a, b) for a, b in zip(one, other, strict=True)]


def _chosen(condition: Tensor, one: Value, other: Value) -> Value:
    if not isinstance(one, Tensor) or not isinstance(other, Tensor):
        raise Refused("chooses between sequences by data, which is not supported")
    if (one.shape, one.dtype) != (other.shape, other.dtype):
        raise Refused(
            f"chooses between shapes {list(one.shape)} and {list(other.shape)} by data; "
            "give both branches the same shape and dtype"
        )
    return where(condition.reshape([]), one, other)


def _loop(walker: Walker, proto: onnx.NodeProto, scope: Scope, values: list[Value]) -> list[Value]:
    """Unroll a loop whose number of iterations is known, or has a known bound."""
    body = attribute_values(proto)["body"]
    trips, condition, *carried = [*values, None][: max(2, len(values))]
    limit = _number(trips, "number of iterations")
    scans: list[list[Value]] = [[] for _ in range(len(body.output) - 1 - len(carried))]
    going: Value = constant(np.array(True)) if condition is None else condition
    count = 0
    while limit is None or count < limit:
        assert isinstance(going, Tensor)
        if going.array is not None and not going.array.any():
            break
        if count >= _MOST_ITERATIONS:
            raise Refused(f"of more than {_MOST_ITERATIONS} iterations is not unrolled")
        if going.array is None and (limit is None or scans):
            raise Refused("ends when the data say so; give it a constant number of iterations")
        step = constant(np.array(count, np.int64))
        after, *results = walker.inner(body, scope, [step, going, *carried])
        new, kept = results[: len(carried)], results[len(carried) :]
        assert isinstance(after, Tensor)
        if going.array is None:
            new = [_chosen(going, n, old) for n, old in zip(new, carried, strict=True)]
            after = emitted(op.logical_and(going.expr, after.expr))
        for scan, value in zip(scans, kept, strict=True):
            scan.append(value)
        going, carried = after, new
        count += 1
    return [*carried, *(_stacked(scan, 0, body, i - len(scans)) for i, scan in enumerate(scans))]


def _stacked(values: list[Value], axis: int, body: onnx.GraphProto, index: int) -> Value:
    tensors = [value for value in values if isinstance(value, Tensor)]
    if tensors:
        return stacked(tensors, axis)
    kind = body.output[index].type.tensor_type
    extents = [dim.dim_value for dim in kind.shape.dim]
    dtype = onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type)
    return constant(np.zeros([0, *extents], dtype))


def _number(value: Value, what: str) -> int | None:
    if value is None:
        return None
    assert isinstance(value, Tensor)
    if value.array is None:
        raise Refused(f"has a {what} that depends on the data; make it a constant")
    return int(value.array.reshape(()))


def _scan(walker: Walker, proto: onnx.NodeProto, scope: Scope, values: list[Value]) -> list[Value]:
    attributes = attribute_values(proto)
    body, count = attributes["body"], attributes["num_scan_inputs"]
    if walker.opsets[""] < 9:
        raise Refused("before opset 9 is not supported; convert the model to opset 9 or later")
    states, inputs = values[:-count], [v for v in values[-count:] if isinstance(v, Tensor)]
    scans = len(body.output) - len(states)
    axes = attributes.get("scan_input_axes", [0] * count)
    backwards = attributes.get("scan_input_directions", [0] * count)
    inputs = [
        flipped(x, x.axis(axis)) if is_back else x
        for x, axis, is_back in zip(inputs, axes, backwards, strict=True)
    ]
    steps = inputs[0].shape[inputs[0].axis(axes[0])]
    if steps > _MOST_ITERATIONS:
        raise Refused(f"of more than {_MOST_ITERATIONS} steps is not unrolled")
    outputs: list[list[Any]] = [[] for _ in range(scans)]
    for i in range(steps):
        parts = [_place(x, x.axis(axis), i) for x, axis in zip(inputs, axes, strict=True)]
        results = walker.inner(body, scope, [*states, *parts])
        states = results[: len(states)]
        for output, value in zip(outputs, results[len(states) :], strict=True):
            output.append(value)
    out_axes = attributes.get("scan_output_axes", [0] * scans)
    out_backwards = attributes.get("scan_output_directions", [0] * scans)
    joined = [
        stacked(output[::-1] if is_back else output, axis)
        for output, axis, is_back in zip(outputs, out_axes, out_backwards, strict=True)
    ]
    return [*states, *joined]


def _place(x: Tensor, axis: int, index: int) -> Tensor:
    rest = [n for i, n in enumerate(x.shape) if i != axis]
    return x.slice(axis, index, index + 1).reshape(rest)


CONVERTERS: dict[tuple[str, str], Control] = {
    ("", "If"): _if,
    ("", "Loop"): _loop,
    ("", "Scan"): _scan,
}
"""How operators with graphs inside them are imported."""
