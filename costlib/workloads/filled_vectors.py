"""Products with so many outputs that vectors are full.

Design spaces tile axes by their divisors: of 1,000 outputs 8, 10 or 20 make a vector, of 30,522
only 6, where AVX-512 has room for 16. Constant weights are filled up with zeros, ahead of time, to
a multiple of what a vector holds; the kernel computes the outputs that this adds and drops them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from costlib.hardware import Hardware
from costlib.tvm_compat import relax, te, topi, tvm
from costlib.workloads.computed import call_computed, cut
from costlib.workloads.folding import constant_of, static_type

_DTYPE = "float32"
_LAYOUTS = ("NHWC", "OHWI"), ("NDHWC", "ODHWI")


def with_filled_vectors(mod: Any, hardware: Hardware) -> Any:
    """Fill up the constant weights of products and convolutions in a Relax module.

    Those are of float32, with at least as many outputs as a vector of a CPU holds, and not a
    multiple of it; convolutions are those in NHWC or NDHWC without groups.
    """
    lanes = hardware.vector_bits // 32 if hardware.kind == "cpu" else 0
    for name, function in mod.functions.items() if lanes > 1 else ():
        if isinstance(function, relax.Function):
            rewriter = _Rewriter(mod, lanes)
            rewriter.builder_.update_func(name, rewriter.visit_expr(function))
            mod = rewriter.builder_.get()
    return mod


@relax.expr_functor.mutator
class _Rewriter(relax.PyExprMutator):  # type: ignore[misc]
    def __init__(self, mod: Any, lanes: int) -> None:
        super().__init__(mod)
        self.lanes = lanes

    def visit_call_(self, call: Any) -> Any:
        shape, dtype = static_type(call)
        call = self.visit_expr_post_order(call)
        operator = _OPERATORS.get(getattr(call.op, "name", ""))
        if operator is None or shape is None or dtype != _DTYPE:
            return call
        data, weight = call.args
        missing = -shape[-1] % self.lanes
        is_constant = isinstance(weight, tvm.ir.GenericConst)
        types = {static_type(data)[1], static_type(weight)[1]}
        if not is_constant or types != {_DTYPE} or not missing or shape[-1] < self.lanes:
            return call
        return operator(self.builder_, call, shape, missing)


def _product(builder: Any, call: Any, shape: tuple[int, ...], missing: int) -> Any:
    data, weight = call.args
    array = weight.value.numpy()
    extents = static_type(data)[0]
    if extents is None or extents[:-1] != shape[:-1] or array.ndim not in (2, len(shape)):
        return call
    *batch, depth, _ = array.shape
    is_one = [extent == 1 for extent in batch]

    def compute(x: Any, weight: Any) -> Any:
        k = te.reduce_axis((0, depth), name="k")

        def value(*at: Any) -> Any:
            chosen = (0 if one else i for one, i in zip(is_one, at, strict=False))
            return te.sum(x(*at[:-1], k) * weight(*chosen, k, at[-1]), axis=k)

        whole = te.compute((*shape[:-1], shape[-1] + missing), value, name="matmul")
        return cut(whole, shape)

    filled = np.pad(array, [(0, 0)] * (array.ndim - 1) + [(0, missing)])
    return call_computed(builder, "matmul", compute, [data, constant_of(filled)])


def _convolution(builder: Any, call: Any, shape: tuple[int, ...], missing: int) -> Any:
    attrs = call.attrs
    layouts = str(attrs.data_layout), str(attrs.kernel_layout)
    if layouts not in _LAYOUTS or str(attrs.out_layout) != layouts[0] or int(attrs.groups) > 1:
        return call
    strides, padding, dilation = (
        [int(n) for n in attrs[name]] for name in ("strides", "padding", "dilation")
    )

    def compute(x: Any, weight: Any) -> Any:
        whole = topi.nn.conv(x, weight, strides, padding, dilation, 1, *layouts)
        return cut(whole, shape)

    data, weight = call.args
    array = weight.value.numpy()
    filled = np.pad(array, [(0, missing), *[(0, 0)] * (array.ndim - 1)])
    name = call.op.name.removeprefix("relax.nn.")
    return call_computed(builder, name, compute, [data, constant_of(filled)])


_OPERATORS = {
    "relax.matmul": _product,
    "relax.nn.conv2d": _convolution,
    "relax.nn.conv3d": _convolution,
}
