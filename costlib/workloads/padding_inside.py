"""Zeros around images that convolutions read, as padding of the convolutions.

Otherwise what comes before computes them: images of 113 x 113 instead of 112 x 112, which tiles
do not divide.
"""

from __future__ import annotations

from typing import Any

from costlib.tvm_compat import relax
from costlib.workloads.behind_products import Looking
from costlib.workloads.folding import rewritten

_CONVOLUTIONS = {
    f"relax.nn.conv{dimensions}d": getattr(relax.op.nn, f"conv{dimensions}d")
    for dimensions in (1, 2, 3)
}
_PAD = "relax.nn.pad"


def with_padding_inside(mod: Any) -> Any:
    """Move it into the convolutions of a Relax module that have their channels first."""
    return rewritten(mod, lambda _: _Rewriter())


@relax.expr_functor.mutator
class _Rewriter(Looking):
    def visit_call_(self, call: Any) -> Any:
        call = self.visit_expr_post_order(call)
        convolution = _CONVOLUTIONS.get(getattr(call.op, "name", ""))
        if convolution is None or not str(call.attrs.data_layout).startswith("NC"):
            return call
        pad = self.bound(call.args[0], _PAD)
        if pad is None or not _is_of_zeros(pad):
            return call
        attrs = call.attrs
        pairs = [int(n) for n in pad.attrs.pad_width]
        if any(pairs[:4]):
            return call
        around = [*pairs[4::2], *pairs[5::2]]
        return convolution(
            pad.args[0],
            call.args[1],
            strides=[int(n) for n in attrs.strides],
            padding=[int(n) + more for n, more in zip(attrs.padding, around, strict=True)],
            dilation=[int(n) for n in attrs.dilation],
            groups=int(attrs.groups),
            data_layout=str(attrs.data_layout),
            kernel_layout=str(attrs.kernel_layout),
            out_layout=str(attrs.out_layout) or None,
            out_dtype=str(attrs.out_dtype) or None,
        )


def _is_of_zeros(pad: Any) -> bool:
    attrs = pad.attrs
    return (
        str(attrs.pad_mode) == "constant"
        and float(attrs.pad_value) == 0
        and min(int(n) for n in attrs.pad_width) >= 0
    )
