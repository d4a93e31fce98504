"""Permutations of images that, with the reshapes around them, move nothing, as one reshape.

A vision transformer lists the pixels of an image with channels first, and permutes the list to
have channels last. Where convolutions have them last, that leaves every number where it was.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from costlib.tvm_compat import relax
from costlib.workloads.channels_last import to_first, to_last
from costlib.workloads.folding import is_call, permutation, rewritten, static_type

_PERMUTE = "relax.permute_dims"
_RESHAPES = {f"relax.{name}" for name in ("expand_dims", "flatten", "reshape", "squeeze")}

_OF_IMAGES = [order(rank) for order in (to_first, to_last) for rank in (4, 5)]

_MOST = 1 << 24
"""Numbers of a tensor of which it is looked where each of them goes."""


def without_idle_moves(mod: Any) -> Any:
    """Write them so in a Relax module in canonical form."""
    return rewritten(mod, lambda _: _Rewriter())


@relax.expr_functor.mutator
class _Rewriter(relax.PyExprMutator):  # type: ignore[misc]
    def visit_call_(self, call: Any) -> Any:
        call = self.visit_expr_post_order(call)
        shape, _ = static_type(call)
        if getattr(call.op, "name", "") != _PERMUTE or shape is None:
            return call
        source = self._source(call, math.prod(shape))
        return call if source is None else relax.op.reshape(source, shape)

    def _source(self, call: Any, size: int) -> Any | None:
        """Return the tensor that a permutation, and what was done before, is a reshape of."""
        steps: list[Any] = []
        for step in self._moves(call):
            steps.insert(0, step)
            permutations = [permutation(one) for one in steps if is_call(one, _PERMUTE)]
            is_of_images = any(one in _OF_IMAGES for one in permutations)
            if is_of_images and is_call(step, _PERMUTE) and _stays(steps, size):
                return step.args[0]
        return None

    def _moves(self, call: Any) -> Iterator[Any]:
        """Yield a call and those before it, as long as they move numbers of static shapes."""
        expr = call
        while getattr(getattr(expr, "op", None), "name", "") in (_PERMUTE, *_RESHAPES):
            source = expr.args[0]
            extents = static_type(source)[0]
            if extents is None or math.prod(extents) > _MOST:
                return
            yield expr
            expr = source
            while isinstance(expr, relax.Var):
                expr = self.lookup_binding(expr)


def _stays(steps: list[Any], size: int) -> bool:
    """Whether each number is where it was after these steps, the first one first."""
    places = np.arange(size, dtype="int32")
    moved = places.reshape(static_type(steps[0].args[0])[0] or ())
    for step in steps:
        if is_call(step, _PERMUTE):
            moved = moved.transpose(permutation(step))
        else:
            moved = moved.reshape(static_type(step)[0] or ())
    return bool((moved.reshape(-1) == places).all())
