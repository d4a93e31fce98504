"""Reading an image at places between its elements."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from costlib.tvm_compat import te, tirx
from costlib.workloads.importers.onnx.node import Node, Refused, converts
from costlib.workloads.importers.onnx.tensors import (
    SMALL_FLOATS,
    Tensor,
    computed,
    constant,
    matmul,
)

_CUBIC = -0.75


@converts("GridSample")
def _grid_sample(node: Node) -> Tensor:
    x, grid = node[0], node[1]
    mode = str(node.attribute("mode", "linear"))
    mode = {"bilinear": "linear", "bicubic": "cubic"}.get(mode, mode)
    padding = str(node.attribute("padding_mode", "zeros"))
    aligned = bool(node.attribute("align_corners", 0))
    wide = x.cast("float32") if x.dtype in SMALL_FLOATS or not x.is_float else x
    grid = grid.cast(wide.dtype)
    extents = x.shape[2:]
    count = len(extents)
    if mode == "cubic" and count != 2:
        raise Refused("in mode cubic takes images of 2 axes")

    def number(value: float) -> Any:
        return tirx.const(value, wide.dtype)

    def element(data: Any, at: Any, n: Any, c: Any, *indices: Any) -> Any:
        def read(places: list[Any]) -> Any:
            inside = []
            for i, extent in enumerate(extents):
                if padding == "reflection":
                    places[i] = _reflected(places[i], extent, aligned, number)
                elif padding == "zeros":
                    inside += [places[i] >= number(0), places[i] <= number(extent - 1)]
                places[i] = tirx.max(number(0), tirx.min(places[i], number(extent - 1)))
            whole = [tirx.Cast("int64", place) for place in places]
            value = data[(n, c, *whole)]
            if not inside:
                return value
            return tirx.if_then_else(tirx.all(*inside), value, number(0))

        places = []
        for i, extent in enumerate(extents):
            unit = at[(n, *indices, count - 1 - i)]
            if aligned:
                place = (unit + number(1)) * number((extent - 1) / 2)
            else:
                place = ((unit + number(1)) * number(extent) - number(1)) * number(0.5)
            if padding == "border" and mode != "cubic":
                place = tirx.max(number(0), tirx.min(place, number(extent - 1)))
            elif padding == "reflection":
                place = _reflected(place, extent, aligned, number)
            places.append(place)
        if mode == "nearest":
            return read([tirx.nearbyint(place) for place in places])
        first = [tirx.floor(place) for place in places]
        rest = [place - start for place, start in zip(places, first, strict=True)]
        weigh = _linear if mode == "linear" else _cubic
        weights = [weigh(r, number) for r in rest]
        value = number(0)
        for offsets in itertools.product(range(len(weights[0])), repeat=count):
            back = 0 if mode == "linear" else 1
            corner = [f + number(k - back) for f, k in zip(first, offsets, strict=True)]
            weight = weights[0][offsets[0]]
            for i in range(1, count):
                weight = weight * weights[i][offsets[i]]
            value = value + read(corner) * weight
        return value

    shape = [*x.shape[:2], *grid.shape[1:-1]]
    return computed("grid_sample", shape, element, wide, grid).cast(x.dtype)


def _linear(rest: Any, number: Any) -> list[Any]:
    return [number(1) - rest, rest]


def _cubic(rest: Any, number: Any) -> list[Any]:
    a = _CUBIC

    def near(x: Any) -> Any:
        return (number(a + 2) * x - number(a + 3)) * x * x + number(1)

    def far(x: Any) -> Any:
        return ((number(a) * x - number(5 * a)) * x + number(8 * a)) * x - number(4 * a)

    one = number(1)
    return [far(rest + one), near(rest), near(one - rest), far(number(2) - rest)]


def _reflected(place: Any, extent: int, aligned: bool, number: Any) -> Any:
    """Fold a place beyond the borders back, as often as it takes."""
    low, high = (0.0, extent - 1.0) if aligned else (-0.5, extent - 0.5)
    span = high - low
    if span == 0:
        return number(0)
    ahead = tirx.abs(place - number(low))
    turns = tirx.floor(ahead / number(span))
    rest = ahead - turns * number(span)
    half = turns * number(0.5)
    is_even = half == tirx.floor(half)
    return tirx.Select(is_even, rest + number(low), number(high) - rest)


@converts("AffineGrid")
def _affine_grid(node: Node) -> Tensor:
    theta, size = node[0], node.ints(1, "size")
    axes = []
    for n in size[2:]:
        step = np.arange(n)
        if node.attribute("align_corners", 0):
            axes.append(-1 + 2 * step / max(n - 1, 1))
        else:
            axes.append((2 * step + 1) / n - 1)
    units = np.meshgrid(*axes, indexing="ij")
    places = np.stack([*units[::-1], np.ones(size[2:])], -1).reshape(1, -1, len(axes) + 1)
    grid = matmul(constant(places).cast(theta.dtype), theta.swap())
    return grid.reshape([size[0], *size[2:], len(axes)])


@converts("RoiAlign")
def _roi_align(node: Node) -> Tensor:
    x, rois, batch = node[0], node[1], node[2].cast("int64")
    height, width = node.attribute("output_height", 1), node.attribute("output_width", 1)
    ratio, scale = node.attribute("sampling_ratio", 0), node.attribute("spatial_scale", 1.0)
    is_max = str(node.attribute("mode", "avg")) == "max"
    default = "half_pixel" if node.opset >= 16 else "output_half_pixel"
    half = str(node.attribute("coordinate_transformation_mode", default)) == "half_pixel"
    if ratio == 0:
        raise Refused("with sampling_ratio=0 reads as many places as the data say; set it to 2")
    if is_max:
        raise Refused("in mode max is not supported; use mode avg")
    wide = x.cast("float32") if x.dtype in SMALL_FLOATS else x
    rois = rois.cast(wide.dtype)
    extents = x.shape[2:]

    def number(value: float) -> Any:
        return tirx.const(value, wide.dtype)

    def element(data: Any, roi: Any, image: Any, r: Any, c: Any, i: Any, j: Any) -> Any:
        taps = [te.reduce_axis((0, ratio), name=name) for name in ("ky", "kx")]
        shift = number(0.5 if half else 0.0)
        places, inside = [], []
        for axis, (index, size) in enumerate(((i, height), (j, width))):
            start = roi[r, 1 - axis] * number(scale) - shift
            extent = roi[r, 3 - axis] * number(scale) - shift - start
            if not half:
                extent = tirx.max(extent, number(1))
            step = extent * number(1 / size)
            tap = (tirx.Cast(wide.dtype, taps[axis]) + number(0.5)) * number(1 / ratio)
            place = start + (tirx.Cast(wide.dtype, index) + tap) * step
            inside += [place >= number(-1), place <= number(extents[axis])]
            places.append(tirx.max(number(0), tirx.min(place, number(extents[axis] - 1))))
        first = [tirx.floor(place) for place in places]
        rest = [place - start for place, start in zip(places, first, strict=True)]
        value = number(0)
        for dy, dx in itertools.product(range(2), repeat=2):
            at = [
                tirx.Cast("int64", tirx.min(f + number(d), number(n - 1)))
                for f, d, n in zip(first, (dy, dx), extents, strict=True)
            ]
            weight = (rest[0] if dy else number(1) - rest[0]) * (
                rest[1] if dx else number(1) - rest[1]
            )
            value = value + data[(image[r], c, *at)] * weight
        found = tirx.if_then_else(tirx.all(*inside), value, number(0))
        return te.sum(found, axis=taps)

    shape = [rois.shape[0], x.shape[1], height, width]
    total = computed("roi_align", shape, element, wide, rois, batch)
    return (total * (1 / math.pow(ratio, 2))).cast(x.dtype)
