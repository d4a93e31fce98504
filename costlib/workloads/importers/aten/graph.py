"""Walk a decomposed ``torch.export`` program and build the Relax function that computes it.

What depends on constants alone is computed by PyTorch itself, so that it keeps its type and rank.
Each operator's result is compared with the dtype and shape that PyTorch recorded for it.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import fx
from torch.fx.node import map_aggregate, map_arg

from costlib.errors import UnsupportedModelError, quoted
from costlib.tvm_compat import relax
from costlib.workloads.folding import constant_of, static_type
from costlib.workloads.importers.aten.advice import INSTEAD, RANDOM
from costlib.workloads.importers.aten.recorded import (
    OF_COMPLEX,
    has_no_elements,
    is_complex,
    is_expression,
    is_foldable,
    real_part_of,
)
from costlib.workloads.torch_arrays import to_numpy

Converter = Callable[..., Any]

_NOTHING = {
    "aten._assert_async",
    "aten._assert_scalar",
    "aten._assert_tensor_metadata",
    "aten._linalg_check_errors",
    "aten.sym_constrain_range",
    "aten.sym_constrain_range_for_size",
}
"""Operators that check and compute nothing."""


_EXPANDS_WEIGHTS = "quantized_decomposed.dequantize"
"""What is not computed here though it depends on constants alone."""

_OF_NUMBERS = {
    *(getattr(operator, name) for name in ("add", "sub", "mul", "floordiv", "mod", "neg", "pow")),
    *(getattr(operator, name) for name in ("eq", "ne", "lt", "le", "gt", "ge", "and_", "or_")),
    *(getattr(torch, f"sym_{name}") for name in ("float", "int", "ite", "max", "min", "not")),
}
"""What Python computes of sizes that a program reads from tensors, here from constants."""


def registering(table: dict[str, Converter]) -> Callable[..., Callable[[Converter], Converter]]:
    """Return a decorator that enters a converter into a table, under ATen's names."""

    def converts(*names: str) -> Callable[[Converter], Converter]:
        def enter(converter: Converter) -> Converter:
            table.update({f"aten.{name}": converter for name in names})
            return converter

        return enter

    return converts


class Graph:
    """A Relax function while it is built from a program.

    Parameters
    ----------
    builder
        Where its operators go.
    converters
        By the name of an operator, without its overload.

    Attributes
    ----------
    out
        What PyTorch recorded for the operator that is being converted: a tensor, or several.
    """

    def __init__(self, builder: Any, converters: Mapping[str, Converter]) -> None:
        self._builder = builder
        self._converters = converters
        self._constants: dict[int, tuple[Any, Any]] = {}
        self.out: Any = None
        self._node: fx.Node | None = None

    def reads(self, number: int) -> bool:
        """Whether the program reads that result of the operator that is being converted."""
        assert self._node is not None
        return any(
            user.args[1] == number or user.target is not operator.getitem
            for user in self._node.users
        )

    def run(self, module: fx.GraphModule, inputs: Sequence[Any]) -> Any:
        """Return what a program's graph returns for these inputs.

        A value is a Relax variable, a ``torch.Tensor`` that is constant, a number, ``None``, or a
        nest of these.
        """
        values: dict[fx.Node, Any] = {}
        given = iter(inputs)
        for node in module.graph.nodes:
            if node.op == "placeholder":
                values[node] = next(given)
            elif node.op == "get_attr":
                values[node] = _attribute(module, node.target)
            elif node.op == "output":
                return map_arg(node.args[0], values.__getitem__)
            else:
                values[node] = self._called(module, node, values)
        raise AssertionError("a graph ends with its output")

    def _called(self, module: fx.GraphModule, node: fx.Node, values: dict[fx.Node, Any]) -> Any:
        args = map_arg(node.args, values.__getitem__)
        kwargs = map_arg(node.kwargs, values.__getitem__)
        if node.target is operator.getitem:
            return args[0][args[1]]
        if isinstance(node.target, torch._ops.HigherOrderOperator):
            return self._higher_order(str(node.target), args)
        if node.target in _OF_NUMBERS and is_foldable(args, kwargs, None):
            return node.target(*args, **kwargs)
        if not isinstance(node.target, torch._ops.OpOverload):
            raise UnsupportedModelError(f"it calls {node.target}, which is no operator of PyTorch")
        name = operator_name(node.target)
        if name in _NOTHING:
            return None
        if torch.Tag.nondeterministic_seeded in node.target.tags:
            raise UnsupportedModelError(f"{name} is random: {RANDOM}", [name])
        out = node.meta["val"]
        if is_foldable(args, kwargs, out) and not name.startswith(_EXPANDS_WEIGHTS):
            with torch.no_grad():
                return node.target(*args, **kwargs)
        if has_no_elements(out) and not out.shape[0]:  # TVM reads back no other such constant.
            return torch.zeros(tuple(out.shape), dtype=out.dtype)
        if is_complex(node):
            name += OF_COMPLEX if name + OF_COMPLEX in self._converters else ""
        if name not in self._converters:
            raise self._unsupported(module)
        self.out, self._node = out, node
        try:
            result = self._converters[name](self, *_in_order(node.target, args, kwargs))
        except (UnsupportedModelError, MemoryError):
            raise
        except Exception as error:
            reason = quoted(error)
            raise UnsupportedModelError(f"{name} cannot be taken: {reason}", [name]) from None
        result = map_aggregate(result, lambda v: self.emit(v) if is_expression(v) else v)
        _check(name, result, out)
        return result

    def _unsupported(self, module: fx.GraphModule) -> UnsupportedModelError:
        """Name all operators of a graph that there is no converter for."""
        names = {
            operator_name(node.target)
            for node in module.graph.nodes
            if isinstance(node.target, torch._ops.OpOverload)
        }
        missing = sorted(names - self._converters.keys() - _NOTHING)
        advice = [f"{name} ({INSTEAD[name]})" if name in INSTEAD else name for name in missing]
        return UnsupportedModelError(f"not supported: {', '.join(advice)}", missing)

    def _higher_order(self, name: str, args: Sequence[Any]) -> Any:
        if name in ("wrap_with_set_grad_enabled", "wrap_with_autocast"):
            body = next(i for i, arg in enumerate(args) if isinstance(arg, fx.GraphModule))
            return self.run(args[body], args[body + 1 :])
        if name == "with_effects" and operator_name(args[1]) in _NOTHING:
            return None, None
        raise UnsupportedModelError(
            f"it uses '{name}': control flow that depends on data is not supported"
        )

    def emit(self, expression: Any) -> Any:
        """Bind an expression to a variable."""
        return self._builder.emit(expression)

    def emit_te(self, compute: Callable[..., Any], *args: Any, name: str) -> Any:
        """Bind what a tensor expression computes to a variable."""
        return self._builder.emit_te(compute, *args, primfunc_name_hint=name)

    def tensor(self, value: Any, dtype: str | None = None) -> Any:
        """Return a value as a Relax expression, cast to a dtype if one is given."""
        if isinstance(value, (bool, int, float)):
            return scalar(value, dtype or dtype_of(self.out))
        if isinstance(value, torch.Tensor):
            value = self._constant(value)
        return value if dtype is None else self.cast(value, dtype)

    def cast(self, x: Any, dtype: str) -> Any:
        """Cast a tensor, which is left alone if it has the dtype; to bool as PyTorch does."""
        have = static_type(x)[1]
        if have == dtype:
            return x
        if dtype == "bool":
            return self.emit(relax.op.not_equal(x, scalar(0, have)))
        return self.emit(relax.op.astype(x, dtype))

    def _constant(self, value: torch.Tensor) -> Any:
        if id(value) not in self._constants:
            self._constants[id(value)] = value, constant(value)
        return self._constants[id(value)][1]


