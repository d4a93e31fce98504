"""Weights of matrix products in 8 or 4 bits, expanded while they are multiplied.

What is done with few rows, such as a token at a time, waits for its weights to come from memory:
they are a quarter or an eighth as long this way. Activations and sums stay in float32.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from costlib.tvm_compat import relax, te, tirx, tvm
from costlib.workloads.computed import call_computed
from costlib.workloads.folding import constant_of, is_call, rewritten, static_type

WeightFormat = Literal["int8", "int4"]

_GROUP = 32
"""Rows that share a scale in 4 bits, as is usual; in 8 bits all rows of a column do."""

_SMALLEST_GROUP = 8
_LARGEST = {"int8": 127, "int4": 7}


def with_small_weights(mod: Any, weights: WeightFormat) -> Any:
    """Keep the weights of products in a Relax module in 8 or 4 bits.

    These are float32 matrices that are constants on the right of a product. Those whose rows do
    not make groups stay as they are.
    """
    for name, function in mod.functions.items():
        if isinstance(function, relax.Function):
            rewriter = _Rewriter(mod, weights)
            rewriter.builder_.update_func(name, rewriter.visit_expr(function))
            mod = rewriter.builder_.get()
    return mod


def with_rounded_weights(mod: Any, weights: WeightFormat) -> Any:
    """Round the weights of products in a Relax module to what :func:`with_small_weights` keeps."""
    return rewritten(mod, lambda _: _Rounder(weights))


def quantised(weight: np.ndarray, weights: WeightFormat) -> tuple[np.ndarray, np.ndarray] | None:
    """Round a matrix to a few bits.

    Parameters
    ----------
    weight
        float32 `k x n`.
    weights
        In ``int8`` each column has a scale, in ``int4`` each group of rows in it.

    Returns
    -------
    codes, scales
        int8 `k x n` and float32 `groups x n`; ``None`` if the rows do not make groups.
    """
    rows, columns = weight.shape
    group = rows if weights == "int8" else math.gcd(rows, _GROUP)
    if weights == "int4" and group < _SMALLEST_GROUP:
        return None
    grouped = weight.reshape(rows // group, group, columns)
    scales = np.abs(grouped).max(1).astype("float32") / np.float32(_LARGEST[weights])
    safe = np.where(scales > 0, scales, 1)[:, None]
    codes = np.rint(grouped / safe).astype("int8").reshape(rows, columns)
    return codes, scales


def rounded(weight: np.ndarray, weights: WeightFormat) -> np.ndarray:
    """Return what a float32 matrix becomes."""
    if (found := quantised(weight, weights)) is None:
        return weight
    codes, scales = found
    return np.asarray(codes * np.repeat(scales, len(codes) // len(scales), 0))


def packed(codes: np.ndarray) -> np.ndarray:
    """Put rows of 4 bits together: of two that follow each other, the first is the lower half."""
    return ((codes[1::2] << 4) | (codes[::2] & 15)).astype("int8")


def _weight(call: Any, right: Any) -> np.ndarray | None:
    """Return the constant matrix on the right of a product."""
    if not is_call(call, "relax.matmul") or not isinstance(right, tvm.ir.GenericConst):
        return None
    shape, dtype = static_type(right)
    same = dtype == "float32" == static_type(call)[1] == static_type(call.args[0])[1]
    static = static_type(call)[0] is not None
    return right.value.numpy() if same and static and shape and len(shape) == 2 else None


@relax.expr_functor.mutator
class _Rounder(relax.PyExprMutator):  # type: ignore[misc]
    def __init__(self, weights: WeightFormat) -> None:
        super().__init__()
        self.weights = weights

    def visit_call_(self, call: Any) -> Any:
        visited = self.visit_expr_post_order(call)
        weight = _weight(call, visited.args[1]) if len(visited.args) > 1 else None
        if weight is None:
            return visited
        return relax.op.matmul(visited.args[0], constant_of(rounded(weight, self.weights)))


@relax.expr_functor.mutator
class _Rewriter(relax.PyExprMutator):  # type: ignore[misc]
    def __init__(self, mod: Any, weights: WeightFormat) -> None:
        super().__init__(mod)
        self.weights = weights

    def visit_call_(self, call: Any) -> Any:
        visited = self.visit_expr_post_order(call)
        weight = _weight(call, visited.args[1]) if len(visited.args) > 1 else None
        found = None if weight is None else quantised(weight, self.weights)
        if found is None:
            return visited
        codes, scales = found
        (left, *_), (shape, _) = visited.args, static_type(call)
        assert shape is not None
        if self.weights == "int8":
            product = self._called(_int8_product(shape, len(codes)), left, codes)
            return relax.op.multiply(self.builder_.emit(product), constant_of(scales[0]))
        kernel = _int4_product(shape, len(codes), len(codes) // len(scales))
        return self._called(kernel, left, packed(codes), scales)

    def _called(self, compute: Callable[..., Any], left: Any, *constants: np.ndarray) -> Any:
        arguments = [left, *map(constant_of, constants)]
        return call_computed(self.builder_, "matmul_int", compute, arguments)


def _int8_product(shape: tuple[int, ...], depth: int) -> Callable[[Any, Any], Any]:
    def compute(x: Any, codes: Any) -> Any:
        k = te.reduce_axis((0, depth), name="k")

        def value(*at: Any) -> Any:
            return te.sum(x(*at[:-1], k) * codes[k, at[-1]].astype("float32"), axis=k)

        return te.compute(shape, value, name="matmul")

    return compute


def _int4_product(shape: tuple[int, ...], depth: int, group: int) -> Callable[[Any, Any, Any], Any]:
    def compute(x: Any, codes: Any, scales: Any) -> Any:
        k = te.reduce_axis((0, depth // 2), name="k")

        def value(*at: Any) -> Any:
            both = codes[k, at[-1]].astype("int32")
            low = tirx.shift_right(tirx.shift_left(both, 28), 28)
            pair = zip((0, 1), (low, tirx.shift_right(both, 4)), strict=True)
            one, other = (x(*at[:-1], 2 * k + i) * code.astype("float32") for i, code in pair)
            return te.sum((one + other) * scales[k // (group // 2), at[-1]], axis=k)

        return te.compute(shape, value, name="matmul")

    return compute
