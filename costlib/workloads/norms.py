"""Layer norms and RMS norms that a model spells out as means, squares and roots, as one operator.

ONNX has operators for them since opsets 17 and 23 only, and many a PyTorch model writes its own. As
one operator they are one kernel; spelled out they are two to five, each of which reads the tensor.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from costlib.tvm_compat import relax, tvm
from costlib.workloads.folding import constant_of, count_uses, is_call, rewritten, static_type

_DTYPES = ("float32", "float64")
"""In fewer digits the operator, which rounds elsewhere, would compute something else."""


def with_norms(mod: Any) -> Any:
    """Put ``nn.layer_norm`` and ``nn.rms_norm`` in the place of norms that are spelled out.

    The bindings of the Relax module are canonical, constants folded.
    """
    return rewritten(mod, lambda function: _Replacer(_Finder(function).found()))


@dataclass(frozen=True)
class _Norm:
    """``x / sqrt(mean of x * x + epsilon) * gamma + beta``; ``last`` is its last call.

    With ``is_centred`` the mean of ``x`` is taken from it first.
    """

    x: Any
    is_centred: bool
    axes: tuple[int, ...]
    epsilon: float
    last: Any
    parameters: Mapping[str, np.ndarray] = field(default_factory=dict)

    @property
    def taken(self) -> tuple[str, ...]:
        """The parameters of its operator."""
        return ("gamma", "beta") if self.is_centred else ("gamma",)

    def call(self, x: Any) -> Any:
        """Return the operator that computes it."""
        shape, dtype = static_type(self.x)
        assert shape is not None, "only tensors of static shape are looked at"
        extents = [shape[axis] for axis in self.axes]
        filled = {"gamma": np.ones(extents, dtype), "beta": np.zeros(extents, dtype)}
        values = [constant_of({**filled, **self.parameters}[name]) for name in self.taken]
        operator = relax.op.nn.layer_norm if self.is_centred else relax.op.nn.rms_norm
        return operator(x, *values, axes=list(self.axes), epsilon=self.epsilon)


class _Finder:
    """Finds the norms of a function all of whose parts are read by nothing else."""

    def __init__(self, function: Any) -> None:
        self._uses: Counter[Any] = count_uses(function)
        self._calls: dict[Any, Any] = {}
        self._readers: dict[Any, list[Any]] = {}
        for block in function.body.blocks:
            for binding in block.bindings:
                if isinstance(binding.value, relax.Call):
                    self._calls[binding.var] = binding.value
                    for argument in set(binding.value.args):
                        self._readers.setdefault(argument, []).append(binding.var)

    def found(self) -> dict[Any, _Norm]:
        """Return each by its last call."""
        found = ((variable, self._standardised(call)) for variable, call in self._calls.items())
        norms = [self._with_affine(variable, norm) for variable, norm in found if norm is not None]
        return {norm.last: norm for norm in norms}

    def _standardised(self, call: Any) -> _Norm | None:
        for x, square in self._quotients(call):
            mean_square, epsilon = self._shifted(square)
            if epsilon is None or static_type(x)[1] not in _DTYPES:
                continue
            squared, axes = self._averaged(mean_square)
            if not axes or not self._is_square(squared, x):
                continue
            centred = self._inner(x, "subtract", uses=3)
            if centred is not None:
                inner, mean = centred.args
                averaged, across = self._averaged(mean)
                if across == axes and inner.same_as(averaged):
                    return _Norm(inner, True, axes, epsilon, call)
            if axes[-1] - len(axes) + 1 == axes[0] and axes[-1] == int(x.ty.ndim) - 1:
                return _Norm(x, False, axes, epsilon, call)  # TVM has no other one.
        return None

    def _quotients(self, call: Any) -> Iterator[tuple[Any, Any]]:
        """Take ``a / sqrt(b)`` apart, however it is written."""
        if is_call(call, "relax.divide"):
            if (root := self._inner(call.args[1], "sqrt")) is not None:
                yield call.args[0], root.args[0]
        elif is_call(call, "relax.multiply"):
            for one, other in (call.args, list(call.args)[::-1]):
                if (root := self._inner(other, "rsqrt")) is not None:
                    yield one, root.args[0]
                inverse = self._inner(other, "divide")
                if inverse is None or _number(inverse.args[0]) != 1:
                    continue
                if (root := self._inner(inverse.args[1], "sqrt")) is not None:
                    yield one, root.args[0]

    def _shifted(self, total: Any) -> tuple[Any, float | None]:
        """Return what a number is added to, on either side, and the number."""
        call = self._inner(total, "add")
        for one, other in () if call is None else (call.args, list(call.args)[::-1]):
            if (number := _number(other)) is not None:
                return one, number
        return None, None

    def _averaged(self, mean: Any) -> tuple[Any, tuple[int, ...]]:
        """Return what a mean is of, and over which axes, which are kept as 1."""
        call = self._inner(mean, "mean")
        call = self._mean_of_sum(mean) if call is None else call
        shape = None if call is None or not call.attrs.keepdims else static_type(call.args[0])[0]
        if shape is None:
            return None, ()
        rank = len(shape)
        axes = range(rank) if call.attrs.axis is None else (int(a) % rank for a in call.attrs.axis)
        return call.args[0], tuple(sorted(axes))

    def _mean_of_sum(self, mean: Any) -> Any:
        """Return the sum of which a mean is the share, if it is one."""
        for operator in ("multiply", "divide"):
            scaled = self._inner(mean, operator)
            if scaled is None:
                continue
            total, share = self._inner(scaled.args[0], "sum"), _number(scaled.args[1])
            if total is None or share is None:
                continue
            (before, _), (after, _) = static_type(total.args[0]), static_type(scaled)
            if before is None or after is None:
                continue
            count = np.prod(before) / np.prod(after)
            if np.isclose(share, count if operator == "divide" else 1 / count, rtol=1e-6):
                return total
        return None

    def _is_square(self, expr: Any, centred: Any) -> bool:
        square = self._inner(expr, "multiply")
        return square is not None and all(a.same_as(centred) for a in square.args)

    def _with_affine(self, variable: Any, norm: _Norm) -> _Norm:
        """Take in the constants that it is multiplied with, and that are added to it."""
        for name, operator in (("gamma", "multiply"), ("beta", "add")):
            readers = self._readers.get(variable, [])
            if len(readers) != 1 or self._uses[variable] != 1 or name not in norm.taken:
                break
            call = self._calls[readers[0]]
            values = self._parameters(call, variable, norm) if _is(call, operator) else None
            if values is not None:
                variable = readers[0]
                norm = replace(norm, last=call, parameters={**norm.parameters, name: values})
        return norm

    def _parameters(self, call: Any, variable: Any, norm: _Norm) -> np.ndarray | None:
        """Return the constant of a call as values along the axes that are averaged over."""
        shape, _ = static_type(norm.x)
        other = next((a for a in call.args if not a.same_as(variable)), None)
        if shape is None or not isinstance(other, tvm.ir.GenericConst):
            return None
        if static_type(call)[0] != shape:
            return None
        values = np.asarray(other.value.numpy())
        values = values.reshape((1,) * (len(shape) - values.ndim) + values.shape)
        if any(n > 1 and axis not in norm.axes for axis, n in enumerate(values.shape)):
            return None
        extents = [shape[axis] for axis in norm.axes]
        kept = [values.shape[axis] for axis in norm.axes]
        return np.broadcast_to(values.reshape(kept), extents)

    def _inner(self, expr: Any, operator: str, uses: int = 1) -> Any:
        """Return the call that a variable is, if it is of that kind and read so often alone."""
        call = self._calls.get(expr)
        return call if _is(call, operator) and self._uses[expr] == uses else None


def _is(call: Any, operator: str) -> bool:
    return is_call(call, f"relax.{operator}")


def _number(expr: Any) -> float | None:
    """Return the value of a constant of one element."""
    if isinstance(expr, tvm.ir.GenericConst):
        values = np.asarray(expr.value.numpy())
        return float(values.item()) if values.size == 1 else None
    return None


@relax.expr_functor.mutator
class _Replacer(relax.PyExprMutator):  # type: ignore[misc]
    def __init__(self, norms: dict[Any, _Norm]) -> None:
        super().__init__()
        self.norms = norms

    def visit_call_(self, call: Any) -> Any:
        norm = self.norms.get(call)
        if norm is None:
            return self.visit_expr_post_order(call)
        return norm.call(self.visit_expr(norm.x))
