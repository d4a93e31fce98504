"""Convolutions of 3 x 3 by Winograd's algorithm: fewer multiplications, for some additions.

``+winograd`` computes `tile x tile` outputs at a time from `(tile + 2) ** 2` products where a
convolution takes `9 * tile ** 2`: the input is transformed, one matrix product over the channels
made for each place of a tile, and the sums transformed back (Lavin and Gray, arXiv:1509.09308).
Weights are transformed ahead of time.

A convolution over volumes is one over their slices: the products add up over the slices of its
kernel as well.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np

from costlib.tvm_compat import relax, te, topi, tvm
from costlib.workloads.computed import call_computed
from costlib.workloads.folding import constant_of, fold_constants, is_call, static_type
from costlib.workloads.winograd_kernels import (
    OUTPUT,
    TILES,
    Image,
    input_transform,
    output_transform,
    places,
    tiles,
    transformed_weights,
)

WINOGRAD = "winograd"
"""What is appended to a network's name."""

_BLOCKS = re.compile(r"NCHW(\d+)c OIHW\1i\1o")

_LANES = 8
"""Channels come in multiples of it."""

_FLOPS_PER_BYTE = 6.0
"""What tuned products compute while a byte is brought from memory that no core has for itself."""


class Kind(NamedTuple):
    """A kind of convolution, by the shapes of what it and its way by Winograd read and write.

    Attributes
    ----------
    image, weight, output
        What the convolution reads and writes.
    transformed, multiplied, products
        The transformed image, the transformed weights, and their product.
    """

    image: tuple[int, ...]
    weight: tuple[int, ...]
    output: tuple[int, ...]
    transformed: tuple[int, ...]
    multiplied: tuple[int, ...]
    products: tuple[int, ...]


def by_winograd(mod: Any, leave: Collection[Kind] = ()) -> tuple[Any, frozenset[Kind]]:
    """Compute 3 x 3 convolutions of a Relax module by Winograd where that is less work.

    It takes those with channels last or in blocks, a stride of 1, one group and constant weights;
    the others stay as they are.

    Parameters
    ----------
    mod
        The module, parameters bound as constants.
    leave
        Kinds that stay as they are.

    Returns
    -------
    mod, kinds
        The module, and the kinds of those that it took.
    """
    transform = relax.transform
    clean = [transform.CanonicalizeBindings(), transform.DeadCodeElimination()]
    with tvm.transform.PassContext(opt_level=3):
        mod = tvm.transform.Sequential([transform.FoldConstant(), *clean])(fold_constants(mod))
    kinds: set[Kind] = set()
    for name, function in mod.functions.items():
        if isinstance(function, relax.Function):
            rewriter = _Rewriter(mod, leave)
            rewriter.builder_.update_func(name, rewriter.visit_expr(function))
            mod = rewriter.builder_.get()
            kinds |= rewriter.kinds
    return mod, frozenset(kinds)


