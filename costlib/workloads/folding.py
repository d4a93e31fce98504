"""Fold constants and batch norms of a Relax module in numpy.

TVM folds constants by compiling a kernel for each and running it untuned, which takes
minutes for the weights of a large network. What exported networks do to their weights is
little (transpose, reshape, cast, scale), so it is done here, before TVM's own folding
finds anything left to do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from costlib.tvm_compat import relax, tvm

_FOLDABLE_DTYPES = {
    *("bool", "int8", "uint8", "int32", "int64", "bfloat16", "float16", "float32", "float64")
}
_FLOATS = {"float16", "float32", "float64"}

_CONVOLUTIONS = {
    "relax.nn.conv1d": "OIW",
    "relax.nn.conv2d": "OIHW",
    "relax.nn.conv3d": "OIDHW",
    "relax.nn.conv1d_transpose": "IOW",
    "relax.nn.conv2d_transpose": "IOHW",
    "relax.nn.conv3d_transpose": "IODHW",
}
"""The convolutions a batch norm folds into, with the kernel layout that exporters use."""

Fold = Callable[[Sequence[np.ndarray], Any, tuple[int, ...], str], np.ndarray]


def _reshape(arrays: Sequence[np.ndarray], _: Any, shape: tuple[int, ...], __: str) -> np.ndarray:
    return arrays[0].reshape(shape)


def _elementwise(function: Callable[..., Any]) -> Fold:
    return lambda arrays, _attrs, _shape, dtype: np.asarray(function(*arrays), numpy_dtype(dtype))


def _layout_transform(
    arrays: Sequence[np.ndarray], attrs: Any, shape: tuple[int, ...], _: str
) -> np.ndarray:
    """Cut axes into blocks, or join them: to (i // b, i % b), or to i * b + j."""
    index_map = attrs.index_map
    sources = {variable: axis for axis, variable in enumerate(index_map.initial_indices)}
    (array,) = arrays
    grid = np.indices(array.shape, sparse=True)
    target = tuple(
        np.broadcast_to(_evaluated(index, sources, grid), array.shape)
        for index in index_map.final_indices
    )
    result = np.zeros(shape, array.dtype)
    result[target] = array
    return result


def _evaluated(index: Any, sources: dict[Any, int], grid: Sequence[np.ndarray]) -> Any:
    """Compute an index of the target for all elements of the source."""
    if isinstance(index, tvm.tirx.IntImm):
        return int(index)
    if isinstance(index, tvm.tirx.Var):
        return grid[sources[index]]
    one, other = (_evaluated(part, sources, grid) for part in (index.a, index.b))
    return _ARITHMETIC[type(index).__name__](one, other)


_ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "Add": np.add,
    "Mul": np.multiply,
    "FloorDiv": np.floor_divide,
    "FloorMod": np.remainder,
}


def numpy_dtype(dtype: str) -> np.dtype[Any]:
    """Return numpy's dtype of a name, which knows bfloat16 from elsewhere."""
    return np.dtype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)


_RESHAPES = ("relax.reshape", "relax.expand_dims", "relax.squeeze")
_VIEWS = (*_RESHAPES, "relax.broadcast_to")

_FOLDS: dict[str, Fold] = {
    "relax.layout_transform": _layout_transform,
    "relax.permute_dims": lambda arrays, attrs, _shape, _dtype: arrays[0].transpose(
        None if attrs.axes is None else [int(axis) for axis in attrs.axes]
    ),
    **dict.fromkeys((*_RESHAPES, "relax.flatten"), _reshape),
    "relax.broadcast_to": lambda arrays, _attrs, shape, _dtype: np.broadcast_to(arrays[0], shape),
    "relax.astype": lambda arrays, _attrs, _shape, dtype: arrays[0].astype(numpy_dtype(dtype)),
    "relax.add": _elementwise(np.add),
    "relax.subtract": _elementwise(np.subtract),
    "relax.multiply": _elementwise(np.multiply),
    "relax.divide": _elementwise(np.divide),
}


