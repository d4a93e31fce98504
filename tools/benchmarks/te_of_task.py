"""A task as tensor expressions in JSON, for a TVM of another age to compute the same.

The unscheduled function of a task is a list of blocks, each of which TE could have made: it stores
one element for each point of its spatial axes, or reduces over further axes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from costlib.errors import InputError
from costlib.tvm_compat import nodes, tirx
from costlib.workloads.task import Task, weight_arguments

_BINARY = {
    **{"Add": "+", "Sub": "-", "Mul": "*", "Div": "/", "FloorDiv": "//", "FloorMod": "%"},
    **{"Min": "min", "Max": "max", "LT": "<", "LE": "<=", "GT": ">", "GE": ">=", "EQ": "=="},
    **{"NE": "!=", "And": "and", "Or": "or"},
}
_REDUCED = {"Add": "sum", "Max": "max", "Min": "min"}
_CALLED = {"erf", "exp", "log", "pow", "rsqrt", "sqrt", "tanh", "sigmoid", "fabs", "floor"}

_Numbers = dict[Any, list[Any]]


def tensor_expressions(task: Task) -> dict[str, Any]:
    """Return the inputs, the stages and the outputs of a task.

    A tensor is known by its number: inputs first, then the result of each stage. An expression is a
    list of an operator and its operands.

    Raises
    ------
    InputError
        There is something in it that has no such form.
    """
    function = task.mod["main"]
    blocks = list(_blocks(function.body.block.body))
    written = [block.body.buffer for block in blocks if isinstance(block.body, nodes.BufferStore)]
    inputs = [one for one in function.params if not _is_among(one, written)]
    free = weight_arguments(task.mod)
    tensors = {buffer: number for number, buffer in enumerate([*inputs, *written])}
    return {
        "inputs": [
            {**_type(one), "free": number in free}
            for number, one in enumerate(function.params)
            if _is_among(one, inputs)
        ],
        "stages": [_stage(block, tensors) for block in blocks],
        "outputs": [
            number
            for number, buffer in enumerate(tensors)
            if number >= len(inputs) and _is_among(buffer, function.params)
        ],
    }


def _blocks(node: Any) -> Iterator[Any]:
    if isinstance(node, nodes.For):
        yield from _blocks(node.body)
    elif isinstance(node, nodes.SeqStmt):
        for part in node.seq:
            yield from _blocks(part)
    elif isinstance(node, nodes.SBlockRealize):
        yield node.block
    else:
        raise InputError(f"{type(node).__name__} has no form as a tensor expression")


def _is_among(buffer: Any, others: Iterable[Any]) -> bool:
    return any(buffer.same_as(one) for one in others)


def _type(buffer: Any) -> dict[str, Any]:
    return {"shape": [int(n) for n in buffer.shape], "dtype": str(buffer.dtype)}


def _stage(block: Any, tensors: dict[Any, int]) -> dict[str, Any]:
    axes: _Numbers = {}
    reduced: list[int] = []
    for axis in block.iter_vars:
        is_reduced = int(axis.iter_type) == tirx.IterVar.CommReduce
        if is_reduced:
            axes[axis.var] = ["reduced", len(reduced)]
            reduced.append(int(axis.dom.extent))
        else:
            axes[axis.var] = ["axis", len(axes) - len(reduced)]
    store = block.body
    if not isinstance(store, nodes.BufferStore):
        raise _strange(block, store)
    value, kind = store.value, None
    if block.init is not None:
        kind = _REDUCED.get(type(value).__name__)
        if kind is None or not _is_load(value.a, store.buffer):
            raise _strange(block, value)
        value = value.b
    return {
        "name": str(block.name_hint),
        **_type(store.buffer),
        "reduced": reduced,
        "kind": kind,
        "value": _expression(value, axes, tensors, block),
    }


def _is_load(expr: Any, buffer: Any) -> bool:
    return isinstance(expr, nodes.TensorLoad) and expr.source.same_as(buffer)


def _expression(expr: Any, axes: _Numbers, tensors: dict[Any, int], block: Any) -> list[Any]:
    def of(one: Any) -> list[Any]:
        return _expression(one, axes, tensors, block)

    kind = type(expr).__name__
    if isinstance(expr, nodes.Var) and expr in axes:
        return axes[expr]
    if kind in ("IntImm", "FloatImm"):
        return ["number", expr.value, str(expr.ty.dtype)]
    if isinstance(expr, nodes.TensorLoad):
        return ["load", tensors[expr.source], [of(index) for index in expr.indices]]
    if kind in _BINARY:
        return [_BINARY[kind], of(expr.a), of(expr.b)]
    if kind == "Cast":
        return ["cast", str(expr.ty.dtype), of(expr.value)]
    if kind == "Not":
        return ["not", of(expr.a)]
    if kind == "Select":
        return ["if", of(expr.condition), of(expr.true_value), of(expr.false_value)]
    name = str(expr.op.name).rpartition(".")[2] if isinstance(expr, nodes.Call) else ""
    if name == "if_then_else":
        return ["if", *(of(argument) for argument in expr.args)]
    if name in _CALLED:
        return ["call", name, *(of(argument) for argument in expr.args)]
    raise _strange(block, expr)


def _strange(block: Any, node: Any) -> InputError:
    kind = getattr(getattr(node, "op", None), "name", type(node).__name__)
    return InputError(f"{block.name_hint} has no form as a tensor expression: {kind}")
