"""Normalisations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from costlib.tvm_compat import relax
from costlib.workloads.importers.aten.elementwise import computed_in
from costlib.workloads.importers.aten.graph import (
    Converter,
    Graph,
    dtype_of,
    elements,
    registering,
    scalar,
    shape_of,
)
from costlib.workloads.importers.aten.reductions import moments

CONVERTERS: dict[str, Converter] = {}
converts = registering(CONVERTERS)

R = relax.op


def _affine(g: Graph, values: Any, shape: Sequence[int], default: int, dtype: str) -> Any:
    if values is None:
        values = torch.full(tuple(shape), default, dtype=getattr(torch, dtype))
    return g.tensor(values, dtype)


def _statistics(g: Graph, x: Any, axes: Sequence[int], epsilon: float, number: int) -> Any:
    """Return mean and inverse deviation, if the program reads them."""
    if not g.reads(number) and not g.reads(number + 1):
        return None, None
    mean, _, square = moments(g, x, axes)
    inverse = g.emit(R.rsqrt(g.emit(R.add(square, scalar(epsilon, "float32")))))
    return mean, inverse


@converts("native_layer_norm")
def _layer_norm(
    g: Graph, x: Any, shape: Sequence[int], weight: Any, bias: Any, epsilon: float
) -> Any:
    out = dtype_of(g.out[0])
    wide = computed_in(out)
    x = g.tensor(x, wide)
    gamma, beta = _affine(g, weight, shape, 1, wide), _affine(g, bias, shape, 0, wide)
    axes = list(range(-len(shape), 0))
    result = g.emit(R.nn.layer_norm(x, gamma, beta, axes=axes, epsilon=epsilon))
    rank = len(shape_of(x))
    mean, inverse = _statistics(g, x, [rank + axis for axis in axes], epsilon, 1)
    return g.cast(result, out), mean, inverse


@converts("native_group_norm")
def _group_norm(
    g: Graph, x: Any, weight: Any, bias: Any, n: int, c: int, size: int, groups: int, epsilon: float
) -> Any:
    out = dtype_of(g.out[0])
    wide = computed_in(out)
    x = g.tensor(x, wide)
    grouped = g.emit(R.reshape(x, [n, groups, c // groups * size]))
    mean, apart, square = moments(g, grouped, [2])
    inverse = g.emit(R.rsqrt(g.emit(R.add(square, scalar(epsilon, wide)))))
    result = g.emit(R.reshape(g.emit(R.multiply(apart, inverse)), shape_of(x)))
    result = _scaled_and_shifted(g, result, weight, bias, wide)
    mean, inverse = (g.emit(R.reshape(value, [n, groups])) for value in (mean, inverse))
    return g.cast(result, out), mean, inverse


def _scaled_and_shifted(g: Graph, x: Any, weight: Any, bias: Any, dtype: str) -> Any:
    """Multiply with a weight of each channel and add a bias, if there are any."""
    along = [-1 if axis == 1 else 1 for axis in range(len(shape_of(x)))]
    for function, values in ((R.multiply, weight), (R.add, bias)):
        if values is not None:
            x = g.emit(function(x, g.emit(R.reshape(g.tensor(values, dtype), along))))
    return x


@converts("_native_batch_norm_legit_no_training")
def _batch_norm(
    g: Graph, x: Any, weight: Any, bias: Any, mean: Any, variance: Any, _: float, epsilon: float
) -> Any:
    out = dtype_of(g.out[0])
    wide = computed_in(out)
    x = g.tensor(x, wide)
    channels = [shape_of(x)[1]]
    gamma, beta = _affine(g, weight, channels, 1, wide), _affine(g, bias, channels, 0, wide)
    mean, variance = g.tensor(mean, wide), g.tensor(variance, wide)
    normed = g.emit(R.nn.batch_norm(x, gamma, beta, mean, variance, 1, epsilon, training=False))
    return g.cast(g.emit(normed[0]), out), None, None


@converts("_native_batch_norm_legit", "_native_batch_norm_legit_functional")
def _batch_norm_of_the_batch(g: Graph, x: Any, weight: Any, bias: Any, *options: Any) -> Any:
    """Normalise with the batch's own mean and variance, and bring running ones forward."""
    *running, training, momentum, epsilon = options
    if not training:
        return _batch_norm(g, x, weight, bias, *running, momentum, epsilon)
    out = dtype_of(g.out[0])
    wide = computed_in(out)
    x = g.tensor(x, wide)
    shape = shape_of(x)
    axes = [axis for axis in range(len(shape)) if axis != 1]
    mean, apart, square = moments(g, x, axes)
    inverse = g.emit(R.rsqrt(g.emit(R.add(square, scalar(epsilon, wide)))))
    result = _scaled_and_shifted(g, g.emit(R.multiply(apart, inverse)), weight, bias, wide)
    flat = [g.emit(R.reshape(value, [shape[1]])) for value in (mean, inverse, square)]
    later = []
    count = elements(shape) // shape[1]
    unbiased = count / max(count - 1, 1)
    for kept, seen, scale in zip(running, (flat[0], flat[2]), (1, unbiased), strict=False):
        part = g.emit(R.multiply(seen, scalar(momentum * scale, wide)))
        rest = g.emit(R.multiply(g.tensor(kept, wide), scalar(1 - momentum, wide)))
        later.append(g.emit(R.add(rest, part)))
    return g.cast(result, out), flat[0], flat[1], *later
