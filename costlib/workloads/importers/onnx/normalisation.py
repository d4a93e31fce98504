"""Normalisations: the mean first, then the variance around it, so that large means do no harm."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from costlib.tvm_compat import relax, te
from costlib.workloads.folding import is_call
from costlib.workloads.importers.onnx.node import MICROSOFT, Node, Refused, converts
from costlib.workloads.importers.onnx.tensors import (
    SMALL_FLOATS,
    Tensor,
    constant,
    emitted,
    op,
    sqrt,
)


def _wide(x: Tensor) -> Tensor:
    return x.cast("float32") if x.dtype in SMALL_FLOATS else x


def standardised(x: Tensor, axes: list[int], epsilon: float) -> tuple[Tensor, Tensor, Tensor]:
    """Return (x - mean) / deviation along axes, the mean, and 1 / deviation.

    The differences from the first element are averaged, which large means do no harm to.
    """
    first = x
    for axis in axes:
        first = first.slice(axis, 0, 1)
    apart = x - first
    mean = apart.mean(axes)
    centred = apart - mean
    scale = 1.0 / sqrt((centred * centred).mean(axes) + epsilon)
    return centred * scale, mean + first, scale


def _layer_norm(x: Tensor, scale: Tensor, shift: Tensor, axis: int, epsilon: float) -> Tensor:
    """Normalise the axes from one on, as :func:`standardised` does, in a kernel of its own."""
    outer, inner = x.shape[:axis], x.shape[axis:]
    count, first = math.prod(inner), (0,) * len(inner)

    def summed(name: str, element: Callable[..., Any]) -> Any:
        ks = [te.reduce_axis((0, n), name=f"k{axis + i}") for i, n in enumerate(inner)]
        return te.compute(outer, lambda *i: te.sum(element(i, tuple(ks)), axis=ks), name=name)

    def compute(data: Any, gamma: Any, beta: Any) -> Any:
        total = summed("x_sum", lambda i, k: data[i + k] - data[i + first])
        mean = te.compute(outer, lambda *i: total[i] / count + data[i + first], name="x_mean")
        spread = summed("x_var_sum", lambda i, k: (data[i + k] - mean[i]) * (data[i + k] - mean[i]))

        def element(*indices: Any) -> Any:
            i, k = indices[:axis], indices[axis:]
            scaled = (data[indices] - mean[i]) * te.rsqrt(spread[i] / count + epsilon)
            return scaled * gamma[k] + beta[k]

        return te.compute(x.shape, element, name="T_layer_norm")

    builder, inputs = relax.BlockBuilder.current(), (x.expr, scale.expr, shift.expr)
    return Tensor(builder.emit_te(compute, *inputs, primfunc_name_hint="layer_norm"))


@converts("BatchNormalization")
def _batch_normalization(node: Node) -> Any:
    x = node[0]
    if node.opset < 7 and not node.attribute("is_test", 0):
        raise Refused("before opset 7 is for training; set is_test=1")
    if node.opset < 9:
        node.refuse_attributes(spatial=1)
    scale, bias, mean, variance = (node[i] for i in range(1, 5))
    epsilon = node.attribute("epsilon", 1e-5)
    if node.attribute("training_mode", 0):
        return _trained(node, x, epsilon)
    if node.opset < 14 and sum(node.outputs) > 1:
        raise Refused("with statistics as outputs is for training; export the model for inference")
    parameters = [scale, bias, mean, variance]
    if all(p.array is not None for p in parameters) and _is_convolution(x):
        call = op.nn.batch_norm(x.expr, *(p.expr for p in parameters), axis=1, epsilon=epsilon)
        return emitted(relax.TupleGetItem(emitted_tuple(call), 0))
    rest = [1] * (x.ndim - 2)
    wide = _wide(x)
    scale, bias, mean, variance = (p.cast(wide.dtype).reshape([-1, *rest]) for p in parameters)
    return ((wide - mean) * (scale / sqrt(variance + epsilon)) + bias).cast(x.dtype)


def _is_convolution(x: Tensor) -> bool:
    """Whether a tensor comes from a convolution, which the normalisation is folded into."""
    definition = x.expr
    while isinstance(definition, relax.Var):
        definition = relax.BlockBuilder.current().lookup_binding(definition)
        if is_call(definition, "relax.add"):
            definition = definition.args[0]
    name = getattr(getattr(definition, "op", None), "name", "")
    return x.dtype == "float32" and name.startswith("relax.nn.conv")


def emitted_tuple(expr: Any) -> Any:
    """Bind an expression that is a tuple."""
    return relax.BlockBuilder.current().emit(expr)


def _trained(node: Node, x: Tensor, epsilon: float) -> list[Tensor]:
    axes = [0, *range(2, x.ndim)]
    wide, rest = _wide(x), [1] * (x.ndim - 2)
    result, mean, _ = standardised(wide, axes, epsilon)
    variance = ((wide - mean) * (wide - mean)).mean(axes)
    scale, bias, old_mean, old_variance = (node[i].cast(wide.dtype) for i in range(1, 5))
    result = result * scale.reshape([-1, *rest]) + bias.reshape([-1, *rest])
    kept = node.attribute("momentum", 0.9)
    running = [
        (old * kept + new.reshape(old.shape) * (1 - kept)).cast(node[3].dtype)
        for old, new in ((old_mean, mean), (old_variance, variance))
    ]
    return [result.cast(x.dtype), *running]


@converts("InstanceNormalization")
def _instance_normalization(node: Node) -> Tensor:
    x = _wide(node[0])
    result, _, _ = standardised(x, list(range(2, x.ndim)), node.attribute("epsilon", 1e-5))
    shape = [-1, *[1] * (x.ndim - 2)]
    scale, bias = (node[i].cast(x.dtype).reshape(shape) for i in (1, 2))
    return (result * scale + bias).cast(node[0].dtype)


@converts("GroupNormalization")
def _group_normalization(node: Node) -> Tensor:
    x, groups = _wide(node[0]), node.attribute("num_groups")
    n, channels, *rest = x.shape
    apart = x.reshape([n, groups, channels // groups * math.prod(rest)])
    result, _, _ = standardised(apart, [2], node.attribute("epsilon", 1e-5))
    scale, bias = (node[i].cast(x.dtype) for i in (1, 2))
    if node.opset < 21:
        scale, bias = scale.reshape([groups, 1]), bias.reshape([groups, 1])
        return (result * scale + bias).reshape(x.shape).cast(node[0].dtype)
    shape = [-1, *[1] * len(rest)]
    result = result.reshape(x.shape) * scale.reshape(shape) + bias.reshape(shape)
    return result.cast(node[0].dtype)


@converts("LayerNormalization")
@converts("LayerNormalization", domain=MICROSOFT)
def _layer_normalization(node: Node) -> list[Tensor]:
    return _normalised(node, node[0], node[1], node.get(2), with_mean=True)


@converts("SimplifiedLayerNormalization", domain=MICROSOFT)
@converts("SimplifiedLayerNormalization", "RMSNormalization")
def _rms_normalization(node: Node) -> Tensor:
    return _normalised(node, node[0], node[1], None, with_mean=False)[0]


def _normalised(
    node: Node, x: Tensor, scale: Tensor, bias: Tensor | None, with_mean: bool
) -> list[Tensor]:
    """Normalise the last axes; give the mean and one over the deviation, too."""
    wide = _wide(x)
    axes = list(range(x.axis(node.attribute("axis", -1)), x.ndim))
    epsilon = node.attribute("epsilon", 1e-5)
    if with_mean:
        result, mean, inverse = standardised(wide, axes, epsilon)
        extents = x.shape[axes[0] :]
        if wide is x and axes[0] and {scale.shape, (bias or scale).shape} == {extents}:
            shift = constant(np.zeros(extents, x.dtype)) if bias is None else bias
            return [_layer_norm(x, scale, shift, axes[0], epsilon), mean, inverse]
    else:
        inverse = 1.0 / sqrt((wide * wide).mean(axes) + epsilon)
        result, mean = wide * inverse, inverse
    result = result.cast(x.dtype).cast(wide.dtype) * scale.cast(wide.dtype)
    result = result if bias is None else result + bias.cast(wide.dtype)
    return [result.cast(scale.dtype), mean, inverse]


@converts("SkipLayerNormalization", "SkipSimplifiedLayerNormalization", domain=MICROSOFT)
def _skip_layer_normalization(node: Node) -> list[Tensor]:
    is_simple = node.operator.startswith("SkipSimplified")
    beta = None if is_simple else node.get(3)
    bias = node.get(3 if is_simple else 4)
    total = node[0] + node[1]
    total = total if bias is None else total + bias
    given = Node("", "", 17, (), {"epsilon": node.attribute("epsilon", 1e-12)})
    result, mean, inverse = _normalised(given, total, node[2], beta, with_mean=not is_simple)
    return [result, mean, inverse, total]


@converts("EmbedLayerNormalization", domain=MICROSOFT)
def _embed_layer_normalization(node: Node) -> list[Tensor]:
    from costlib.workloads.importers.onnx.indexing import from_front
    from costlib.workloads.importers.onnx.moving import taken

    ids, segments = node[0], node.get(1)
    words, places, kinds = node[2], node[3], node.get(4)
    total = taken(words, from_front(ids, words.shape[0]), 0)
    positions = node.get(8)
    if positions is None:
        positions = constant(np.arange(ids.shape[1], dtype=np.int64)[None])
    total = total + taken(places, from_front(positions, places.shape[0]), 0)
    if segments is not None and kinds is not None:
        total = total + taken(kinds, from_front(segments, kinds.shape[0]), 0)
    given = Node("", "", 17, (), {"epsilon": node.attribute("epsilon", 1e-12)})
    result = _normalised(given, total, node[5], node[6], with_mean=True)[0]
    mask = node.get(7)
    counts = constant(np.zeros(ids.shape[0], np.int32)) if mask is None else mask.sum([1], False)
    return [result, counts.cast("int32"), total]
