"""Tensors of static shape while a Relax function is built, with numpy's operators.

A tensor whose values are known is a numpy array until an operator of Relax needs it, so that
arithmetic on shapes never reaches the module. Whatever is made here is of the dtype that its
operands have: nothing is promoted, numbers take the dtype of the tensor beside them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Self

import ml_dtypes
import numpy as np

from costlib.tvm_compat import relax, te, tirx, tvm
from costlib.workloads.folding import static_type

op = relax.op

MOST_ELEMENTS = 1 << 31
"""Tensors with more are refused: a file of a few bytes can ask for any size."""

SMALL_FLOATS = ("float16", "bfloat16")

_SHARED_BYTES = 1 << 20
"""Arrays with more are in memory once, as the constant that is made of them."""


class Tensor:
    """A tensor: an expression of Relax, or an array whose values are known.

    Attributes
    ----------
    array
        Its values, where they are known; otherwise None.
    shape, dtype
        Static extents, and the element type as Relax spells it.
    """

    def __init__(self, expr: Any = None, array: np.ndarray | None = None) -> None:
        self._expr = expr
        self.array = array
        if array is not None:
            self.shape, self.dtype = tuple(array.shape), str(array.dtype)
            return
        shape, dtype = static_type(expr)
        if shape is None:
            raise ValueError("its shape depends on data")
        self.shape, self.dtype = shape, dtype

    @property
    def expr(self) -> Any:
        """The expression that stands for it in Relax."""
        if self._expr is None:
            assert self.array is not None
            values = np.ascontiguousarray(self.array).reshape(self.shape)
            copy = tvm.runtime.tensor(values)
            self._expr = relax.const(copy)
            if values.nbytes > _SHARED_BYTES and values.dtype.kind in "iuf":
                self.array = np.from_dlpack(copy)
        return self._expr

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def is_float(self) -> bool:
        """Whether its elements are floating-point numbers."""
        return "float" in self.dtype

    @property
    def is_unsigned(self) -> bool:
        """Whether its elements are natural numbers."""
        return self.dtype.startswith("uint")

    def axis(self, axis: int) -> int:
        """Count an axis from the front."""
        return axis % max(self.ndim, 1)

    def axes(self, axes: Sequence[int]) -> list[int]:
        """Count axes from the front, in order."""
        return sorted({self.axis(int(axis)) for axis in axes})

    def cast(self, dtype: str) -> Tensor:
        """Convert to another dtype as C does."""
        if dtype == self.dtype:
            return self
        if self.array is not None:
            return constant(self.array.astype(numpy_dtype(dtype)))
        return emitted(op.astype(self.expr, dtype))

    def reshape(self, shape: Sequence[int]) -> Tensor:
        """Give the elements another shape; one extent may be -1."""
        shape = [int(n) for n in shape]
        if -1 in shape:
            rest = -math.prod(shape)
            shape[shape.index(-1)] = self.size // rest if rest else 0
        if self.array is not None:
            return constant(self.array.reshape(shape))
        return self if tuple(shape) == self.shape else emitted(op.reshape(self.expr, shape))

    def expand(self, *axes: int) -> Tensor:
        """Insert axes of extent 1 that are at these places of the result."""
        rank = self.ndim + len(axes)
        places = {axis % rank for axis in axes}
        rest = iter(self.shape)
        return self.reshape([1 if i in places else next(rest) for i in range(rank)])

    def transpose(self, axes: Sequence[int]) -> Tensor:
        """Permute the axes."""
        if list(axes) == list(range(self.ndim)):
            return self
        if self.array is not None:
            return constant(self.array.transpose(axes))
        return emitted(op.permute_dims(self.expr, list(axes)))

    def swap(self) -> Tensor:
        """Transpose the last two axes."""
        order = list(range(self.ndim))
        return self.transpose([*order[:-2], order[-1], order[-2]])

    def broadcast(self, shape: Sequence[int]) -> Tensor:
        """Repeat along axes of extent 1, and new ones in front."""
        shape = tuple(int(n) for n in shape)
        if shape == self.shape:
            return self
        return emitted(op.broadcast_to(self.expr, shape))

    def slice(self, axis: int, begin: int, end: int) -> Tensor:
        """Take the places from ``begin`` to ``end`` of an axis."""
        axis = self.axis(axis)
        if (begin, end) == (0, self.shape[axis]):
            return self
        if self.array is not None:
            return constant(self.array[(slice(None),) * axis + (slice(begin, end),)])
        return emitted(op.strided_slice(self.expr, [axis], [begin], [end]))

    def split(self, axis: int, sizes: Sequence[int]) -> list[Tensor]:
        """Cut an axis into pieces."""
        ends = np.cumsum(sizes).tolist()
        return [self.slice(axis, end - n, end) for end, n in zip(ends, sizes, strict=True)]

    def sum(self, axes: Sequence[int], keepdims: bool = True) -> Tensor:
        """Add up along axes."""
        return emitted(op.sum(self.expr, list(axes), keepdims)) if axes else self

    def mean(self, axes: Sequence[int], keepdims: bool = True) -> Tensor:
        """Average over axes."""
        count = math.prod(self.shape[axis] for axis in axes)
        return self.sum(axes, keepdims) * (1.0 / count) if count else self.sum(axes, keepdims)

    def __add__(self, other: Any) -> Tensor:
        return _binary(op.add, self, other)

    def __sub__(self, other: Any) -> Tensor:
        return _binary(op.subtract, self, other)

    def __mul__(self, other: Any) -> Tensor:
        return _binary(op.multiply, self, other)

    def __truediv__(self, other: Any) -> Tensor:
        return _binary(op.divide, self, other)

    def __radd__(self, other: Any) -> Tensor:
        return _binary(op.add, self, other)

    def __rsub__(self, other: Any) -> Tensor:
        return _binary(op.subtract, self.like(other), self)

    def __rmul__(self, other: Any) -> Tensor:
        return _binary(op.multiply, self, other)

    def __rtruediv__(self, other: Any) -> Tensor:
        return _binary(op.divide, self.like(other), self)

    def __neg__(self) -> Tensor:
        return emitted(op.negative(self.expr))

    def __lt__(self, other: Any) -> Tensor:
        return _binary(op.less, self, other)

    def __le__(self, other: Any) -> Tensor:
        return _binary(op.less_equal, self, other)

    def __gt__(self, other: Any) -> Tensor:
        return _binary(op.greater, self, other)

    def __ge__(self, other: Any) -> Tensor:
        return _binary(op.greater_equal, self, other)

    def equals(self, other: Any) -> Tensor:
        """Compare element by element."""
        return _binary(op.equal, self, other)

    def like(self, value: Any) -> Tensor:
        """Return a tensor as it is, and a number as a scalar of this tensor's dtype."""
        if isinstance(value, Tensor):
            return value
        return constant(np.asarray(value, numpy_dtype(self.dtype)))

    @classmethod
    def of_shape(cls, shape: Sequence[int], value: Any, dtype: str) -> Self:
        """Make a tensor of equal elements, which takes no memory here."""
        scalar = constant(np.asarray(value, numpy_dtype(dtype)))
        return cls(relax.BlockBuilder.current().emit(op.full(tuple(shape), scalar.expr, dtype)))