def fold_constants(mod: Any) -> Any:
    """Fold batch norms and operations on constants in every function of a Relax module.

    A batch norm with constant parameters becomes a scale and a shift; if it follows a
    convolution that nothing else uses, the scale goes into the weights and the shift into
    the bias. Reshapes and broadcasts to the shape that a tensor already has disappear, as do
    permutations that leave each axis where it is and multiplications with one.
    Look-ups that would read out of bounds for a wrong index are clipped instead; squares and
    cubes become multiplications. What is no longer used is still in the module returned.
    """
    return rewritten(mod, lambda function: _Folder(count_uses(function)))


def rewritten(mod: Any, rewriter: Callable[[Any], Any]) -> Any:
    """Return a copy of a module whose Relax functions went through a mutator made for each."""
    result = tvm.IRModule(mod.functions, attrs=mod.attrs)
    for name, function in mod.functions.items():
        if isinstance(function, relax.Function):
            result.update_func(name, rewriter(function).visit_expr(function))
    return result


@relax.expr_functor.mutator
class _Folder(relax.PyExprMutator):  # type: ignore[misc]
    def __init__(self, uses: Counter[Any]) -> None:
        super().__init__()
        self.uses = uses

    def visit_call_(self, call: Any) -> Any:
        shape, dtype = static_type(call)
        call = self.visit_expr_post_order(call)
        name = getattr(call.op, "name", "")
        if shape is None:
            return call
        if name in _VIEWS and static_type(call.args[0]) == (
            shape,
            dtype,
        ):
            return call.args[0]
        if name == "relax.permute_dims" and permutation(call) == sorted(permutation(call)):
            return call.args[0]
        if name == "relax.multiply" and (other := self._times_one(call)) is not None:
            return other
        if name == "relax.take" and call.attrs.mode == "fast":
            return relax.op.take(*call.args, axis=call.attrs.axis, mode="clip")
        if name == "relax.power":
            return self._power(call)
        if name not in _FOLDS or dtype not in _FOLDABLE_DTYPES:
            return call
        operands = [arg for arg in call.args if not isinstance(arg, relax.ShapeExpr)]
        arrays = [array for array in map(self._constant, operands) if array is not None]
        if name == "relax.divide" and dtype not in _FLOATS:
            return call
        if len(arrays) < len(operands) or getattr(call.attrs, "pad_value", None) is not None:
            return call
        return constant_of(_FOLDS[name](arrays, call.attrs, shape, dtype))

    def _times_one(self, call: Any) -> Any | None:
        """Return what is multiplied with a number that is one."""
        for one, other in (call.args, list(call.args)[::-1]):
            value = self._constant(one)
            if value is not None and value.ndim == 0 and value == 1:
                return other
        return None

    def _power(self, call: Any) -> Any:
        """Multiply where the exponent is a small integer, as in the cube of a GELU."""
        base, exponent = call.args
        value = self._constant(exponent)
        if value is None or value.ndim > 0 or value not in (2, 3):
            return call
        square = relax.op.multiply(base, base)
        return square if value == 2 else relax.op.multiply(self.builder_.emit(square), base)

    def visit_tuple_getitem_(self, item: Any) -> Any:
        item = self.visit_expr_post_order(item)
        norm = self._definition(item.tuple_value)
        if item.index == 0 and is_call(norm, "relax.nn.batch_norm"):
            return self._fold_batch_norm(item, norm)
        return item

    def _fold_batch_norm(self, item: Any, norm: Any) -> Any:
        data = norm.args[0]
        shape, dtype = static_type(data)
        parameters = [self._constant(arg) for arg in norm.args[1:5]]
        if shape is None or any(array is None for array in parameters):
            return item
        gamma, beta, mean, variance = (np.asarray(array, "float64") for array in parameters)
        scale = gamma / np.sqrt(variance + norm.attrs.epsilon)
        shift = beta - mean * scale
        axis = int(norm.attrs.axis) % len(shape)
        along_axis = [-1 if i == axis else 1 for i in range(len(shape))]

        def channel(values: np.ndarray) -> Any:
            return constant_of(values.astype(numpy_dtype(dtype)).reshape(along_axis))

        conv, bias = self._convolution(data)
        weight = None if conv is None else self._constant(conv.args[1])
        if weight is None or axis != 1:
            scaled = self.builder_.emit(relax.op.multiply(data, channel(scale)))
            return relax.op.add(scaled, channel(shift))
        if bias is not None:
            shift = shift + bias.astype("float64").reshape(-1) * scale
        along_output = [1] * weight.ndim
        along_output[str(conv.attrs.kernel_layout).index("O")] = -1
        folded = (weight * scale.reshape(along_output)).astype(numpy_dtype(dtype))
        scaled = relax.Call(conv.op, [conv.args[0], constant_of(folded)], conv.attrs)
        return relax.op.add(self.builder_.emit(scaled), channel(shift))

    def _convolution(self, data: Any) -> tuple[Any, np.ndarray | None]:
        """Take ``data`` apart into a convolution and the bias added to it, if it is one."""
        definition = self._definition(data)
        if self.uses[data] > 1:
            return None, None
        if is_call(definition, "relax.add"):
            bias = self._constant(definition.args[1])
            shape = static_type(data)[0]
            if bias is None or shape is None or bias.shape != (1, shape[1], *[1] * len(shape[2:])):
                return None, None
            return self._convolution(definition.args[0])[0], bias
        layout = _CONVOLUTIONS.get(getattr(getattr(definition, "op", None), "name", ""))
        if layout is None or str(definition.attrs.kernel_layout) != layout:
            return None, None
        is_grouped = layout[0] == "I" and definition.attrs.groups > 1
        return None if is_grouped else definition, None

    def _definition(self, expr: Any) -> Any:
        while isinstance(expr, relax.Var):
            bound = self.lookup_binding(expr)
            if bound is None:
                return expr
            expr = bound
        return expr

    def _constant(self, expr: Any) -> np.ndarray | None:
        expr = self._definition(expr)
        if isinstance(expr, tvm.ir.GenericConst) and str(expr.value.dtype) in _FOLDABLE_DTYPES:
            return np.asarray(expr.value.numpy())
        return None


