"""What is looked up at constant places, as part of what computes with it.

Resizing looks up rows and columns, and adds them up with weights. TVM takes any look-up for what
nothing may be fused with, and writes the larger image once for each row that it adds.
"""

from __future__ import annotations

from typing import Any

from costlib.tvm_compat import topi, tvm
from costlib.workloads.folding import static_type

_INJECTIVE = 2
"""TVM's kInjective: each element is made of one, wherever that lies."""


def legalize_take(builder: Any, call: Any) -> Any:
    """Lower a ``relax.take``; as TVM does, if it is not along an axis at constant places."""
    x, index = call.args
    extents, _ = static_type(index)
    axis = call.attrs.axis
    is_constant = isinstance(index, tvm.ir.GenericConst)
    if axis is None or extents is None or len(extents) != 1 or not is_constant:
        return call.op.get_attr("FLegalize")(builder, call)
    return builder.call_te(
        topi.take,
        x,
        index,
        int(axis),
        mode=str(call.attrs.mode),
        primfunc_name_hint="take",
        primfunc_attrs={"op_pattern": _INJECTIVE},
    )