def constant(values: Any) -> Tensor:
    """Return a tensor of known values, of the dtype that numpy gives them."""
    return Tensor(array=np.asarray(values))


def emitted(expr: Any) -> Tensor:
    """Bind an expression of Relax to a variable of the function being built."""
    return Tensor(relax.BlockBuilder.current().emit(expr))


def computed(
    name: str,
    shape: Sequence[int],
    element: Callable[..., Any],
    *inputs: Tensor,
) -> Tensor:
    """Compute each element by an expression of TIR.

    ``element`` gets the inputs as tensors of TE, then the indices.
    """
    shape = tuple(int(n) for n in shape)
    builder = relax.BlockBuilder.current()

    def compute(*tensors: Any) -> Any:
        return te.compute(shape, lambda *indices: element(*tensors, *indices), name=name)

    # `emit_te` cannot tell a function of constants alone from one without arguments.
    return Tensor(builder.emit_te(compute, *(x.expr for x in inputs), primfunc_name_hint=name))


def numpy_dtype(dtype: str) -> Any:
    """Return numpy's dtype of that name, those of ml_dtypes included."""
    return np.dtype(getattr(ml_dtypes, dtype)) if hasattr(ml_dtypes, dtype) else np.dtype(dtype)


def _binary(function: Callable[..., Any], one: Tensor, other: Any) -> Tensor:
    other = one.like(other)
    return emitted(function(one.expr, other.expr))