@dataclass(frozen=True)
class _Convolution:
    """A convolution that Winograd can compute.

    Attributes
    ----------
    image, output
        What it reads and writes.
    padding
        Zeros above and left of each image.
    weight
        float32 `O x I x 3 x 3`, for volumes `O x I x slices x 3 x 3`.
    front
        Slices of zeros before each volume.
    """

    image: Image
    output: Image
    padding: tuple[int, int]
    weight: np.ndarray
    front: int = 0

    @classmethod
    def of(cls, call: Any, data: Any, weight: Any) -> Self | None:
        """Read a call whose arguments are visited."""
        attrs = call.attrs
        layout, out_layout, kernel_layout = (
            str(attrs[f"{of}_layout"]) for of in ("data", "out", "kernel")
        )
        (shape, dtype), (out_shape, out_dtype) = static_type(data), static_type(call)
        if (
            not isinstance(weight, tvm.ir.GenericConst)
            or shape is None
            or out_shape is None
            or {dtype, out_dtype, static_type(weight)[1]} != {"float32"}
            or out_layout not in ("", layout)
            or int(attrs.groups) > 1
            or any(int(n) != 1 for n in (*attrs.strides, *attrs.dilation))
        ):
            return None
        kernel = np.asarray(weight.value.numpy())
        if (layout, kernel_layout) == ("NHWC", "OHWI"):
            kernel = kernel.transpose(0, 3, 1, 2)
            images = [Image(*extents) for extents in (shape, out_shape)]
        elif (layout, kernel_layout) == ("NDHWC", "ODHWI"):
            kernel = kernel.transpose(0, 4, 1, 2, 3)
            images = [
                Image(count * depth, height, width, channels, depth=depth)
                for count, depth, height, width, channels in (shape, out_shape)
            ]
        elif (blocks := _BLOCKS.fullmatch(f"{layout} {kernel_layout}")) is not None:
            block = int(blocks[1])
            outputs, inputs, down, across, _, _ = kernel.shape
            kernel = kernel.transpose(0, 5, 1, 4, 2, 3)
            kernel = kernel.reshape(outputs * block, inputs * block, down, across)
            images = [
                Image(n, height, width, chunks * block, block)
                for n, chunks, height, width, block in (shape, out_shape)
            ]
        else:
            return None
        image, output = images
        if kernel.shape[-2:] != (3, 3) or image.channels % _LANES or output.channels % _LANES:
            return None
        before = [int(n) for n in attrs.padding[: len(attrs.padding) // 2]]
        return cls(image, output, (before[-2], before[-1]), kernel, sum(before[:-2]))

    def kind(self, tile: int, weight: Any) -> Kind:
        """Return what kind it is, with a tile and its weight as it is stored."""
        outputs, inputs, *slices = self.weight.shape[:-2]
        through = places(tile)
        return Kind(
            image=self.image.shape,
            weight=static_type(weight)[0] or (),
            output=self.output.shape,
            transformed=(through, *tiles(self.image, self.output, tile), inputs),
            multiplied=(through, *slices, inputs, outputs),
            products=(through, *tiles(self.output, self.output, tile), outputs),
        )

    def best_tile(self) -> int | None:
        """Return the tile with which it is least work; ``None`` if it is not."""
        outputs, inputs, *slices = self.weight.shape[:-2]
        pairs = math.prod(slices) * inputs * outputs
        images = self.image.nbytes + self.output.nbytes
        pixels = self.output.batch * self.output.height * self.output.width
        work: dict[int | None, float] = {
            None: _work(9 * pixels * pairs, self.weight.nbytes + images)
        }
        for tile in TILES:
            read, written = (
                math.prod(tiles(one, self.output, tile)) for one in (self.image, self.output)
            )
            through = places(tile)
            moved = 4 * through * (2 * (read * inputs + written * outputs) + pairs)
            work[tile] = _work(through * written * pairs, moved + images)
        return min(work, key=lambda tile: work[tile])


def _work(multiplications: int, nbytes: int) -> float:
    return 2 * multiplications + _FLOPS_PER_BYTE * nbytes


@relax.expr_functor.mutator
class _Rewriter(relax.PyExprMutator):  # type: ignore[misc]
    def __init__(self, mod: Any, leave: Collection[Kind]) -> None:
        super().__init__(mod)
        self.leave, self.kinds = leave, set[Kind]()

    def visit_call_(self, call: Any) -> Any:
        visited = self.visit_expr_post_order(call)
        if not (is_call(call, "relax.nn.conv2d") or is_call(call, "relax.nn.conv3d")):
            return visited
        found = _Convolution.of(call, *visited.args)
        tile = None if found is None else found.best_tile()
        if found is None or tile is None:
            return visited
        kind = found.kind(tile, call.args[1])
        if kind in self.leave:
            return visited
        self.kinds.add(kind)
        emit = self.builder_.emit
        kernel = input_transform(found.image, found.output, found.padding, tile)
        called = self._called(kernel, WINOGRAD + "_input", visited.args[0], kind.transformed)
        transformed = emit(called)
        weight = constant_of(transformed_weights(found.weight, tile))
        if found.image.depth is None:
            products = emit(relax.op.matmul(transformed, weight))
        else:
            product = _over_slices(kind, found.front)
            products = emit(call_computed(self.builder_, "matmul", product, [transformed, weight]))
        kernel = output_transform(found.output, tile)
        return self._called(kernel, OUTPUT, products, kind.output)

    def _called(self, kernel: Any, name: str, argument: Any, shape: tuple[int, ...]) -> Any:
        function = self.builder_.add_func(kernel, name)
        return relax.call_tir(function, [argument], relax.TensorType(shape, "float32"))


def _over_slices(kind: Kind, front: int) -> Callable[[Any, Any], Any]:
    """Return what multiplies volumes, `places x volumes x slices x tiles x I`, with weights.

    Those are `places x slices of a kernel x I x O`.
    """
    _, of_kernel, inputs, _ = kind.multiplied
    back = kind.products[2] + of_kernel - 1 - kind.transformed[2] - front

    def compute(x: Any, weight: Any) -> Any:
        if front or back:
            x = topi.nn.pad(x, [0, 0, front, 0, 0], [0, 0, back, 0, 0], name="pad_temp")
        z, k = te.reduce_axis((0, of_kernel), name="kz"), te.reduce_axis((0, inputs), name="k")

        def value(place: Any, volume: Any, d: Any, tile: Any, out: Any) -> Any:
            read = x[place, volume, d + z, tile, k]
            return te.sum(read * weight[place, z, k, out], axis=[z, k])

        return te.compute(kind.products, value, name="matmul")

    return compute
