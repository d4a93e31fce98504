"""Permutations from channels last to channels first moved behind what does not care.

Where convolutions have their channels last, what stands between two of them is computed so, too,
and the permutations around it meet and vanish.
"""

from __future__ import annotations

from typing import Any

from costlib.tvm_compat import relax, tirx, tvm
from costlib.workloads.behind_products import ELEMENTWISE, ROUNDING, Looking
from costlib.workloads.folding import permutation, rewritten, static_type

TO_LAST, TO_FIRST = [0, 2, 3, 1], [0, 3, 1, 2]
"""The permutations of a batch of images."""

_ALIKE = ELEMENTWISE | ROUNDING
_POOLING = {
    "relax.nn.max_pool2d": relax.op.nn.max_pool2d,
    "relax.nn.avg_pool2d": relax.op.nn.avg_pool2d,
}
_REDUCTIONS = {"relax.max", "relax.mean", "relax.min", "relax.sum"}


def channels_stay_last(mod: Any) -> Any:
    """Move them in a Relax module as far as they go."""
    return rewritten(mod, lambda _: _Mover())


@relax.expr_functor.mutator
class _Mover(Looking):
    def visit_call_(self, call: Any) -> Any:
        shape, _ = static_type(call)
        call = self.visit_expr_post_order(call)
        name = getattr(call.op, "name", "")
        if shape is None or len(shape) != len(TO_LAST):
            return call
        if name == "relax.permute_dims" and permutation(call) == TO_LAST:
            source = self._last(call.args[0])
            return call if source is None else source
        if name in _ALIKE:
            return self._elementwise(call, shape)
        if name == "relax.concat":
            return self._joined(call)
        source = self._last(call.args[0]) if len(call.args) else None
        if source is None:
            return call
        if name == "relax.nn.pad" and str(call.attrs.pad_mode) == "constant":
            pairs = [int(n) for n in call.attrs.pad_width]
            around = [n for axis in TO_LAST for n in pairs[2 * axis : 2 * axis + 2]]
            return self._first(
                relax.op.nn.pad(source, around, pad_value=float(call.attrs.pad_value))
            )
        if name in _POOLING and str(call.attrs.layout) == "NCHW":
            return self._first(self._pooled(call, source))
        if name in _REDUCTIONS and call.attrs.keepdims and call.attrs.axis is not None:
            axes = [TO_LAST.index(int(axis) % 4) for axis in call.attrs.axis]
            operator = getattr(relax.op, name.removeprefix("relax."))
            return self._first(operator(source, axes, keepdims=True))
        return call

    def _pooled(self, call: Any, source: Any) -> Any:
        attrs = call.attrs
        return _POOLING[call.op.name](
            source,
            pool_size=[int(n) for n in attrs.pool_size],
            strides=[int(n) for n in attrs.strides],
            padding=[int(n) for n in attrs.padding],
            dilation=[int(n) for n in attrs.dilation],
            ceil_mode=bool(attrs.ceil_mode),
            count_include_pad=bool(attrs.count_include_pad),
            layout="NHWC",
        )

    def _joined(self, call: Any) -> Any:
        """Concatenate with channels last, if all parts come so."""
        parts = [self._last(part) for part in self.parts(call)]
        if not parts or None in parts:
            return call
        return self._first(relax.op.concat(parts, TO_LAST.index(int(call.attrs.axis) % 4)))

    def _elementwise(self, call: Any, shape: tuple[int, ...]) -> Any:
        """Compute it with channels last, if one argument comes so and the others are small."""
        sources = [self._last(argument) for argument in call.args]
        if all(source is None for source in sources):
            return call
        operands = []
        for source, argument in zip(sources, call.args, strict=True):
            if source is not None or isinstance(argument, (tirx.IntImm, tirx.FloatImm)):
                operands.append(argument if source is None else source)
                continue
            extents, _ = static_type(argument)
            if extents is None or extents == shape:
                return call
            operands.append(self._spread(argument, extents))
        return self._first(relax.Call(call.op, operands, call.attrs))

    def _spread(self, argument: Any, extents: tuple[int, ...]) -> Any:
        """Return what is spread over images with channels first, for those with channels last."""
        if not extents:
            return argument
        whole = (1,) * (len(TO_LAST) - len(extents)) + extents
        if whole != extents:
            argument = self.builder_.emit(relax.op.reshape(argument, whole))
        return self.builder_.emit(relax.op.permute_dims(argument, TO_LAST))

    def _last(self, expr: Any) -> Any | None:
        """Return the images with channels last that an expression is a permutation of."""
        if isinstance(expr, tvm.ir.GenericConst):
            return None
        found = self.bound(expr, "relax.permute_dims")
        return found.args[0] if found is not None and permutation(found) == TO_FIRST else None

    def _first(self, call: Any) -> Any:
        return relax.op.permute_dims(self.builder_.emit(call), TO_FIRST)
