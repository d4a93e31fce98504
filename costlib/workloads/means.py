"""Means over rows whose columns are neighbours in memory, as images with channels last have them.

MetaSchedule's design spaces leave the loops of a reduction where they are: over columns outside,
over rows inside, so that each step is a long way in memory and no vector fits. A product has its
loops tiled, and a mean is a product with one constant: its share of each row.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from costlib.tvm_compat import relax, te, tvm
from costlib.workloads.folding import static_type

_LEAST_ROWS = 32
"""Fewer take no time worth speaking of."""


def legalize_mean(builder: Any, call: Any) -> Any:
    """Lower a ``relax.mean``; as TVM does, if it is of other axes, or not for a CPU."""
    (x,) = call.args
    shape, dtype = static_type(x)
    if shape is None or call.attrs.axis is None or dtype != "float32":
        return _as_in_tvm(builder, call)
    axes = {int(axis) % len(shape) for axis in call.attrs.axis}
    rows = math.prod(shape[axis] for axis in axes)
    target = tvm.target.Target.current()
    is_cpu = target is not None and target.kind.name == "llvm"
    innermost = max((axis for axis, extent in enumerate(shape) if extent > 1), default=0)
    if not is_cpu or innermost in axes or rows < _LEAST_ROWS:
        return _as_in_tvm(builder, call)
    is_kept = bool(call.attrs.keepdims)

    def mean(x: Any, share: Any) -> Any:
        over = {axis: te.reduce_axis((0, shape[axis]), f"k{axis}") for axis in sorted(axes)}
        left = [axis for axis in range(len(shape)) if is_kept or axis not in axes]

        def summed(*place: Any) -> Any:
            index = dict(zip(left, place, strict=True)) | over
            term = x[tuple(index[axis] for axis in range(len(shape)))] * share[0]
            return te.sum(term, axis=list(over.values()))

        extents = [1 if axis in axes else shape[axis] for axis in left]
        return te.compute(extents, summed, name="mean")

    share = relax.const(np.array([1 / rows], dtype))
    return builder.call_te(mean, x, share, primfunc_name_hint="mean")


def _as_in_tvm(builder: Any, call: Any) -> Any:
    return call.op.get_attr("FLegalize")(builder, call)
