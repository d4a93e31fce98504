"""Quantised numbers, as PyTorch's pt2e writes them: (q - zero point) x scale.

Weights stay integers and are not expanded here, so that
:mod:`costlib.workloads.integer_products` finds them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from costlib.errors import UnsupportedModelError
from costlib.tvm_compat import relax
from costlib.workloads.folding import constant_of
from costlib.workloads.importers.aten.graph import Converter, Graph, dtype_of, scalar, shape_of
from costlib.workloads.torch_arrays import to_numpy

R = relax.op

LIBRARY = "quantized_decomposed"
"""PyTorch's name for these operators."""

_DTYPES = ("int8", "uint8", "int16", "int32")


def _quantize_per_tensor(
    g: Graph, x: Any, scale: Any, zero: Any, low: int, high: int, _dtype: Any
) -> Any:
    inverse = np.array(np.float32(1) / np.float32(scale))
    return _quantised(g, x, constant_of(inverse), scalar(int(zero), "float32"), low, high)


def _quantize_per_channel(
    g: Graph, x: Any, scales: Any, zeros: Any, axis: int, low: int, high: int, _dtype: Any
) -> Any:
    inverse = np.float32(1) / to_numpy(scales).astype("float32")
    zero = _along(to_numpy(zeros).astype("float32"), axis, x)
    return _quantised(g, x, _along(inverse, axis, x), zero, low, high)


def _quantised(g: Graph, x: Any, inverse: Any, zero: Any, low: int, high: int) -> Any:
    """Multiply, round to even, and cut off, in float32."""
    scaled = g.emit(R.round(g.emit(R.multiply(g.tensor(x, "float32"), inverse))))
    moved = g.emit(R.add(scaled, zero))
    above = g.emit(R.maximum(moved, scalar(low, "float32")))
    bounded = g.emit(R.minimum(above, scalar(high, "float32")))
    whole = g.cast(bounded, "int32")
    return g.cast(whole, _known(dtype_of(g.out)))


def _dequantize_per_tensor(g: Graph, x: Any, scale: Any, zero: Any, *_: Any) -> Any:
    return _dequantised(g, x, scalar(float(scale), "float32"), scalar(int(zero), "int32"))


def _dequantize_per_channel(g: Graph, x: Any, scales: Any, zeros: Any, axis: int, *_: Any) -> Any:
    count = len(scales)
    zero = np.zeros(count, "int32") if zeros is None else to_numpy(zeros).astype("int32")
    scale = to_numpy(scales).astype("float32")
    return _dequantised(g, x, _along(scale, axis, x), _along(zero, axis, x))


def _dequantised(g: Graph, x: Any, scale: Any, zero: Any) -> Any:
    whole = g.emit(R.subtract(g.tensor(x, "int32"), zero))
    return g.cast(g.emit(R.multiply(g.cast(whole, "float32"), scale)), dtype_of(g.out))


def _along(values: np.ndarray, axis: int, x: Any) -> Any:
    """Return a constant with a value for each place of an axis."""
    rank = len(shape_of(x))
    return constant_of(values.reshape([-1 if i == axis % rank else 1 for i in range(rank)]))


def _known(dtype: str) -> str:
    if dtype not in _DTYPES:
        raise UnsupportedModelError(f"quantising to {dtype} is not supported; use (u)int8")
    return dtype


CONVERTERS: dict[str, Converter] = {
    f"{LIBRARY}.dequantize_per_channel": _dequantize_per_channel,
    f"{LIBRARY}.dequantize_per_tensor": _dequantize_per_tensor,
    f"{LIBRARY}.quantize_per_channel": _quantize_per_channel,
    f"{LIBRARY}.quantize_per_tensor": _quantize_per_tensor,
}