def operator_name(operator: Any) -> str:
    """Return an operator's name without its overload, e.g. ``aten.add``."""
    return str(operator).rpartition(".")[0]


def constant(value: torch.Tensor) -> Any:
    """Turn a tensor into a Relax constant of the same dtype and rank."""
    tensor_dtype(value.dtype)
    if not value.numel() and value.shape[0]:
        shape = list(value.shape)
        raise UnsupportedModelError(f"TVM keeps no tensor of shape {shape}, without elements")
    return constant_of(to_numpy(value))


def scalar(value: float, dtype: str) -> Any:
    """Return a Relax constant without dimensions."""
    exact = torch.float64 if isinstance(value, float) else None
    return constant(torch.tensor(value, dtype=exact).to(getattr(torch, dtype)))


def tensor_dtype(dtype: torch.dtype) -> str:
    """Name a dtype as TVM does; complex numbers and the like are unsupported."""
    name = str(dtype).removeprefix("torch.")
    if dtype.is_complex or name not in _DTYPES:
        raise UnsupportedModelError(f"tensors of {name} are not supported")
    return name


_DTYPES = {
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "bfloat16", "float32", "float64"),
}


def dtype_of(value: Any) -> str:
    """Name the dtype that PyTorch recorded."""
    return tensor_dtype(value.dtype)


def shape_of(value: Any) -> tuple[int, ...]:
    """Return the shape of what PyTorch recorded, or of a Relax tensor."""
    if isinstance(value, torch.Tensor):
        return tuple(value.shape)
    shape = static_type(value)[0]
    assert shape is not None
    return shape


def _attribute(module: Any, path: str) -> Any:
    for name in path.split("."):
        module = getattr(module, name)
    return module


def _in_order(target: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
    """Return all arguments in the order of the operator's schema, defaults filled in."""
    bound = []
    for i, argument in enumerate(target._schema.arguments):
        if i < len(args):
            bound.append(args[i])
        else:
            bound.append(kwargs.get(argument.name, argument.default_value))
    return bound


def _check(name: str, result: Any, recorded: Any) -> None:
    """Raise unless a result has the dtypes and shapes that PyTorch recorded."""
    if isinstance(recorded, torch.Tensor) and recorded.dtype.is_complex:
        for part in result:
            _check(name, part, real_part_of(recorded))
    elif isinstance(recorded, torch.Tensor):
        ours = (shape_of(result), static_type(result)[1])
        theirs = (tuple(recorded.shape), dtype_of(recorded))
        if ours != theirs:
            raise UnsupportedModelError(
                f"{name} cannot be taken: TVM makes {_text(*ours)} where PyTorch makes "
                f"{_text(*theirs)}",
                [name],
            )
    elif isinstance(recorded, (tuple, list)):
        for one, other in zip(result, recorded, strict=True):
            if one is not None:
                _check(name, one, other)


def _text(shape: tuple[int, ...], dtype: str) -> str:
    return f"{dtype}[{', '.join(map(str, shape))}]"


def elements(shape: Sequence[int]) -> int:
    """Count the elements of a tensor."""
    return math.prod(shape)


def each(values: Sequence[int], rank: int) -> list[int]:
    """Repeat the only value for each dimension."""
    return list(values) * rank if len(values) == 1 else list(values)