def static_type(expr: Any) -> tuple[tuple[int, ...] | None, str]:
    """Return (shape, dtype) of a tensor; the shape is None if it is not static."""
    kind = expr.ty
    shape = getattr(getattr(kind, "shape", None), "values", None)
    if shape is None or not all(isinstance(n, tvm.tirx.IntImm) for n in shape):
        return None, str(getattr(kind, "dtype", ""))
    return tuple(int(n) for n in shape), str(kind.dtype)


_QUANTISED_FROM = ("float32", "int32")


def coarsest_dtype(mod: Any) -> str:
    """Return the dtype with the fewest digits that a Relax module rounds to: int8, say."""
    found = set()

    def visit(node: Any) -> None:
        if not isinstance(node, relax.Call):
            return
        dtype = static_type(node)[1]
        if dtype in ("bfloat16", "float16"):
            found.add(dtype)
        is_rounded = is_call(node, "relax.astype") and dtype in ("int8", "uint8")
        if is_rounded and static_type(node.args[0])[1] in _QUANTISED_FROM:
            found.add("int8")

    for function in mod.functions.values():
        if isinstance(function, relax.Function):
            relax.analysis.post_order_visit(function.body, visit)
    return next((d for d in ("int8", "bfloat16", "float16") if d in found), "float32")


def is_call(expr: Any, name: str) -> bool:
    """Whether an expression calls the operator of that name."""
    return isinstance(expr, relax.Call) and getattr(expr.op, "name", None) == name


def permutation(call: Any) -> list[int]:
    """Return which axis of its argument each axis of a ``permute_dims`` is."""
    rank = int(call.args[0].ty.ndim)
    axes = call.attrs.axes
    return list(range(rank))[::-1] if axes is None else [int(axis) % rank for axis in axes]


def constant_of(array: np.ndarray) -> Any:
    """Return a Relax constant of an array's own dtype and rank, which ``relax.const`` changes."""
    return relax.const(tvm.runtime.tensor(np.array(array, order="C")), str(array.dtype))


def count_uses(function: Any) -> Counter[Any]:
    """Count how many times each variable is used."""
    uses: Counter[Any] = Counter()

    def visit(expr: Any) -> None:
        if isinstance(expr, relax.Call):
            uses.update(expr.args)
        elif isinstance(expr, relax.Tuple):
            uses.update(expr.fields)
        elif isinstance(expr, relax.TupleGetItem):
            uses[expr.tuple_value] += 1
        elif isinstance(expr, relax.SeqExpr):
            uses[expr.body] += 1

    relax.analysis.post_order_visit(function, visit)
    return uses
