"""Attention as ONNX Runtime fuses it (the domain com.microsoft)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from costlib.tvm_compat import tirx
from costlib.workloads.importers.onnx.node import MICROSOFT, Node, Refused, converts
from costlib.workloads.importers.onnx.tensors import (
    Tensor,
    computed,
    concatenated,
    constant,
    matmul,
    numpy_dtype,
    softmax,
    stacked,
    where,
)


def _heads(x: Tensor, count: int) -> Tensor:
    """Turn batch x length x (heads x size) into batch x heads x length x size."""
    batch, length, width = x.shape
    return x.reshape([batch, length, count, width // count]).transpose([0, 2, 1, 3])


def _joined(x: Tensor) -> Tensor:
    batch, heads, length, size = x.shape
    return x.transpose([0, 2, 1, 3]).reshape([batch, length, heads * size])


def _attended(
    node: Node, query: Tensor, key: Tensor, value: Tensor, bias: Tensor | None, is_causal: bool
) -> Tensor:
    """Attend, all of them batch x heads x length x size."""
    scale = node.attribute("scale", 0.0) or 1 / math.sqrt(query.shape[-1])
    scores = matmul(query, key.swap()) * scale
    if bias is not None:
        scores = scores + bias
    if is_causal:
        rows, columns = scores.shape[-2:]
        allowed = np.tri(rows, columns, columns - rows, dtype=bool)
        filler = node.attribute("mask_filter_value", -10000.0)
        scores = where(constant(allowed), scores, scores.like(filler))
    return _joined(matmul(softmax(scores, 3), value))


def _mask_bias(node: Node, mask: Tensor | None, length: int, dtype: str) -> Tensor | None:
    """Turn a mask of ones and zeros, or lengths, into what is added to scores."""
    if mask is None:
        return None
    if mask.ndim == 1:
        if mask.shape[0] != node[0].shape[0]:
            raise Refused("with a mask of start positions is not supported; use a 2-D mask")
        places = constant(np.arange(length, dtype=np.int32)[None])
        kept = places < mask.cast("int32").expand(1)
    else:
        kept = mask.cast("int32") > 0
    if kept.ndim not in (2, 3):
        raise Refused(f"with a mask of {kept.ndim} axes is not supported; use one of 2 or 3")
    kept = kept.expand(1, 2) if kept.ndim == 2 else kept.expand(1)
    zero = constant(np.zeros((), numpy_dtype(dtype)))
    return where(kept, zero, zero.like(node.attribute("mask_filter_value", -10000.0)))


def _no_cache(node: Node, *indices: int) -> None:
    if any(node.get(i) is not None for i in indices):
        raise Refused("with a cache of past keys is not supported; export the model without one")
    if sum(node.outputs) > 1:
        raise Refused("with keys as outputs is not supported; export the model without a cache")


@converts("Attention", domain=MICROSOFT)
def _attention(node: Node) -> Tensor:
    node.refuse_attributes(do_rotary=0)
    _no_cache(node, 4, 6)
    x, weight, bias, mask, extra = node[0], node[1], node.get(2), node.get(3), node.get(5)
    heads = node.attribute("num_heads")
    projected = matmul(x, weight)
    projected = projected if bias is None else projected + bias
    sizes = node.attribute("qkv_hidden_sizes") or [projected.shape[-1] // 3] * 3
    query, key, value = (_heads(part, heads) for part in projected.split(2, sizes))
    added = _mask_bias(node, mask, x.shape[1], x.dtype)
    added = extra if added is None else added if extra is None else added + extra
    return _attended(node, query, key, value, added, bool(node.attribute("unidirectional", 0)))


@converts("MultiHeadAttention", domain=MICROSOFT)
def _multi_head_attention(node: Node) -> Tensor:
    _no_cache(node, 6, 7)
    heads = node.attribute("num_heads")
    query, key, value = node[0], node.get(1), node.get(2)
    if query.ndim == 5:
        packed = [part.reshape([*query.shape[:3], -1]) for part in query.split(3, [1, 1, 1])]
        query, key, value = (part.reshape([*part.shape[:2], -1]) for part in packed)
    if key is None:
        raise Refused("without keys is not supported")
    if key.ndim == 5:
        parts = [part.reshape([*key.shape[:3], -1]) for part in key.split(3, [1, 1])]
        key, value = (part.reshape([*part.shape[:2], -1]) for part in parts)
    assert value is not None
    bias = node.get(3)
    if bias is not None:
        widths = [query.shape[-1], query.shape[-1], bias.shape[0] - 2 * query.shape[-1]]
        bias_q, bias_k, bias_v = bias.split(0, widths)
        query = query + bias_q
        key = key + (bias_k if key.ndim == 3 else bias_k.reshape([heads, 1, -1]))
        value = value + (bias_v if value.ndim == 3 else bias_v.reshape([heads, 1, -1]))
    key = _heads(key, heads) if key.ndim == 3 else key
    value = _heads(value, heads) if value.ndim == 3 else value
    added, extra = _mask_bias(node, node.get(4), key.shape[2], query.dtype), node.get(5)
    added = extra if added is None else added if extra is None else added + extra
    causal = bool(node.attribute("unidirectional", 0))
    return _attended(node, _heads(query, heads), key, value, added, causal)


@converts("RotaryEmbedding", domain=MICROSOFT)
def _rotary_embedding(node: Node) -> Tensor:
    node.refuse_attributes(is_packed_batching=0, scale=1.0)
    x, positions, cosines, sines = node.tensors()
    heads, turned = node.attribute("num_heads", 0), node.attribute("rotary_embedding_dim", 0)
    if x.ndim == 3:
        size = x.shape[2] // heads if heads else 2 * cosines.shape[1]
        split = _heads(x, x.shape[2] // size)
    else:
        split = x
    size = split.shape[3]
    turned = turned or size
    batch, length = split.shape[0], split.shape[2]
    if positions.size == 1:
        positions = positions.reshape([1, 1]) + constant(np.arange(length)[None])
        positions = positions.broadcast([batch, length])
    half = turned // 2

    def read(table: Any, place: Any, b: Any, _: Any, i: Any, k: Any) -> Any:
        return table[tirx.max(tirx.min(place[b, i], cosines.shape[0] - 1), 0), k]

    shape = [batch, 1, length, half]
    cos = computed("rotary_cosine", shape, read, cosines, positions)
    sin = computed("rotary_sine", shape, read, sines, positions)
    moving, still = split.slice(3, 0, turned), split.slice(3, turned, size)
    if node.attribute("interleaved", 0):
        pairs = moving.reshape([*moving.shape[:3], half, 2])
        one, other = (part.reshape(part.shape[:4]) for part in pairs.split(4, [1, 1]))
        result = stacked([one * cos - other * sin, one * sin + other * cos], 4)
        result = result.reshape(moving.shape)
    else:
        one, other = moving.split(3, [half, half])
        result = concatenated([one * cos - other * sin, one * sin + other * cos], 3)
    if turned < size:
        result = concatenated([result, still], 3)
    return _joined(result) if x.ndim == 3 else result
