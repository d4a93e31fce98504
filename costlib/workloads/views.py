"""Batched matrix products that read and write through permutations, slices and broadcasts.

Attention splits its projections into heads by reshaping and permuting them, which costs kernels
that only move data. A product can read them where they are, and write its result where it is
wanted, as long as neighbours along the innermost axis stay neighbours, for vectors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from costlib.tvm_compat import relax, te, tirx, tvm
from costlib.tvm_compat.rewriting import substituted
from costlib.workloads.folding import count_uses, is_call, permutation, static_type


def products_through_views(mod: Any) -> Any:
    """Let products read and write through views in a Relax module in canonical form."""
    for name, function in mod.functions.items():
        if isinstance(function, relax.Function):
            rewriter = _Rewriter(mod, function)
            rewriter.builder_.update_func(name, rewriter.visit_expr(function))
            mod = rewriter.builder_.get()
    return mod


@dataclass(frozen=True)
class _Look:
    """A look at a tensor of some extents.

    Attributes
    ----------
    extents
        The shape of what is looked at.
    array
        Bytes, never read: their shape, strides and place are those of the look.
    start
        Where it begins, in elements.
    """

    extents: tuple[int, ...]
    array: np.ndarray
    start: int

    @classmethod
    def at(cls, extents: tuple[int, ...], whole: np.ndarray, array: np.ndarray) -> _Look:
        """Return the look that an array is at a whole one, which it shares the memory of."""
        first, start = (x.__array_interface__["data"][0] for x in (whole, array))
        return cls(extents, array, start - first)

    def reads(self, indices: Sequence[Any], analyzer: Any) -> list[Any]:
        """Return the indices of what is looked at."""
        flat: Any = tirx.const(self.start, "int64")
        for index, stride in zip(indices, self.array.strides, strict=True):
            flat = flat + tirx.Cast("int64", index) * tirx.const(stride, "int64")
        found, step = [], 1
        for extent in reversed(self.extents):
            place = tirx.indexmod(tirx.indexdiv(flat, step), extent)
            found.append(analyzer.simplify(place))
            step *= extent
        return found[::-1]

    def keeps_rows(self) -> bool:
        """Whether each of its rows is one of what is looked at, from end to end."""
        row = self.extents[-1]
        *outer, step = self.array.strides
        return self.array.shape[-1] == row and step == 1 and not any(n % row for n in outer)


@dataclass(frozen=True)
class View:
    """A tensor as a look at another one, or as looks at looks.

    Attributes
    ----------
    source
        The tensor that is looked at first.
    looks
        The first is one at the source. The next is one at what that shows, as if it were copied:
        what is spread over heads and reshaped has no strides of its own.
    """

    source: Any
    looks: tuple[_Look, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """Its extents."""
        return self.looks[-1].array.shape

    @property
    def extents(self) -> tuple[int, ...]:
        """Those of the source."""
        return self.looks[0].extents

    def reads(self, indices: Sequence[Any], extents: Sequence[int]) -> list[Any]:
        """Return the indices into the source of an element of the view."""
        analyzer = tvm.sym.Analyzer()
        for index, extent in zip(indices, extents, strict=True):
            if isinstance(index, tirx.Var):
                analyzer.bind(index, tvm.ir.Range(0, extent))
        found = list(indices)
        for look in reversed(self.looks):
            found = look.reads(found, analyzer)
        return found

    def place(self) -> Callable[[Sequence[Any]], list[Any]]:
        """Return what turns indices of the view, whatever they are, into those of the source."""
        variables = [tirx.Var("i", "int64") for _ in self.shape]
        indices = self.reads(variables, self.shape)

        def places(at: Sequence[Any]) -> list[Any]:
            values = dict(zip(variables, at, strict=True))
            return [substituted(index, values) for index in indices]

        return places


def _permuted(function: Any) -> dict[Any, Any]:
    """Return the call that permutes the result of each product that nothing else reads."""
    uses = count_uses(function)
    found: dict[Any, Any] = {}
    made: dict[Any, Any] = {}
    for block in function.body.blocks:
        for binding in block.bindings:
            call = binding.value
            if is_call(call, "relax.matmul"):
                made[binding.var] = call
            elif is_call(call, "relax.permute_dims") and call.args[0] in made:
                order = permutation(call)
                if uses[call.args[0]] == 1 and order[-1] == len(order) - 1:
                    found[made[call.args[0]]] = call
    return found


class ThroughViews(relax.PyExprMutator):  # type: ignore[misc]
    """A rewriter that knows what views products could read and write through."""

    def __init__(self, mod: Any, function: Any) -> None:
        super().__init__(mod)
        self._permuted = _permuted(function)
        self._done: set[Any] = set()

    def is_done(self, call: Any) -> bool:
        """Whether a call permutes a product that is written so."""
        return call in self._done

    def order(self, product: Any) -> list[int] | None:
        """Return in what order the axes of a product are wanted; from then on they are."""
        permute = self._permuted.get(product)
        if permute is None:
            return None
        self._done.add(permute)
        return permutation(permute)

    def view(self, expr: Any) -> View | None:
        """Follow a tensor back as long as its innermost axis stays one of neighbours."""
        chain: list[Any] = []
        start = expr
        while (call := self._call(start)) is not None and self._looks(call) is not None:
            chain.append(call)
            start = call.args[0]
        best = None
        for length in range(len(chain) + 1):
            source = chain[length - 1].args[0] if length else expr
            if (view := self._through(source, chain[:length][::-1])) is not None:
                best = view
        return best

    def _through(self, source: Any, calls: Sequence[Any]) -> View | None:
        extents, _ = static_type(source)
        if extents is None or not isinstance(source, relax.Var):
            return None
        whole = np.empty(extents, "int8")
        look, found = whole, list[_Look]()
        for call in calls:
            looks = self._looks(call)
            assert looks is not None
            shown = looks(look)
            if not np.may_share_memory(shown, whole):  # NumPy had to copy.
                if not _is_spread(look):
                    return None
                found.append(_Look.at(extents, whole, look))
                whole, extents = shown, look.shape
            look = shown
        found.append(_Look.at(extents, whole, look))
        first, *others = found
        is_apart = first.array.ndim == 0 or (
            first.array.strides[-1] != 1 and first.array.shape[-1] > 1
        )
        if is_apart or not all(other.keeps_rows() for other in others):
            return None
        return View(source, tuple(found))

    def _call(self, expr: Any) -> Any:
        if not isinstance(expr, relax.Var):
            return None
        bound = self.lookup_binding(expr)
        return bound if isinstance(bound, relax.Call) else None

    def _looks(self, call: Any) -> Callable[[np.ndarray], np.ndarray] | None:
        """Return how NumPy looks at an array as an operator does; ``None`` if it computes."""
        shape = static_type(call)[0]
        if shape is None:
            return None
        if any(is_call(call, name) for name in _RESHAPES):
            return lambda array: array.reshape(shape)
        if is_call(call, "relax.broadcast_to"):
            return lambda array: np.broadcast_to(array, shape)
        if is_call(call, "relax.permute_dims"):
            return lambda array: array.transpose(permutation(call))
        if is_call(call, "relax.strided_slice"):
            return _slice(call)
        return None


@relax.expr_functor.mutator
class _Rewriter(ThroughViews):
    def visit_call_(self, call: Any) -> Any:
        product = self.visit_expr_post_order(call)
        if self.is_done(call):
            return product.args[0]
        if not is_call(call, "relax.matmul"):
            return product
        left, right = (self.view(argument) for argument in product.args)
        shape, dtype = static_type(call)
        if (
            shape is None
            or left is None
            or right is None
            or len(shape) < 3
            or not len(left.shape) == len(right.shape) == len(shape)
            or left.shape[:-2] != right.shape[:-2]
            or static_type(product.args[0])[1] != dtype
            or static_type(product.args[1])[1] != dtype
        ):
            return product
        moved = [not v.source.same_as(a) for v, a in zip((left, right), product.args, strict=True)]
        order = self.order(call)
        if order is None and not any(moved):
            return product
        order = order or list(range(len(shape)))
        compute = _product(left, right, shape, order)
        return self.builder_.call_te(
            compute, left.source, right.source, primfunc_name_hint="matmul"
        )


def _is_spread(look: np.ndarray) -> bool:
    """Whether the same elements appear several times, as keys do that heads share."""
    return any(n > 1 and stride == 0 for n, stride in zip(look.shape, look.strides, strict=True))


_RESHAPES = ("relax.reshape", "relax.expand_dims", "relax.squeeze")


def _slice(call: Any) -> Callable[[np.ndarray], np.ndarray] | None:
    """Cut axes, if every element between the ends is taken."""
    axes, begin, end, *step = ([int(n) for n in argument.fields] for argument in call.args[1:])
    if min(*begin, *end) < 0 or any(n != 1 for numbers in step for n in numbers):
        return None
    cut = dict(zip(axes, map(slice, begin, end), strict=True))
    return lambda array: array[tuple(cut.get(axis, slice(None)) for axis in range(array.ndim))]


def _product(
    left: View, right: View, shape: Sequence[int], order: Sequence[int]
) -> Callable[[Any, Any], Any]:
    """Return what computes a product, its axes in another order."""
    depth = left.shape[-1]

    def compute(a: Any, b: Any) -> Any:
        k = te.reduce_axis((0, depth), name="k")

        def value(*indices: Any) -> Any:
            at = dict(zip(order, indices, strict=True))
            *batch, i, j = (at[axis] for axis in range(len(shape)))
            extents = list(shape[:-2])
            row = left.reads([*batch, i, k.var], [*extents, shape[-2], depth])
            column = right.reads([*batch, k.var, j], [*extents, depth, shape[-1]])
            return te.sum(a(*row) * b(*column), axis=k)

        return te.compute([shape[axis] for axis in order], value, name="matmul")

    return compute
