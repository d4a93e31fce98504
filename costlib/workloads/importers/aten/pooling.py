"""Pooling."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from costlib.tvm_compat import relax
from costlib.workloads.folding import static_type
from costlib.workloads.importers.aten.elementwise import computed_in, is_integer
from costlib.workloads.importers.aten.extremes import first_best
from costlib.workloads.importers.aten.graph import (
    Converter,
    Graph,
    dtype_of,
    each,
    elements,
    registering,
    shape_of,
)
from costlib.workloads.importers.aten.shapes import padded

CONVERTERS: dict[str, Converter] = {}
converts = registering(CONVERTERS)

R = relax.op
LAYOUTS = {1: "NCW", 2: "NCHW", 3: "NCDHW"}
AVERAGES = {1: R.nn.avg_pool1d, 2: R.nn.avg_pool2d, 3: R.nn.avg_pool3d}
_MAXIMA = {1: R.nn.max_pool1d, 2: R.nn.max_pool2d, 3: R.nn.max_pool3d}


def batched(g: Graph, x: Any, rank: int) -> Any:
    """Add a batch dimension where there is none."""
    shape = shape_of(x)
    return x if len(shape) == rank + 2 else g.emit(R.expand_dims(x, 0))


def like(g: Graph, x: Any, out: Any) -> Any:
    """Take an added batch dimension away again."""
    return x if shape_of(x) == shape_of(out) else g.emit(R.reshape(x, shape_of(out)))


def _average(rank: int) -> Converter:
    def convert(
        g: Graph,
        x: Any,
        kernel: Sequence[int],
        stride: Sequence[int] = (),
        padding: Sequence[int] = (0,),
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> Any:
        out = dtype_of(g.out)
        x = batched(g, g.tensor(x, computed_in(out)), rank)
        kernel = each(kernel, rank)
        stride = each(stride, rank) if stride else kernel
        padding = each(padding, rank)
        sizes, extents = shape_of(g.out)[-rank:], shape_of(x)[2:]
        if ceil_mode:
            kernel, ceil_mode = _within(kernel, stride, padding, sizes, extents)
        pool = AVERAGES[rank]
        settings: dict[str, Any] = {"strides": stride, "layout": LAYOUTS[rank]}
        if not ceil_mode and divisor_override is None:
            settings |= {"padding": padding * 2, "count_include_pad": count_include_pad}
            pooled = g.emit(pool(x, kernel, **settings))
            return g.cast(like(g, pooled, g.out), out)
        wide = _reached(g, x, kernel, stride, padding, sizes, 0)
        pooled = g.emit(pool(wide, kernel, **settings, count_include_pad=True))
        counted = torch.ones(sizes, dtype=torch.float64)
        for axis in range(rank):
            start = torch.arange(sizes[axis]) * stride[axis] - padding[axis]
            end = (start + kernel[axis]).clamp(max=extents[axis] + padding[axis])
            if not count_include_pad:
                start, end = start.clamp(min=0), end.clamp(max=extents[axis])
            along = [-1 if i == axis else 1 for i in range(rank)]
            counted = counted * (end - start).reshape(along)
        if divisor_override is not None:
            counted = torch.full_like(counted, divisor_override)
        if is_integer(out):
            raise NotImplementedError("averages of integers are not supported; convert to float")
        scale = (elements(kernel) / counted).to(getattr(torch, computed_in(out)))
        pooled = g.emit(R.multiply(pooled, g.tensor(scale)))
        return g.cast(like(g, pooled, g.out), out)

    return convert


def _within(
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    sizes: Sequence[int],
    extents: Sequence[int],
) -> tuple[list[int], bool]:
    """Cut an only window to the tensor; say whether a window still reaches beyond it."""
    full = [extent + 2 * p for extent, p in zip(extents, padding, strict=True)]
    cut = [min(k, n) if count == 1 else k for k, n, count in zip(kernel, full, sizes, strict=True)]
    ends = [(count - 1) * s + k for count, s, k in zip(sizes, stride, cut, strict=True)]
    return cut, any(end > n for end, n in zip(ends, full, strict=True))


def _reached(
    g: Graph,
    x: Any,
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    sizes: Sequence[int],
    value: float,
) -> Any:
    """Pad a tensor up to where the last windows end."""
    width = [0, 0, 0, 0]
    extents = shape_of(x)[2:]
    for k, s, p, n, extent in zip(kernel, stride, padding, sizes, extents, strict=True):
        width += [p, max((n - 1) * s + k - extent - p, 0)]
    return padded(g, x, width, value) if any(width) else x


for _rank in AVERAGES:
    CONVERTERS[f"aten.avg_pool{_rank}d"] = _average(_rank)


def _maximum(rank: int) -> Converter:
    def convert(
        g: Graph,
        x: Any,
        kernel: Sequence[int],
        stride: Sequence[int] = (),
        padding: Sequence[int] = (0,),
        dilation: Sequence[int] = (1,),
        ceil_mode: bool = False,
    ) -> Any:
        values_out = g.out[0] if isinstance(g.out, (tuple, list)) else g.out
        x = batched(g, g.tensor(x), rank)
        kernel = each(kernel, rank)
        stride = each(stride, rank) if stride else kernel
        padding, dilation = each(padding, rank), each(dilation, rank)
        sizes = shape_of(values_out)[-rank:]
        if ceil_mode and set(dilation) == {1}:
            kernel, ceil_mode = _within(kernel, stride, padding, sizes, shape_of(x)[2:])
        settings = {"strides": stride, "dilation": dilation, "layout": LAYOUTS[rank]}
        if ceil_mode:
            spread = [d * (k - 1) + 1 for k, d in zip(kernel, dilation, strict=True)]
            wide = _reached(g, x, spread, stride, padding, sizes, -math.inf)
            pooled = g.emit(_MAXIMA[rank](wide, kernel, **settings))
        else:
            pooled = g.emit(_MAXIMA[rank](x, kernel, padding=padding * 2, **settings))
        values = like(g, pooled, values_out)
        if values_out is g.out:
            return values
        if not g.reads(1):
            return values, None
        places = _windows(shape_of(x)[2:], kernel, stride, padding, dilation, sizes)
        return values, like(g, place_of_the_largest(g, x, places, sizes), g.out[1])

    return convert


def _windows(
    extents: Sequence[int],
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    sizes: Sequence[int],
) -> torch.Tensor:
    """Return the flat index of each element of each window, -1 outside: int64 `windows x taps`."""
    rank = len(extents)
    flat = torch.zeros([1] * (2 * rank), dtype=torch.int64)
    outside = torch.zeros([1] * (2 * rank), dtype=torch.bool)
    for axis in range(rank):
        start = torch.arange(sizes[axis])[:, None] * stride[axis] - padding[axis]
        place = start + torch.arange(kernel[axis]) * dilation[axis]
        along = [1] * (2 * rank)
        along[axis], along[rank + axis] = place.shape
        place = place.reshape(along)
        flat = flat * extents[axis] + place
        outside = outside | (place < 0) | (place >= extents[axis])
    flat = torch.where(outside, -1, flat)
    return flat.reshape(math.prod(sizes), math.prod(kernel))


def place_of_the_largest(g: Graph, x: Any, places: torch.Tensor, sizes: Sequence[int]) -> Any:
    """Return the flat index of the largest element of each window; see :func:`_windows`."""
    batch, channels, *extents = shape_of(x)
    taps = places.shape[1]
    flat = g.emit(R.reshape(x, [batch, channels, math.prod(extents)]))
    taken = g.emit(R.take(flat, g.tensor(places.clamp(min=0)), axis=2, mode="clip"))
    lowest = g.tensor(_lowest(static_type(x)[1]))
    inside = g.emit(R.where(g.tensor(places >= 0), taken, lowest))
    best = first_best(g, True, inside, 3)
    first = g.tensor(torch.arange(len(places)) * taps)
    index = g.emit(R.add(best, first))
    place = g.emit(R.take(g.tensor(places.reshape(-1)), index, axis=0, mode="clip"))
    return g.emit(R.reshape(place, [batch, channels, *sizes]))


def _lowest(dtype: str) -> torch.Tensor:
    kind = getattr(torch, dtype)
    lowest = -math.inf if kind.is_floating_point else torch.iinfo(kind).min
    return torch.tensor(lowest, dtype=kind)


for _rank in _MAXIMA:
    CONVERTERS[f"aten.max_pool{_rank}d"] = _maximum(_rank)
    CONVERTERS[f"aten.max_pool{_rank}d_with_indices"] = _maximum(_rank)