def where(condition: Tensor, one: Any, other: Any) -> Tensor:
    """Choose element by element; one of the two may be a number."""
    one, other = (other.like(one), other) if isinstance(other, Tensor) else (one, one.like(other))
    return emitted(op.where(condition.expr, one.expr, other.expr))


def maximum(x: Tensor, other: Any) -> Tensor:
    """Return the larger elements, and NaN where ``x`` is NaN and the other a number.

    What TVM compiles a maximum to returns its second operand if one of the two is NaN.
    """
    return emitted(op.maximum(x.like(other).expr, x.expr))


def minimum(x: Tensor, other: Any) -> Tensor:
    """Return the smaller elements, and NaN where ``x`` is NaN."""
    return emitted(op.minimum(x.like(other).expr, x.expr))


def concatenated(tensors: Sequence[Tensor], axis: int) -> Tensor:
    """Join tensors along an axis."""
    if len(tensors) == 1:
        return tensors[0]
    if all(x.array is not None for x in tensors):
        return constant(np.concatenate([np.asarray(x.array) for x in tensors], axis))
    return emitted(op.concat([x.expr for x in tensors], tensors[0].axis(axis)))


def stacked(tensors: Sequence[Tensor], axis: int) -> Tensor:
    """Join tensors along a new axis."""
    return concatenated([x.expand(axis) for x in tensors], axis)


def in_float32(function: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """Compute a function of half-precision numbers in single precision."""

    def compute(x: Tensor) -> Tensor:
        if x.dtype in SMALL_FLOATS:
            return function(x.cast("float32")).cast(x.dtype)
        return function(x)

    return compute


def unary(function: Callable[..., Any]) -> Callable[[Tensor], Tensor]:
    """Make an operator of Relax one on tensors, in at least single precision."""
    return in_float32(lambda x: emitted(function(x.expr)))


exp, log, sqrt, tanh, erf, sigmoid = (
    unary(f) for f in (op.exp, op.log, op.sqrt, op.tanh, op.erf, op.sigmoid)
)


def absolute(x: Tensor) -> Tensor:
    """Return the absolute values."""
    return x if x.is_unsigned else emitted(op.abs(x.expr))


def matmul(one: Tensor, other: Tensor) -> Tensor:
    """Multiply matrices as numpy does; half precision is added up in single precision."""
    if one.dtype in SMALL_FLOATS:
        return emitted(op.matmul(one.expr, other.expr, out_dtype="float32")).cast(one.dtype)
    return emitted(op.matmul(one.expr, other.expr, out_dtype=one.dtype))


def softmax(x: Tensor, axis: int) -> Tensor:
    """Normalise exponentials along an axis, in at least single precision."""
    return in_float32(lambda y: emitted(op.nn.softmax(y.expr, axis)))(x)


def select(condition: Any, one: Any, other: Any) -> Any:
    """Choose between two expressions of TIR, both of which are evaluated."""
    return tirx.Select(condition, one, other)
