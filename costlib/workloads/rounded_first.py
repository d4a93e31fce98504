"""Rounding moved before concatenations and max pools, which then move bytes.

Quantised networks concatenate or pool float32 and round what comes out. Rounding each part gives
the same, as does rounding what is pooled, since a greater number is never rounded to a smaller
one; and it is fused into what computes the parts.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np

from costlib.tvm_compat import relax, tirx, tvm
from costlib.workloads.behind_products import Looking
from costlib.workloads.folding import count_uses, is_call, rewritten, static_type

_POOL, _CONCAT, _CAST = "relax.nn.max_pool2d", "relax.concat", "relax.astype"

_LOWEST, _HIGHEST, _RELU = "relax.maximum", "relax.minimum", "relax.nn.relu"
_RISING = ("relax.add", "relax.ceil", "relax.floor", "relax.round", _LOWEST, _HIGHEST, _RELU)
"""With a number, if with any, they make of no number less than of a smaller one."""

_SCALING = ("relax.multiply", "relax.divide")
"""They do so with a number above 0."""


def rounded_first(mod: Any) -> Any:
    """Move it in a Relax module in canonical form, without dead code."""
    return rewritten(mod, lambda function: _Mover(count_uses(function)))


@relax.expr_functor.mutator
class _Mover(Looking):
    def __init__(self, uses: Counter[Any]) -> None:
        super().__init__()
        self.uses = uses
        self.pools = list[Any]()
        """Those that alone read what they pool."""

    def visit_call_(self, call: Any) -> Any:
        original, call = call, self.visit_expr_post_order(call)
        if is_call(call, _POOL):
            return self._pooled(call, alone=self.uses[original.args[0]] == 1)
        if len(call.args) and self.uses[original.args[0]] == 1 and self._is_rising(call):
            source = call.args[0]
            if self._pool(source) is not None or self.bound(source, _CONCAT) is not None:
                return self._of(call, source)
        return call

    def _pool(self, expr: Any) -> Any | None:
        """Return the max pool that a tensor comes from, if that alone reads what it pools."""
        pool = self.bound(expr, _POOL)
        return pool if any(one.same_as(pool) for one in self.pools) else None

    def _pooled(self, pool: Any, *, alone: bool) -> Any:
        pooled = self.builder_.emit(pool)
        if alone:
            self.pools.append(self.bound(pooled, _POOL))
        return pooled

    def _of(self, call: Any, source: Any) -> Any:
        """Do to a tensor what a call does, before it is pooled or concatenated."""
        if (pool := self._pool(source)) is not None:
            data = self._of(call, pool.args[0])
            return self._pooled(relax.Call(pool.op, [data], pool.attrs), alone=True)
        if (concat := self.bound(source, _CONCAT)) is not None:
            parts = [self._of(call, part) for part in self.parts(concat)]
            return self.builder_.emit(relax.op.concat(parts, concat.attrs.axis))
        return self.builder_.emit(relax.Call(call.op, [source, *list(call.args)[1:]], call.attrs))

    def _is_rising(self, call: Any) -> bool:
        name, others = getattr(call.op, "name", ""), list(call.args)[1:]
        if name == _CAST:
            return self._fits(call.args[0], static_type(call)[1])
        numbers = [_number(other) for other in others]
        if any(number is None for number in numbers):
            return False
        return name in _RISING or (
            name in _SCALING and all(number is not None and number > 0 for number in numbers)
        )

    def _fits(self, expr: Any, dtype: str) -> bool:
        """Whether a type holds all that a tensor may be: others would be cut, and in no order."""
        if dtype == "float32":
            return True
        if dtype not in ("int8", "uint8", "int32"):
            return False
        low, high = self._bounds(expr)
        limits = np.iinfo(dtype)
        return limits.min <= low and high <= limits.max

    def _bounds(self, expr: Any) -> tuple[float, float]:
        """Return between which numbers a tensor is known to be."""
        if (pool := self._pool(expr)) is not None:
            return self._bounds(pool.args[0])
        if (concat := self.bound(expr, _CONCAT)) is not None:
            lows, highs = zip(*map(self._bounds, self.parts(concat)), strict=True)
            return min(lows), max(highs)
        if (cast := self.bound(expr, _CAST)) is not None:
            return self._bounds(cast.args[0])
        if (relu := self.bound(expr, _RELU)) is not None:
            low, high = self._bounds(relu.args[0])
            return max(low, 0.0), max(high, 0.0)
        for name, choose in ((_LOWEST, max), (_HIGHEST, min)):
            found = self.bound(expr, name)
            number = None if found is None else _number(found.args[1])
            if found is not None and number is not None:
                low, high = self._bounds(found.args[0])
                return choose(low, number), choose(high, number)
        return -math.inf, math.inf


def _number(operand: Any) -> float | None:
    if isinstance(operand, (tirx.IntImm, tirx.FloatImm)):
        return float(operand.value)
    if isinstance(operand, tvm.ir.GenericConst) and static_type(operand)[0] == ():
        return float(operand.value.numpy())
    return None
