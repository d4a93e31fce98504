"""Sums and means of many numbers, which a CPU computes in groups.

A sum that numbers are added to one after the other loses digits as it grows, and where they are
alike, always in the same direction. Of a mean over an image that costs digits which the rest of a
network may multiply. Each axis is summed up by itself, and a long one in groups: errors grow with
the longest of these alone (Higham, "The accuracy of floating point summation", 1993).
"""

from __future__ import annotations

import math
from typing import Any

from costlib.hardware import Hardware
from costlib.tvm_compat import relax
from costlib.workloads.folding import rewritten, static_type

_MANY = 1024
"""So many numbers are summed up in groups."""

_LEAST = 8
"""Fewer numbers are no group."""

_OPERATORS = {"relax.mean": relax.op.mean, "relax.sum": relax.op.sum}


def with_grouped_sums(mod: Any, hardware: Hardware) -> Any:
    """Compute sums and means of float32 in a Relax module in groups, where that is worth while."""
    return rewritten(mod, lambda _: _Rewriter()) if hardware.kind == "cpu" else mod


@relax.expr_functor.mutator
class _Rewriter(relax.PyExprMutator):  # type: ignore[misc]
    def visit_call_(self, call: Any) -> Any:
        call = self.visit_expr_post_order(call)
        operator = _OPERATORS.get(getattr(call.op, "name", ""))
        shape, dtype = static_type(call.args[0]) if operator else (None, "")
        if shape is None or dtype != "float32":
            return call
        axes = range(len(shape)) if call.attrs.axis is None else call.attrs.axis
        over = [axis for axis in sorted(int(n) % len(shape) for n in axes) if shape[axis] > 1]
        if math.prod(shape[axis] for axis in over) < _MANY:
            return call
        x, result = call.args[0], static_type(call)[0]
        for axis in reversed(over):
            x = self._summed(operator, x, axis)
        return relax.op.reshape(x, result)

    def _summed(self, operator: Any, x: Any, axis: int) -> Any:
        """Sum up along an axis, which is kept."""
        shape, _ = static_type(x)
        assert shape is not None
        group = _group(shape[axis])
        if group is not None:
            cut = [*shape[:axis], shape[axis] // group, group, *shape[axis + 1 :]]
            x = self.builder_.emit(relax.op.reshape(x, cut))
            x = self.builder_.emit(operator(x, axis + 1))
        return self.builder_.emit(operator(x, axis, keepdims=True))


def _group(count: int) -> int | None:
    """Return of how many numbers a group is; ``None`` if there are none."""
    if count < _MANY:
        return None
    divisors = [n for n in range(_LEAST, count // _LEAST + 1) if count % n == 0]
    return min(divisors, key=lambda n: n + count // n, default=None)
