"""Pooling to a given size, with windows that differ."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

from costlib.tvm_compat import relax, te, tirx
from costlib.workloads.importers.aten.elementwise import computed_in
from costlib.workloads.importers.aten.graph import (
    Converter,
    Graph,
    dtype_of,
    registering,
    shape_of,
)
from costlib.workloads.importers.aten.pooling import (
    AVERAGES,
    LAYOUTS,
    batched,
    like,
    place_of_the_largest,
)

CONVERTERS: dict[str, Converter] = {}
converts = registering(CONVERTERS)

R = relax.op


def _adaptive_average(rank: int) -> Converter:
    def convert(g: Graph, x: Any, sizes: Sequence[int]) -> Any:
        out = dtype_of(g.out)
        x = batched(g, g.tensor(x, computed_in(out)), rank)
        sizes = shape_of(g.out)[-rank:]
        extents = shape_of(x)[2:]
        if all(n == 1 for n in sizes) and rank == 2:
            pooled = g.emit(R.nn.adaptive_avg_pool2d(x, list(sizes), layout="NCHW"))
        elif all(extent % n == 0 for extent, n in zip(extents, sizes, strict=True)):
            kernel = [extent // n for extent, n in zip(extents, sizes, strict=True)]
            settings = {"strides": kernel, "layout": LAYOUTS[rank]}
            pooled = g.emit(AVERAGES[rank](x, kernel, **settings))
        else:
            summed = _adaptive(g, x, sizes, te.sum, 0.0, "adaptive_sum")
            counts = torch.ones(sizes, dtype=torch.float64)
            for axis, (extent, n) in enumerate(zip(extents, sizes, strict=True)):
                starts, ends = _bounds(torch.arange(n), extent, n)
                along = [-1 if i == axis else 1 for i in range(rank)]
                counts = counts * (ends - starts).reshape(along)
            scale = (1 / counts).to(getattr(torch, computed_in(out)))
            pooled = g.emit(R.multiply(summed, g.tensor(scale)))
        return g.cast(like(g, pooled, g.out), out)

    return convert


def _bounds(i: Any, extent: int, count: int) -> tuple[Any, Any]:
    """Return where the window of an output starts and ends."""
    return i * extent // count, ((i + 1) * extent + count - 1) // count


def _adaptive(
    g: Graph, x: Any, sizes: Sequence[int], join: Callable[..., Any], other: float, name: str
) -> Any:
    """Reduce windows of different extents, as large as the largest of them."""
    shape = shape_of(x)
    extents = shape[2:]
    most = [
        max(int(end - start) for start, end in zip(*_bounds(torch.arange(n), e, n), strict=True))
        for e, n in zip(extents, sizes, strict=True)
    ]

    def compute(x: Any) -> Any:
        taps = [te.reduce_axis((0, k), name=f"k{axis}") for axis, k in enumerate(most)]

        def value(b: Any, c: Any, *i: Any) -> Any:
            places, inside = [], []
            for place, tap, extent, n in zip(i, taps, extents, sizes, strict=True):
                start = tirx.floordiv(place * extent, n)
                end = tirx.floordiv((place + 1) * extent + n - 1, n)
                places.append(start + tap)
                inside.append(start + tap < end)
            read = x(b, c, *places)
            fill = (
                tirx.const(other, read.ty.dtype)
                if math.isfinite(other)
                else (te.min_value(str(read.ty.dtype)))
            )
            return join(tirx.if_then_else(tirx.all(*inside), read, fill), axis=taps)

        return te.compute((*shape[:2], *sizes), value, name=name)

    return g.emit_te(compute, x, name=name)


for _rank in AVERAGES:
    CONVERTERS[f"aten._adaptive_avg_pool{_rank}d"] = _adaptive_average(_rank)
    CONVERTERS[f"aten.adaptive_avg_pool{_rank}d"] = _adaptive_average(_rank)


def _adaptive_maximum(rank: int) -> Converter:
    def convert(g: Graph, x: Any, sizes: Sequence[int]) -> Any:
        x = batched(g, g.tensor(x), rank)
        sizes = shape_of(g.out[0])[-rank:]
        values = _adaptive(g, x, sizes, te.max, -math.inf, "adaptive_max")
        values = like(g, values, g.out[0])
        if not g.reads(1):
            return values, None
        places = _adaptive_windows(shape_of(x)[2:], sizes)
        return values, like(g, place_of_the_largest(g, x, places, sizes), g.out[1])

    return convert


def _adaptive_windows(extents: Sequence[int], sizes: Sequence[int]) -> torch.Tensor:
    """As :func:`_windows`, of windows that differ."""
    rank = len(extents)
    flat = torch.zeros([1] * (2 * rank), dtype=torch.int64)
    outside = torch.zeros([1] * (2 * rank), dtype=torch.bool)
    for axis, (extent, n) in enumerate(zip(extents, sizes, strict=True)):
        starts, ends = _bounds(torch.arange(n), extent, n)
        place = starts[:, None] + torch.arange(int((ends - starts).max()))
        along = [1] * (2 * rank)
        along[axis], along[rank + axis] = place.shape
        flat = flat * extent + place.reshape(along)
        outside = outside | (place >= ends[:, None]).reshape(along)
    return torch.where(outside, -1, flat).reshape(math.prod(sizes), -1)


for _rank in (2, 3):
    CONVERTERS[f"aten.adaptive_max_pool{_rank}d"] = _adaptive_maximum(_rank)
