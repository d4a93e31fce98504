"""Matrix products of one tensor with several weights, such as query, key and value, as one.

One kernel instead of several; what it computes is cut apart where it is read, see
:mod:`costlib.workloads.views`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from costlib.tvm_compat import relax, tvm
from costlib.workloads.folding import constant_of, count_uses, is_call, rewritten, static_type

_VIEWS = ("relax.reshape", "relax.permute_dims")
"""What must come after them all: whatever else is done to them is fused into their kernels."""


def joined_products(mod: Any) -> Any:
    """Join matrix products in a Relax module whose bindings are canonical, constants folded."""
    return rewritten(mod, lambda function: _Joiner(_found(function)))


@dataclass
class _Product:
    """``matmul(x, weight)``, or that with a bias added; ``last`` is its last call."""

    x: Any
    weight: np.ndarray
    bias: np.ndarray | None
    last: Any


@dataclass
class _Group:
    products: list[_Product] = field(default_factory=list)
    joined: Any = None

    def emit(self, x: Any, builder: Any) -> Any:
        """Compute all products, once."""
        if self.joined is None:
            weight = np.concatenate([one.weight for one in self.products], axis=1)
            self.joined = builder.emit(relax.op.matmul(x, constant_of(weight)))
            biases = [one.bias for one in self.products if one.bias is not None]
            if biases:
                bias = constant_of(np.concatenate(biases))
                self.joined = builder.emit(relax.op.add(self.joined, bias))
        return self.joined


@dataclass(frozen=True)
class _Part:
    group: _Group
    begin: int
    end: int


def _found(function: Any) -> dict[Any, _Part]:
    """Return which part of a joined product each last call is."""
    groups: dict[Any, _Group] = defaultdict(_Group)
    for product in _products(function):
        kind = (product.x, str(product.weight.dtype), product.bias is None)
        groups[kind].products.append(product)
    parts: dict[Any, _Part] = {}
    for group in groups.values():
        begin = 0
        for product in group.products if len(group.products) > 1 else ():
            end = begin + product.weight.shape[1]
            parts[product.last] = _Part(group, begin, end)
            begin = end
    return parts


def _products(function: Any) -> Iterator[_Product]:
    """Find the products with weights whose results are only looked at in another shape."""
    uses = count_uses(function)
    calls = [
        (binding.var, binding.value)
        for block in function.body.blocks
        for binding in block.bindings
        if isinstance(binding.value, relax.Call)
    ]
    readers: dict[Any, list[tuple[Any, Any]]] = defaultdict(list)
    for variable, call in calls:
        for argument in call.args:
            if isinstance(argument, relax.Var):
                readers[argument].append((variable, call))
    for variable, call in calls:
        if not is_call(call, "relax.matmul"):
            continue
        x, weight = call.args
        if not (isinstance(x, relax.Var) and _is_constant(weight, 2)):
            continue
        last, bias = (variable, call), None
        if uses[variable] == len(readers[variable]) == 1:
            (after,) = readers[variable]
            bias = _bias_in(after[1], static_type(weight)[0])
            last = last if bias is None else after
        seen = readers[last[0]]
        only_looked_at = all(any(is_call(one, name) for name in _VIEWS) for _, one in seen)
        if seen and len(seen) == uses[last[0]] and only_looked_at:
            yield _Product(x, weight.value.numpy(), bias, last[1])


def _bias_in(call: Any, weight_shape: tuple[int, ...] | None) -> np.ndarray | None:
    """Return the constant vector that a call adds to a product, if that is what it does."""
    if is_call(call, "relax.add") and weight_shape is not None:
        for argument in call.args:
            if _is_constant(argument, 1) and static_type(argument)[0] == weight_shape[1:]:
                return np.asarray(argument.value.numpy())
    return None


def _is_constant(expr: Any, rank: int) -> bool:
    shape, dtype = static_type(expr)
    known = isinstance(expr, tvm.ir.GenericConst) and shape is not None and len(shape) == rank
    return known and dtype in ("float32", "float64", "float16")


@relax.expr_functor.mutator
class _Joiner(relax.PyExprMutator):  # type: ignore[misc]
    def __init__(self, parts: dict[Any, _Part]) -> None:
        super().__init__()
        self.parts = parts

    def visit_call_(self, call: Any) -> Any:
        part = self.parts.get(call)
        if part is None:
            return self.visit_expr_post_order(call)
        x = self.visit_expr(part.group.products[0].x)
        whole = part.group.emit(x, self.builder_)
        axis = len(static_type(whole)[0] or ()) - 1
        return relax.op.strided_slice(whole, [axis], [part.begin], [part.end])
