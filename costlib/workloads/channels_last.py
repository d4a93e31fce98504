"""Permutations from channels last to channels first moved behind what does not care.

Where convolutions have their channels last, what stands between two of them is computed so, too,
and the permutations around it meet and vanish. Images here are of one, two or three dimensions.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from costlib.tvm_compat import relax, tirx, tvm
from costlib.workloads.behind_products import ELEMENTWISE, ROUNDING, Looking
from costlib.workloads.folding import permutation, rewritten, static_type

_ALIKE = ELEMENTWISE | ROUNDING
_POOLING = {
    f"relax.nn.{kind}_pool{dimensions}d": getattr(relax.op.nn, f"{kind}_pool{dimensions}d")
    for kind in ("avg", "max")
    for dimensions in (1, 2, 3)
}
_LAYOUTS = {"NCW": "NWC", "NCHW": "NHWC", "NCDHW": "NDHWC"}
_REDUCTIONS = {"relax.max", "relax.mean", "relax.min", "relax.sum"}


def to_last(rank: int) -> list[int]:
    """Return the permutation of a batch of images, an array of so many axes, to channels last."""
    return [0, *range(2, rank), 1]


def to_first(rank: int) -> list[int]:
    """Return the permutation back."""
    return [0, rank - 1, *range(1, rank - 1)]


def channels_stay_last(mod: Any, ranks: Collection[int]) -> Any:
    """Move them in a Relax module as far as they go, for images that are arrays of so many axes."""
    return rewritten(mod, lambda _: _Mover(ranks))


@relax.expr_functor.mutator
class _Mover(Looking):
    def __init__(self, ranks: Collection[int]) -> None:
        super().__init__()
        self.ranks = ranks

    def visit_call_(self, call: Any) -> Any:
        shape, _ = static_type(call)
        call = self.visit_expr_post_order(call)
        name = getattr(call.op, "name", "")
        if shape is None or len(shape) not in self.ranks:
            return call
        order = to_last(len(shape))
        if name == "relax.permute_dims" and permutation(call) == order:
            source = self._last(call.args[0])
            return call if source is None else source
        if name in _ALIKE:
            return self._elementwise(call, shape)
        if name == "relax.concat":
            return self._joined(call)
        if name == "relax.reshape":
            return self._shuffled(call, shape)
        source = self._last(call.args[0]) if len(call.args) else None
        if source is None:
            return call
        if name == "relax.nn.pad" and str(call.attrs.pad_mode) == "constant":
            pairs = [int(n) for n in call.attrs.pad_width]
            around = [n for axis in order for n in pairs[2 * axis : 2 * axis + 2]]
            return self._first(
                relax.op.nn.pad(source, around, pad_value=float(call.attrs.pad_value))
            )
        if name == "relax.take" and len(static_type(call.args[1])[0] or ()) == 1:
            place = order.index(int(call.attrs.axis) % len(order))
            return self._first(relax.op.take(source, call.args[1], place, str(call.attrs.mode)))
        if name == "relax.strided_slice":
            axes, *bounds = ([int(n) for n in argument.fields] for argument in call.args[1:])
            places = [order.index(axis % len(order)) for axis in axes]
            return self._first(relax.op.strided_slice(source, places, *bounds))
        if name in _POOLING and str(call.attrs.layout) in _LAYOUTS:
            return self._first(self._pooled(call, source))
        if name in _REDUCTIONS and call.attrs.keepdims and call.attrs.axis is not None:
            axes = [order.index(int(axis) % len(order)) for axis in call.attrs.axis]
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
            layout=_LAYOUTS[str(attrs.layout)],
        )

    def _joined(self, call: Any) -> Any:
        """Concatenate with channels last, if all parts come so."""
        parts = [self._last(part) for part in self.parts(call)]
        if not parts or None in parts:
            return call
        order = to_last(len(static_type(call)[0] or ()))
        return self._first(relax.op.concat(parts, order.index(int(call.attrs.axis) % len(order))))

    def _shuffled(self, call: Any, shape: tuple[int, ...]) -> Any:
        """Transpose groups of channels where they are last, as ShuffleNet does between layers."""
        turned = self.bound(call.args[0], "relax.permute_dims")
        if turned is None or permutation(turned) != [0, 2, 1, *range(3, len(shape) + 1)]:
            return call
        parted = self.bound(turned.args[0], "relax.reshape")
        if parted is None or static_type(parted.args[0])[0] != shape:
            return call
        source = self._last(parted.args[0])
        if source is None:
            return call
        count, groups, each, *extents = static_type(parted)[0] or ()
        if (count, groups * each, *extents) != shape:
            return call
        axis = len(shape) - 1
        among = self.builder_.emit(relax.op.reshape(source, (count, *extents, groups, each)))
        swapped = self.builder_.emit(relax.op.permute_dims(among, [*range(axis), axis + 1, axis]))
        return self._first(relax.op.reshape(swapped, (count, *extents, groups * each)))

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
            operands.append(self._spread(argument, extents, len(shape)))
        return self._first(relax.Call(call.op, operands, call.attrs))

    def _spread(self, argument: Any, extents: tuple[int, ...], rank: int) -> Any:
        """Return what is spread over images with channels first, for those with channels last."""
        if not extents:
            return argument
        whole = (1,) * (rank - len(extents)) + extents
        if whole != extents:
            argument = self.builder_.emit(relax.op.reshape(argument, whole))
        return self.builder_.emit(relax.op.permute_dims(argument, to_last(rank)))

    def _last(self, expr: Any) -> Any | None:
        """Return the images with channels last that an expression is a permutation of."""
        if isinstance(expr, tvm.ir.GenericConst):
            return None
        found = self.bound(expr, "relax.permute_dims")
        if found is None or (order := permutation(found)) != to_first(len(order)):
            return None
        return found.args[0]

    def _first(self, call: Any) -> Any:
        images = self.builder_.emit(call)
        return relax.op.permute_dims(images, to_first(len(static_type(images)[0] or ())))
