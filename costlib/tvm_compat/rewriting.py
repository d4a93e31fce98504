"""Changing nodes anywhere in a TIR function, by reflection: TVM has no such thing in Python."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import tvm_ffi
from tvm import tirx
from tvm.ir import Op, Range, Type, make_node
from tvm.tirx import Buffer
from tvm_ffi import structural_equal

BLOCK = "s_tir.SBlock"

_LEAVES = (
    *(tirx.Var, tirx.IntImm, tirx.FloatImm, tirx.IterVar),
    *(Buffer, Op, Type, Range),
)
"""Nodes that are not looked into; variables and buffers have to stay the same objects."""


class Rewriter:
    """Rebuilds a statement from its leaves; what does not change stays the same object."""

    def __init__(self) -> None:
        self._known: dict[int, Any] = {}

    def visit(self, node: Any) -> Any:
        """Return a node, or what takes its place."""
        if isinstance(node, tvm_ffi.Array):
            items = [self.visit(item) for item in node]
            changed = any(a is not b for a, b in zip(items, node, strict=True))
            return tvm_ffi.Array(items) if changed else node
        if not isinstance(node, tvm_ffi.Object) or isinstance(node, _LEAVES):
            return node
        handle = node.__chandle__()
        if handle not in self._known:
            self._known[handle] = self._rebuilt(node)
        return self._known[handle]

    def _rebuilt(self, node: Any) -> Any:
        key = type(node).__tvm_ffi_type_info__.type_key
        fields = {name: getattr(node, name) for name in _fields(type(node))}
        new = {name: self.part(node, key, name, value) for name, value in fields.items()}
        if (other := self.replaced(node, key, new)) is not None:
            return other
        if all(new[name] is fields[name] for name in fields):
            return node
        return make_node(key, **new)

    def part(self, node: Any, key: str, name: str, value: Any) -> Any:
        """Return a field of a node, or what takes its place."""
        return self.visit(value)

    def replaced(self, node: Any, key: str, new: dict[str, Any]) -> Any | None:
        """Return what takes the place of a node whose fields are rewritten; ``None`` to keep it.

        ``new`` may be changed.
        """
        return None


def _fields(kind: Any) -> list[str]:
    names: list[str] = []
    info = kind.__tvm_ffi_type_info__
    while info is not None:
        names += [field.name for field in info.fields]
        info = info.parent_type_info
    return names


def stores_in(node: Any, loops: tuple[Any, ...] = ()) -> Iterator[tuple[Any, tuple[Any, ...]]]:
    """Return the stores of a statement without blocks, each with the loops around it."""
    if isinstance(node, tirx.BufferStore):
        yield node, loops
    elif isinstance(node, tirx.For):
        yield from stores_in(node.body, (*loops, node))
    elif isinstance(node, tirx.SeqStmt):
        for part in node.seq:
            yield from stores_in(part, loops)
    elif isinstance(node, tirx.IfThenElse):
        for part in filter(None, (node.then_case, node.else_case)):
            yield from stores_in(part, loops)
    elif hasattr(node, "body"):
        yield from stores_in(node.body, loops)


def nodes_in(expression: Any) -> list[Any]:
    """Return the nodes of an expression, each once, but for variables and constants."""
    collector = _Collector()
    collector.visit(expression)
    return collector.found


class _Collector(Rewriter):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[Any] = []

    def replaced(self, node: Any, key: str, new: dict[str, Any]) -> Any | None:
        self.found.append(node)
        return None


def substituted(node: Any, values: Mapping[Any, Any]) -> Any:
    """Put expressions in the place of variables."""
    return _Substitution(values).visit(node)


class _Substitution(Rewriter):
    def __init__(self, values: Mapping[Any, Any]) -> None:
        super().__init__()
        self._values = values

    def visit(self, node: Any) -> Any:
        """Return a node, or what takes its place."""
        if isinstance(node, tirx.Var) and node in self._values:
            return self._values[node]
        return super().visit(node)


def without_argument_names(function: Any) -> Any:
    """Rename the blocks of a function that are named after what it is called with."""
    blocks = _BlockNames()
    blocks.visit(function.body)
    # What a block writes is called like the block.
    inputs = {str(parameter.name) for parameter in function.params} - blocks.found
    return function.with_body(_BlockRenamer(sorted(inputs, key=len)[::-1]).visit(function.body))


def are_alike(function: Any, other: Any) -> bool:
    """Whether two functions are the same but for attributes and the names of arguments."""
    plain = (without_argument_names(one) for one in (function, other))
    return bool(structural_equal(*(tirx.PrimFunc(one.params, one.body) for one in plain)))


def without_scopes(statement: Any) -> Any:
    """Take the marks off a statement that LLVM's code generator does not know and warns of."""
    return _ScopeRemover().visit(statement)


class _ScopeRemover(Rewriter):
    def replaced(self, node: Any, key: str, new: dict[str, Any]) -> Any | None:
        return new["body"] if str(getattr(node, "attr_key", "")) == "pragma_scope" else None


class _BlockNames(Rewriter):
    def __init__(self) -> None:
        super().__init__()
        self.found: set[str] = set()

    def part(self, node: Any, key: str, name: str, value: Any) -> Any:
        if key == BLOCK and name == "name_hint":
            self.found.add(str(value))
        return super().part(node, key, name, value)


class _BlockRenamer(Rewriter):
    def __init__(self, inputs: list[str]) -> None:
        super().__init__()
        self._inputs = inputs

    def part(self, node: Any, key: str, name: str, value: Any) -> Any:
        if key == BLOCK and name == "name_hint":
            for prefix in self._inputs:
                if str(value).startswith(f"{prefix}_"):
                    return f"x_{str(value).removeprefix(f'{prefix}_')}"
        return super().part(node, key, name, value)
