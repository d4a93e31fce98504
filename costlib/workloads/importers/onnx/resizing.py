"""Resizing: each element is a weighted sum of a few places along each axis."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from costlib.tvm_compat import te
from costlib.workloads.importers.onnx.moving import taken
from costlib.workloads.importers.onnx.node import Node, Refused, converts
from costlib.workloads.importers.onnx.tensors import SMALL_FLOATS, Tensor, computed, constant, where

_MOST_UNROLLED = 4


@dataclass(frozen=True)
class _Method:
    """How places of the output are turned into places of the input."""

    mode: str
    transformation: str
    rounding: str
    cubic: float
    antialias: bool
    exclude_outside: bool
    extrapolation: float
    number: Any

    @classmethod
    def of(cls, node: Node) -> _Method:
        default = "half_pixel" if node.opset >= 11 else "asymmetric"
        mode = str(node.attribute("mode", "nearest"))
        before = node.operator == "Upsample" or node.opset < 11
        return cls(
            {"bilinear": "linear", "trilinear": "linear"}.get(mode, mode),
            str(node.attribute("coordinate_transformation_mode", default)),
            str(node.attribute("nearest_mode", "floor" if before else "round_prefer_floor")),
            node.attribute("cubic_coeff_a", -0.75),
            bool(node.attribute("antialias", 0)),
            bool(node.attribute("exclude_outside", 0)),
            node.attribute("extrapolation_value", 0.0),
            np.float64 if node.is_exact else np.float32,
        )

    def places(self, extent: int, size: int, scale: Any, roi: tuple[float, float]) -> np.ndarray:
        """Return where each place of the output is in the input, rounded as the original does."""
        return np.asarray(self._places(np.arange(size, dtype=self.number), extent, scale, roi))

    def _places(self, x: Any, extent: int, scale: Any, roi: tuple[float, float]) -> Any:
        size, scale = len(x), self.number(scale)
        match self.transformation:
            case "align_corners":
                return x * (extent - 1) / (size - 1) if size > 1 else 0 * x
            case "asymmetric":
                return x / scale
            case "half_pixel":
                return (x + 0.5) / scale - 0.5
            case "pytorch_half_pixel":
                return (x + 0.5) / scale - 0.5 if size > 1 else 0 * x
            case "half_pixel_symmetric":
                centre, part = extent / 2, size / (extent * scale)
                return centre * (1 - part) + (x + 0.5) / scale - 0.5
            case "tf_half_pixel_for_nn":
                return (x + 0.5) / scale
            case "tf_crop_and_resize":
                start, end = roi
                if size == 1:
                    return 0 * x + 0.5 * (start + end) * (extent - 1)
                return (start + x * (end - start) / (size - 1)) * (extent - 1)
        raise Refused(f"with coordinates {self.transformation!r} is not supported")

    def nearest(self, places: np.ndarray, extent: int) -> np.ndarray:
        """Round places to whole ones of the input."""
        match self.rounding:
            case "floor":
                rounded = np.floor(places)
            case "ceil":
                rounded = np.ceil(places)
            case "round_prefer_ceil":
                rounded = np.floor(places + 0.5)
            case _:
                rounded = np.ceil(places - 0.5)
        return np.asarray(np.clip(rounded, 0, extent - 1).astype(np.int64))

    def taps(self, places: np.ndarray, extent: int, scale: float) -> tuple[np.ndarray, np.ndarray]:
        """Return the places of the input that each one of the output is made of, and weights."""
        shrink = min(scale, 1.0) if self.antialias else 1.0
        reach = (1 if self.mode == "linear" else 2) / shrink
        count = math.ceil(reach) * 2 + (1 if self.antialias else 0)
        first = np.floor(places).astype(np.int64) - math.ceil(reach) + 1
        at = first[:, None] + np.arange(count)
        distance = np.abs(at - places[:, None]) * shrink
        weights = np.maximum(0, 1 - distance) if self.mode == "linear" else self._cubic(distance)
        if self.exclude_outside:
            weights = np.where((at < 0) | (at >= extent), 0, weights)
        if self.antialias or self.exclude_outside:
            weights = weights / weights.sum(1, keepdims=True)
        return np.clip(at, 0, extent - 1), weights

    def _cubic(self, x: np.ndarray) -> np.ndarray:
        a = self.cubic
        near = ((a + 2) * x - (a + 3)) * x * x + 1
        far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
        return np.where(x <= 1, near, np.where(x < 2, far, 0.0))


@converts("Resize", "Upsample")
def _resize(node: Node) -> Tensor:
    x, method = node[0], _Method.of(node)
    axes = [x.axis(axis) for axis in node.attribute("axes", range(x.ndim))]
    scales, sizes = _target(node, x, axes, method.number)
    if method.transformation != "tf_crop_and_resize" and sizes == [x.shape[a] for a in axes]:
        return x  # As ONNX Runtime has it, whatever the scales.
    roi = [0.0] * len(axes) + [1.0] * len(axes)
    if method.transformation == "tf_crop_and_resize":
        roi = [float(n) for n in node.known(1, "region")]
    if method.mode not in ("nearest", "linear", "cubic"):
        raise Refused(f"in mode {method.mode!r} is not supported")
    wide = x.cast("float32") if x.dtype in SMALL_FLOATS or not x.is_float else x
    result = x if method.mode == "nearest" else wide
    outside = []
    for i, (axis, scale, size) in enumerate(zip(axes, scales, sizes, strict=True)):
        extent, part = x.shape[axis], (roi[i], roi[len(axes) + i])
        places = method.places(extent, size, scale, part)
        if method.transformation == "tf_crop_and_resize":
            outside.append((axis, (places < 0) | (places > extent - 1)))
        if size == extent and np.array_equal(places, np.arange(size)):
            continue
        if method.mode == "nearest":
            result = taken(result, constant(method.nearest(places, extent)), axis)
        else:
            result = _weighted(result, axis, *method.taps(places, extent, scale))
    for axis, mask in outside:
        if mask.any():
            shape = [-1 if i == axis else 1 for i in range(x.ndim)]
            result = where(constant(mask.reshape(shape)), method.extrapolation, result)
    if not x.is_float and method.mode == "cubic":
        limits = np.iinfo(x.dtype)
        from costlib.workloads.importers.onnx.tensors import maximum, minimum

        result = minimum(maximum(result, limits.min), limits.max)
    return result.cast(x.dtype)


def _target(
    node: Node, x: Tensor, axes: Sequence[int], number: Any
) -> tuple[list[float], list[int]]:
    """Return scale and size along each axis that is resized; ``number`` is what scales are."""
    extents = [x.shape[axis] for axis in axes]
    if node.operator == "Upsample" and node.opset < 9:
        scales = list(node.attribute("scales"))
    else:
        index = 1 if node.operator == "Upsample" or node.opset < 11 else 2
        given = node.get(index)
        scales = [] if given is None or not given.size else node.known(index, "scale").tolist()
    if scales:
        return scales, [
            math.floor(number(n) * number(s)) for n, s in zip(extents, scales, strict=True)
        ]
    sizes = node.ints(3, "size")
    scales = [size / n for size, n in zip(sizes, extents, strict=True)]
    policy = str(node.attribute("keep_aspect_ratio_policy", "stretch"))
    if policy != "stretch":
        scale = min(scales) if policy == "not_larger" else max(scales)
        scales = [scale] * len(scales)
        sizes = [math.floor(n * scale + 0.5) for n in extents]
    return scales, sizes


def _weighted(x: Tensor, axis: int, at: np.ndarray, weights: np.ndarray) -> Tensor:
    """Add up places along an axis with weights."""
    size, count = at.shape
    weights = weights.astype(str(x.dtype))
    if count <= _MOST_UNROLLED:
        along = [size if i == axis else 1 for i in range(x.ndim)]
        total, *others = (
            taken(x, constant(at[:, k]), axis) * constant(weights[:, k].reshape(along))
            for k in range(count)
        )
        for term in others:
            total = total + term
        return total
    shape = [size if i == axis else n for i, n in enumerate(x.shape)]

    def element(data: Any, place: Any, weight: Any, *indices: Any) -> Any:
        k = te.reduce_axis((0, count), name="k")
        read = (*indices[:axis], place[indices[axis], k], *indices[axis + 1 :])
        return te.sum(data[read] * weight[indices[axis], k], axis=k)

    return computed("resize", shape, element, x, constant(at), constant(weights))
