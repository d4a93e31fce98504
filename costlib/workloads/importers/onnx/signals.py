"""Fourier transforms, as products with matrices of cosines and sines."""

from __future__ import annotations

import numpy as np

from costlib.workloads.importers.onnx.moving import taken
from costlib.workloads.importers.onnx.node import Node, Refused, converts
from costlib.workloads.importers.onnx.padding import padded
from costlib.workloads.importers.onnx.tensors import Tensor, constant, matmul, stacked


def _waves(rows: np.ndarray, columns: int, length: int, dtype: str) -> tuple[Tensor, Tensor]:
    """Return the cosines and sines that rows of a signal are multiplied by."""
    turns = np.outer(rows, np.arange(columns)) % length
    angle = 2 * np.pi * turns / length
    return constant(np.cos(angle)).cast(dtype), constant(np.sin(angle)).cast(dtype)


def _parts(x: Tensor) -> tuple[Tensor, Tensor | None]:
    """Return the real part, and the imaginary one unless the numbers are real."""
    pieces = [piece.reshape(x.shape[:-1]) for piece in x.split(-1, [1] * x.shape[-1])]
    return pieces[0], pieces[1] if len(pieces) > 1 else None


def _transformed(real: Tensor, other: Tensor | None, is_one_sided: bool, inverse: bool) -> Tensor:
    """Transform the last axis; the parts of the result are along a new last axis."""
    length = real.shape[-1]
    count = length // 2 + 1 if is_one_sided else length
    cosines, sines = _waves(np.arange(length), count, length, real.dtype)
    a, b = matmul(real, cosines), matmul(real, sines)
    b = b if inverse else -b
    if other is not None:
        c, d = matmul(other, cosines), matmul(other, sines)
        a, b = (a - d, b + c) if inverse else (a + d, b + c)
    result = stacked([a, b], -1)
    return result * (1 / length) if inverse else result


def _real_of_half(real: Tensor, other: Tensor | None, length: int) -> Tensor:
    """Return the real signal of which half the spectrum is given."""
    count = length // 2 + 1
    around = [0] * (real.ndim - 1)
    rest = [*around, count - real.shape[-1]]
    real = padded(real, [*around, 0], rest)
    weight = np.full((count, 1), 2 / length)
    weight[0] = 1 / length
    if length % 2 == 0:
        weight[-1] = 1 / length
    cosines, sines = _waves(np.arange(count), length, length, "float64")
    scaled = [constant(np.asarray(w.array) * weight).cast(real.dtype) for w in (cosines, sines)]
    result = matmul(real, scaled[0])
    if other is not None:
        result = result - matmul(padded(other, [*around, 0], rest), scaled[1])
    return result.expand(-1)


@converts("DFT")
def _dft(node: Node) -> Tensor:
    x = node[0]
    if node.opset < 20:
        axis = x.axis(node.attribute("axis", 1))
    else:
        axis = x.axis(-2 if node.get(2) is None else node.ints(2, "axis")[0])
    if axis == x.ndim - 1:
        raise Refused("over the axis of real and imaginary parts is not supported")
    inverse, is_half = bool(node.attribute("inverse", 0)), bool(node.attribute("onesided", 0))
    order = [*(i for i in range(x.ndim - 1) if i != axis), axis, x.ndim - 1]
    real, other = _parts(x.transpose(order))
    length = None if node.get(1) is None else node.ints(1, "length")[0]
    if inverse and is_half:
        result = _real_of_half(real, other, length or 2 * (x.shape[axis] - 1))
    else:
        rest = [*[0] * (real.ndim - 1), (length or x.shape[axis]) - x.shape[axis]]
        around = [0] * real.ndim
        real = padded(real, around, rest)
        other = None if other is None else padded(other, around, rest)
        result = _transformed(real, other, is_half, inverse)
    return result.transpose([order.index(i) for i in range(x.ndim)])


@converts("STFT")
def _stft(node: Node) -> Tensor:
    x, step, window = node[0], node.ints(1, "frame step")[0], node.get(2)
    x = x.expand(-1) if x.ndim == 2 else x
    if node.get(3) is not None:
        length = node.ints(3, "frame length")[0]
    elif window is not None:
        length = window.shape[0]
    else:
        raise Refused("lacks a window or a frame length")
    count = (x.shape[1] - length) // step + 1
    places = np.arange(count)[:, None] * step + np.arange(length)
    frames = [None if p is None else taken(p, constant(places), 1) for p in _parts(x)]
    if window is not None:
        frames = [None if f is None else f * window for f in frames]
    real, other = frames
    assert real is not None
    return _transformed(real, other, bool(node.attribute("onesided", 1)), inverse=False)
