"""Reshapes and factors moved behind matrix products, so that what follows is fused into them.

Exporters flatten all axes but the last before a product with a weight and restore them after it; a
bias, an activation or a residual behind the reshape would be kernels of their own. They scale
both operands of attention's first product, which costs two kernels, too.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Any

from costlib.tvm_compat import relax, tirx, tvm
from costlib.workloads.folding import is_call, permutation, rewritten, static_type

ELEMENTWISE = {
    f"relax.{name}"
    for name in (
        *("abs", "add", "clip", "divide", "erf", "exp", "log", "maximum", "minimum", "multiply"),
        *("negative", "nn.gelu", "nn.gelu_tanh", "nn.leakyrelu", "nn.relu", "nn.silu", "power"),
        *("rsqrt", "sigmoid", "sqrt", "square", "subtract", "tanh"),
    )
}

ROUNDING = {
    f"relax.{name}"
    for name in ("astype", "ceil", "floor", "isfinite", "isinf", "isnan", "round", "where")
}
"""Others of each element, which quantised networks are full of."""

_FACTORS = 1e-3, 1e3
"""Others might make of a product what no float32 can hold."""


def moved_behind_products(mod: Any, *, rounding: bool = False) -> Any:
    """Move them in a Relax module whose bindings are canonical, constants folded.

    Behind what rounds, too, if that is asked for.
    """
    passed = ELEMENTWISE | (ROUNDING if rounding else set())
    return rewritten(rewritten(mod, lambda _: _Mover(passed)), lambda _: _Merger())


class Looking(relax.PyExprMutator):  # type: ignore[misc]
    """A rewriter that looks at what variables stand for."""

    def bound(self, expr: Any, name: str) -> Any | None:
        """Return the call of this operator that a variable stands for, if it does."""
        found = expr
        while isinstance(found, relax.Var):
            found = self.lookup_binding(found)
        return found if found is not None and is_call(found, name) else None

    def parts(self, concat: Any) -> list[Any]:
        """Return what a call concatenates."""
        given = concat.args[0]
        if isinstance(given, relax.Var):
            given = self.lookup_binding(given)
        return list(given.fields) if isinstance(given, relax.Tuple) else []

    def source(self, expr: Any) -> Any:
        """Return what a tensor is a reshape of, or itself."""
        reshape = self.bound(expr, "relax.reshape")
        if reshape is None or static_type(reshape.args[0])[0] is None:
            return expr
        return reshape.args[0]


@relax.expr_functor.mutator
class _Merger(Looking):
    """Merges a reshape, or a permutation, with the one before it."""

    def visit_call_(self, call: Any) -> Any:
        shape, _ = static_type(call)
        call = self.visit_expr_post_order(call)
        if shape is None:
            return call
        if is_call(call, "relax.reshape"):
            return relax.op.reshape(self.source(call.args[0]), shape)
        if is_call(call, "relax.permute_dims"):
            before = self.bound(call.args[0], "relax.permute_dims")
            if before is not None:
                first, then = permutation(before), permutation(call)
                merged = [first[axis] for axis in then]
                whole = before.args[0]
                is_whole = merged == sorted(merged)
                return whole if is_whole else relax.op.permute_dims(whole, merged)
        return call


@relax.expr_functor.mutator
class _Mover(Looking):
    def __init__(self, passed: Collection[str]) -> None:
        super().__init__()
        self.passed = passed

    def visit_call_(self, call: Any) -> Any:
        shape, _ = static_type(call)
        call = self.visit_expr_post_order(call)
        if shape is None:
            return call
        if is_call(call, "relax.reshape"):
            source = self.source(call.args[0])
            return source if static_type(source)[0] == shape else call
        if is_call(call, "relax.matmul"):
            flat = self._flat_product(call, shape)
            return self._scaled_product(call) if flat is None else flat
        if getattr(call.op, "name", "") in self.passed:
            return self._elementwise(call, shape)
        return call

    def _flat_product(self, call: Any, shape: tuple[int, ...]) -> Any | None:
        """Multiply `... x K` with a matrix as it is, if `M x K` is all that its reshape does."""
        left, right = call.args
        source = self.source(left)
        extents, (weight, _) = static_type(source)[0], static_type(right)
        if source is left or weight is None or len(weight) != 2 or len(shape) != 2:
            return None
        if extents is None or len(extents) < 3 or extents[-1] != weight[0]:
            return None
        return self._reshaped(relax.Call(call.op, [source, right], call.attrs), shape)

    def _scaled_product(self, call: Any) -> Any:
        """Scale the product instead of its operands."""
        operands, factors = zip(*(self._unscaled(argument) for argument in call.args), strict=True)
        if not any(factors) or static_type(call.args[0])[1] != "float32":
            return call
        factor = math.prod(factor for factor in factors if factor is not None)
        product = self.builder_.emit(relax.Call(call.op, list(operands), call.attrs))
        return relax.op.multiply(product, relax.const(factor, "float32"))

    def _unscaled(self, expr: Any) -> tuple[Any, float | None]:
        """Take a tensor apart into what is scaled and by how much."""
        scaled = self.bound(expr, "relax.multiply")
        if scaled is not None:
            tensor, factor = scaled.args
            if isinstance(factor, tvm.ir.GenericConst) and static_type(factor)[0] == ():
                value = float(factor.value.numpy())
                if _FACTORS[0] <= abs(value) <= _FACTORS[1]:
                    return tensor, value
        return expr, None

    def _elementwise(self, call: Any, shape: tuple[int, ...]) -> Any:
        """Compute on what was reshaped, if all of it was of one shape, or is spread over it."""
        arguments = list(call.args)
        sources = [self.source(argument) for argument in arguments]
        extents = {
            static_type(source)[0]
            for source, argument in zip(sources, arguments, strict=True)
            if source is not argument and static_type(argument)[0] == shape
        }
        if len(extents) != 1 or None in extents:
            return call
        spread: list[tuple[int, ...]] = [()]
        if next(iter(extents))[-1:] == shape[-1:]:  # type: ignore[index]
            spread += [(*[1] * ones, shape[-1]) for ones in range(len(shape))]
        operands = []
        for source, argument in zip(sources, arguments, strict=True):
            is_number = isinstance(argument, (tirx.IntImm, tirx.FloatImm))
            is_spread = is_number or static_type(argument)[0] in spread
            if not is_spread and static_type(source)[0] not in extents:
                return call
            operands.append(argument if is_spread else source)
        return self._reshaped(relax.Call(call.op, operands, call.attrs), shape)

    def _reshaped(self, expr: Any, shape: tuple[int, ...]) -> Any:
        source = expr if isinstance(expr, relax.Var) else self.builder_.emit(expr)
        if isinstance(source, relax.Var) and static_type(source)[0] == shape:
            return source
        return relax.op.reshape(source, shape)
