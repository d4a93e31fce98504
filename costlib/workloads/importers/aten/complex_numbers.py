"""Complex numbers as pairs of real tensors; Fourier transforms as products with their matrices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch

from costlib.tvm_compat import relax
from costlib.workloads.importers.aten import arithmetic, elementwise, indexing, reductions, shapes
from costlib.workloads.importers.aten.graph import (
    Converter,
    Graph,
    dtype_of,
    registering,
    scalar,
    shape_of,
)
from costlib.workloads.importers.aten.recorded import OF_COMPLEX, real_part_of

CONVERTERS: dict[str, Converter] = {}
converts = registering(CONVERTERS)

R = relax.op


class Pair(NamedTuple):
    """A complex tensor: two real ones of the same shape."""

    real: Any
    imag: Any


def _part(value: Any, number: int) -> Any:
    """Take the real or the imaginary part of all complex tensors in a nest."""
    if isinstance(value, Pair):
        return value[number]
    if isinstance(value, torch.Tensor) and value.dtype.is_complex:
        return (value.imag if number else value.real).contiguous()
    if isinstance(value, (list, tuple)):
        return [_part(item, number) for item in value]
    return value


def _pair(g: Graph, value: Any) -> Pair:
    """Return a complex or real tensor or number as a pair."""
    dtype = dtype_of(real_part_of(g.out))
    if isinstance(value, complex):
        return Pair(scalar(value.real, dtype), scalar(value.imag, dtype))
    if isinstance(value, Pair) or (isinstance(value, torch.Tensor) and value.dtype.is_complex):
        return Pair(*(g.tensor(_part(value, number), dtype) for number in (0, 1)))
    return Pair(g.tensor(value, dtype), scalar(0, dtype))


def _of_parts(converter: Converter) -> Converter:
    """Do to each part what is done to real tensors: moving elements, and sums of them."""

    def convert(g: Graph, *args: Any) -> Any:
        out = g.out
        g.out = real_part_of(out)
        try:
            parts = [converter(g, *_part(args, number)) for number in (0, 1)]
        finally:
            g.out = out
        if isinstance(out, (list, tuple)):
            return [Pair(*each) for each in zip(*parts, strict=True)]
        return Pair(*parts)

    return convert


_MOVING = (
    "view reshape _unsafe_view unflatten flatten _reshape_copy unsqueeze squeeze expand permute "
    "transpose cat stack slice narrow select split_with_sizes split unbind flip roll repeat "
    "constant_pad_nd diagonal zeros zeros_like clone alias lift_fresh_copy detach contiguous "
    "index index_select gather sum mean"
)
_TABLES = (arithmetic, elementwise, indexing, reductions, shapes)
_REAL = {name: found for table in _TABLES for name, found in table.CONVERTERS.items()}
for _name in _MOVING.split():
    CONVERTERS[f"aten.{_name}{OF_COMPLEX}"] = _of_parts(_REAL[f"aten.{_name}"])


@converts("complex")
def _complex(g: Graph, real: Any, imag: Any) -> Pair:
    dtype, shape = dtype_of(real_part_of(g.out)), shape_of(g.out)
    return Pair(*(g.emit(R.broadcast_to(g.tensor(x, dtype), shape)) for x in (real, imag)))


@converts("polar")
def _polar(g: Graph, size: Any, angle: Any) -> Pair:
    size, angle = g.tensor(size), g.tensor(angle)
    return Pair(*(R.multiply(size, g.emit(f(angle))) for f in (R.cos, R.sin)))


@converts("view_as_complex")
def _view_as_complex(g: Graph, x: Any) -> Pair:
    x = g.tensor(x)
    last = len(shape_of(x)) - 1
    halves = [g.emit(R.strided_slice(x, [last], [i], [i + 1])) for i in (0, 1)]
    return Pair(*(R.squeeze(half, [last]) for half in halves))


@converts("view_as_real")
def _view_as_real(g: Graph, x: Any) -> Any:
    parts = [g.tensor(_part(x, number)) for number in (0, 1)]
    last = len(shape_of(parts[0]))
    return R.concat([g.emit(R.expand_dims(part, last)) for part in parts], last)


@converts("real")
def _real(g: Graph, x: Any) -> Any:
    return g.tensor(_part(x, 0))


@converts("imag")
def _imag(g: Graph, x: Any) -> Any:
    return g.tensor(_part(x, 1))


@converts(f"_conj{OF_COMPLEX}", f"_conj_physical{OF_COMPLEX}", f"conj{OF_COMPLEX}")
def _conj(g: Graph, x: Any) -> Pair:
    real, imag = _pair(g, x)
    return Pair(real, R.negative(imag))


@converts(f"resolve_conj{OF_COMPLEX}", f"_to_copy{OF_COMPLEX}")
def _same(g: Graph, x: Any, *_: Any) -> Pair:
    real, imag = _pair(g, x)
    return Pair(real, imag if isinstance(x, (Pair, torch.Tensor)) else R.zeros_like(real))


@converts(f"abs{OF_COMPLEX}")
def _abs(g: Graph, x: Any) -> Any:
    real, imag = _pair(g, x)
    return R.sqrt(g.emit(R.add(_times(g, real, real), _times(g, imag, imag))))


@converts(f"angle{OF_COMPLEX}")
def _angle(g: Graph, x: Any) -> Any:
    return _REAL["aten.atan2"](g, _part(x, 1), _part(x, 0))


@converts(f"mul{OF_COMPLEX}")
def _mul(g: Graph, x: Any, y: Any) -> Pair:
    (a, b), (c, d) = _pair(g, x), _pair(g, y)
    return Pair(
        R.subtract(_times(g, a, c), _times(g, b, d)), R.add(_times(g, a, d), _times(g, b, c))
    )


@converts(f"div{OF_COMPLEX}")
def _div(g: Graph, x: Any, y: Any) -> Pair:
    (a, b), (c, d) = _pair(g, x), _pair(g, y)
    size = g.emit(R.add(_times(g, c, c), _times(g, d, d)))
    real = g.emit(R.add(_times(g, a, c), _times(g, b, d)))
    imag = g.emit(R.subtract(_times(g, b, c), _times(g, a, d)))
    return Pair(R.divide(real, size), R.divide(imag, size))


def _times(g: Graph, x: Any, y: Any) -> Any:
    return g.emit(R.multiply(x, y))


@converts(f"neg{OF_COMPLEX}")
def _neg(g: Graph, x: Any) -> Pair:
    return Pair(*(R.negative(part) for part in _pair(g, x)))


@converts(f"add{OF_COMPLEX}")
def _add(g: Graph, x: Any, y: Any, alpha: Any = 1) -> Pair:
    return _sum(g, x, y, alpha)


@converts(f"sub{OF_COMPLEX}")
def _sub(g: Graph, x: Any, y: Any, alpha: Any = 1) -> Pair:
    return _sum(g, x, y, -alpha)


def _sum(g: Graph, x: Any, y: Any, factor: Any) -> Pair:
    if isinstance(factor, complex):
        raise NotImplementedError("a complex factor is not supported")
    dtype, shape = dtype_of(real_part_of(g.out)), shape_of(g.out)
    scaled = [_times(g, part, scalar(factor, dtype)) for part in _pair(g, y)]
    parts = [g.emit(R.add(*both)) for both in zip(_pair(g, x), scaled, strict=True)]
    return Pair(*(R.broadcast_to(part, shape) for part in parts))


# Fourier transforms. A scale is 0 for none, 1 for that of a unitary one, 2 for the inverse's.


@converts(f"_fft_c2c{OF_COMPLEX}")
def _fft_c2c(g: Graph, x: Any, dim: Sequence[int], scale: int, forward: bool) -> Pair:
    pair = _pair(g, x)
    for axis in dim:
        pair = _transformed(g, pair, axis, forward)
    return _scaled(g, pair, shape_of(g.out), dim, scale)


@converts(f"_fft_r2c{OF_COMPLEX}")
def _fft_r2c(g: Graph, x: Any, dim: Sequence[int], scale: int, onesided: bool) -> Pair:
    real = g.tensor(x)
    shape = shape_of(real)
    pair = Pair(real, g.emit(R.zeros_like(real)))
    for axis in dim:
        kept = shape_of(g.out)[axis] if axis == dim[-1] and onesided else None
        pair = _transformed(g, pair, axis, True, kept)
    return _scaled(g, pair, shape, dim, scale)


@converts(f"_fft_c2r{OF_COMPLEX}")
def _fft_c2r(g: Graph, x: Any, dim: Sequence[int], scale: int, size: int) -> Any:
    """Transform back into real numbers: all but the first and the middle count twice."""
    pair = _pair(g, x)
    for axis in dim[:-1]:
        pair = _transformed(g, pair, axis, False)
    count = size // 2 + 1
    weights = torch.full((count, 1), 2.0, dtype=torch.float64)
    weights[0] = 1
    if size % 2 == 0:
        weights[-1] = 1
    last = dim[-1]
    kept = _REAL["aten.slice"]
    halves = [g.emit(kept(g, part, last, 0, count)) for part in pair]
    cos, sin = (matrix * weights for matrix in _matrices(count, size, size))
    real = g.emit(R.subtract(_product(g, halves[0], cos, last), _product(g, halves[1], sin, last)))
    return _scaled(g, Pair(real, real), shape_of(g.out), dim, scale).real


def _transformed(g: Graph, pair: Pair, axis: int, forward: bool, kept: int | None = None) -> Pair:
    size = shape_of(pair.real)[axis]
    cos, sin = _matrices(size, kept or size, size)
    if not forward:
        sin = -sin
    (a, b), (c, d) = ([_product(g, part, m, axis) for m in (cos, sin)] for part in pair)
    return Pair(g.emit(R.add(a, d)), g.emit(R.subtract(c, b)))


def _matrices(rows: int, columns: int, size: int) -> tuple[torch.Tensor, torch.Tensor]:
    turns = torch.outer(torch.arange(rows), torch.arange(columns)) % size
    angles = turns.double() * (2 * math.pi / size)
    return angles.cos(), angles.sin()


def _product(g: Graph, x: Any, matrix: torch.Tensor, axis: int) -> Any:
    """Multiply a matrix to an axis."""
    rank = len(shape_of(x))
    order = list(range(rank))
    order[axis], order[-1] = order[-1], order[axis]
    factor = g.tensor(matrix.to(getattr(torch, dtype_of(real_part_of(g.out)))))
    moved = x if order == sorted(order) else g.emit(R.permute_dims(x, order))
    product = g.emit(R.matmul(moved, factor))
    return product if order == sorted(order) else g.emit(R.permute_dims(product, order))


def _scaled(g: Graph, pair: Pair, shape: Sequence[int], dim: Sequence[int], scale: int) -> Pair:
    count = math.prod(shape[axis] for axis in dim)
    factor = (1.0, 1 / math.sqrt(count), 1 / count)[scale]
    if factor == 1:
        return pair
    number = scalar(factor, dtype_of(real_part_of(g.out)))
    return Pair(*(R.multiply(part, number) for part in pair))
