"""Matrix products and convolutions; those of halves are summed in float32."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from costlib.tvm_compat import relax
from costlib.workloads.importers.aten.elementwise import computed_in
from costlib.workloads.importers.aten.graph import (
    Converter,
    Graph,
    dtype_of,
    each,
    registering,
    scalar,
    shape_of,
)

CONVERTERS: dict[str, Converter] = {}
converts = registering(CONVERTERS)

R = relax.op


@converts("linear")
def _linear(g: Graph, x: Any, weight: Any, bias: Any = None) -> Any:
    out = dtype_of(g.out)
    wide = computed_in(out)
    bias = None if bias is None else g.tensor(bias, wide)
    return g.cast(g.emit(R.linear(g.tensor(x), g.tensor(weight), bias, wide)), out)


@converts("matmul", "mm", "bmm", "mv", "dot")
def _matmul(g: Graph, x: Any, y: Any) -> Any:
    out = dtype_of(g.out)
    return g.cast(g.emit(R.matmul(g.tensor(x), g.tensor(y), computed_in(out))), out)


@converts("addmm", "baddbmm", "addmv")
def _addmm(g: Graph, x: Any, y: Any, z: Any, beta: float = 1, alpha: float = 1) -> Any:
    out = dtype_of(g.out)
    wide = computed_in(out)
    product = g.emit(R.matmul(g.tensor(y), g.tensor(z), wide))
    if alpha != 1:
        product = g.emit(R.multiply(product, scalar(alpha, wide)))
    if beta == 0:
        return g.cast(product, out)
    term = g.tensor(x, wide)
    if beta != 1:
        term = g.emit(R.multiply(term, scalar(beta, wide)))
    sides = (term, product) if len(shape_of(g.out)) == 2 else (product, term)
    return g.cast(g.emit(R.add(*sides)), out)


@converts("addbmm")
def _addbmm(g: Graph, x: Any, y: Any, z: Any, beta: float = 1, alpha: float = 1) -> Any:
    """Take the sum of products as one product of what is beside each other."""
    one, other = g.tensor(y), g.tensor(z)
    count, rows, inner = shape_of(one)
    wide = g.emit(R.reshape(g.emit(R.permute_dims(one, [1, 0, 2])), [rows, count * inner]))
    high = g.emit(R.reshape(other, [count * inner, shape_of(other)[2]]))
    return _addmm(g, x, wide, high, beta, alpha)


_CONVOLUTIONS = {
    1: (R.nn.conv1d, R.nn.conv1d_transpose, "NCW", "OIW"),
    2: (R.nn.conv2d, R.nn.conv2d_transpose, "NCHW", "OIHW"),
    3: (R.nn.conv3d, R.nn.conv3d_transpose, "NCDHW", "OIDHW"),
}


@converts("convolution")
def _convolution(
    g: Graph,
    x: Any,
    weight: Any,
    bias: Any,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
) -> Any:
    out = dtype_of(g.out)
    wide = computed_in(out)
    rank = len(shape_of(g.out)) - 2
    ordinary, transpose, data, kernel = _CONVOLUTIONS[rank]
    settings: dict[str, Any] = {
        "strides": each(stride, rank),
        "padding": each(padding, rank) * 2,
        "dilation": each(dilation, rank),
        "groups": groups,
        "data_layout": data,
        "kernel_layout": kernel,
        "out_dtype": wide,
    }
    if transposed:
        settings["kernel_layout"] = kernel.replace("OI", "IO")
        settings["output_padding"] = each(output_padding, rank)
    function = transpose if transposed else ordinary
    result = g.emit(function(g.tensor(x), g.tensor(weight), **settings))
    if bias is not None:
        along = R.reshape(g.tensor(bias, wide), (1, -1, *[1] * rank))
        result = g.emit(R.add(result, along))
    return g.cast(result, out)


@converts("_trilinear")
def _trilinear(
    g: Graph,
    one: Any,
    two: Any,
    three: Any,
    expand_one: Sequence[int],
    expand_two: Sequence[int],
    expand_three: Sequence[int],
    summed: Sequence[int],
    unroll: int = 1,
) -> Any:
    """Multiply three tensors, dimensions added to each, and sum over some of them."""
    out = dtype_of(g.out)
    wide = [
        g.emit(R.expand_dims(g.tensor(x, computed_in(out)), list(axes))) if axes else g.tensor(x)
        for x, axes in ((one, expand_one), (two, expand_two), (three, expand_three))
    ]
    product = g.emit(R.multiply(g.emit(R.multiply(wide[0], wide[1])), wide[2]))
    return g.cast(g.emit(R.sum(product, list(summed))), out)
