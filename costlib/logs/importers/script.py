"""Modules saved by older TVMs, written down in today's TVMScript.

TVM reads its JSON graphs only in the version that wrote them; TVMScript it parses, so a graph
becomes a script. Everything is spelt as the constructor of its node: operators would fold
constants, and the workload would be another.
"""

from __future__ import annotations

import keyword
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from costlib.logs.importers.graph import Graph, Node

_INDENT = "    "
_LOOPS = ("serial", "parallel", "vectorized", "unroll")
_AXES = {0: "spatial", 1: "scan", 2: "reduce", 3: "opaque"}
_BINARY = (
    *("Add", "Sub", "Mul", "Div", "Mod", "FloorDiv", "FloorMod", "Min", "Max"),
    *("EQ", "NE", "LT", "LE", "GT", "GE", "And", "Or"),
)
_OPERANDS: dict[str, Sequence[str]] = {
    **dict.fromkeys(_BINARY, "ab"),
    "Not": "a",
    "Select": ("condition", "true_value", "false_value"),
}
"""Nodes that are written as their operands, and what those are called."""

_BITWISE = {
    "tir.shift_left": "LShift",
    "tir.shift_right": "RShift",
    "tir.bitwise_and": "BitwiseAnd",
    "tir.bitwise_or": "BitwiseOr",
    "tir.bitwise_xor": "BitwiseXor",
    "tir.bitwise_not": "BitwiseNot",
}
"""Operators that have become nodes of their own."""

_NAMESPACES = {"if_then_else": "prim", "likely": "prim"}
"""Operators that have moved elsewhere than to ``tirx``."""

_RESERVED = {"T", "I", "R", "Module", "main", "range"}
_ALIGNMENT = 64


def to_script(graph: Graph) -> str:
    """Return a module as TVMScript that ``tvm.script.from_source`` of this TVM reads.

    ``graph`` is an ``IRModule`` with a function called ``main``, or such a function.

    Raises
    ------
    ValueError
        There is no such function, or it holds something that workloads do not.
    """
    root = graph.root
    if root.kind == "IRModule":
        functions = {name.text("name_hint"): f for name, f in root.child("functions").pairs()}
        if set(functions) != {"main"}:
            raise ValueError("the module has other functions than one called main")
        root = functions["main"]
    if root.kind != "PrimFunc":
        raise ValueError(f"main is no PrimFunc but a {root.kind}")
    lines = _Printer().function(root)
    return "\n".join(["@I.ir_module", "class Module:", *(_INDENT + line for line in lines), ""])


class _Printer:
    """Writes one function; remembers how it called its variables and buffers."""

    def __init__(self) -> None:
        self._names: dict[int, str] = {}
        self._taken = set(_RESERVED)

    def function(self, node: Node) -> Iterator[str]:
        buffers = {key.index: buffer for key, buffer in _pairs(node.ref("buffer_map"))}
        parameters = node.items("params")
        declared = [
            f"{self._name(p)}: T." + ("handle" if p.index in buffers else p.dtype)
            for p in parameters
        ]
        attributes = _plain_map(node.ref("attrs"))
        private = "" if attributes.pop("global_symbol", None) == "main" else ", private=True"
        yield f"@T.prim_func(s_tir=True{private})"
        yield f"def main({', '.join(declared)}):"
        if attributes:
            renamed = {re.sub(r"^tir\.", "tirx.", key): v for key, v in attributes.items()}
            yield f"{_INDENT}T.func_attr({renamed!r})"
        for parameter in parameters:
            buffer = buffers.get(parameter.index)
            if buffer is None:
                continue
            for size in [*buffer.items("shape"), *buffer.items("strides")]:
                if size.kind in ("Var", "SizeVar") and size.index not in self._names:
                    yield f"{_INDENT}{self._name(size)} = T.{size.dtype}()"
            arguments = ", ".join([self._name(parameter), *self._buffer_arguments(buffer)])
            yield f"{_INDENT}{self._name(buffer)} = T.match_buffer({arguments})"
        yield from self._indented(node.child("body"))

    def _buffer_arguments(self, buffer: Node) -> Iterator[str]:
        yield self._tuple(buffer.items("shape"))
        yield repr(buffer.dtype)
        if buffer.items("strides"):
            yield f"strides={self._tuple(buffer.items('strides'))}"
        offset = buffer.ref("elem_offset")
        if offset is not None and offset.kind == "IntImm" and not _is(offset, 0):
            yield f"elem_offset={self._expression(offset)}"
        scope = buffer.child("data").child("type_annotation").text("storage_scope")
        if scope not in ("", "global"):
            yield f"scope={scope!r}"
        if int(buffer.value("data_alignment")) != _ALIGNMENT:
            yield f"align={int(buffer.value('data_alignment'))}"
        if int(buffer.value("offset_factor")) not in (0, 1):
            yield f"offset_factor={int(buffer.value('offset_factor'))}"
        separators = [node.plain() for node in buffer.items("axis_separators")]
        if separators:
            yield f"axis_separators={separators}"

    def _statement(self, node: Node) -> Iterator[str]:
        match node.kind:
            case "SeqStmt":
                for part in node.items("seq"):
                    yield from self._statement(part)
            case "BlockRealize":
                yield from self._block(node)
            case "For":
                yield from self._loop(node)
            case "BufferStore":
                target = self._element(node)
                yield f"{target} = {self._expression(node.child('value'))}"
            case "LetStmt":
                value = self._expression(node.child("value"))
                yield f"{self._name(node.child('var'))}: T.let = {value}"
                if node.ref("body") is not None:
                    yield from self._statement(node.child("body"))
            case "IfThenElse":
                yield f"if {self._expression(node.child('condition'))}:"
                yield from self._indented(node.child("then_case"))
                if node.ref("else_case") is not None:
                    yield "else:"
                    yield from self._indented(node.child("else_case"))
            case "Evaluate":
                yield f"T.evaluate({self._expression(node.child('value'))})"
            case other:
                raise ValueError(f"a workload cannot hold a {other}")

    def _indented(self, node: Node) -> Iterator[str]:
        yield from (_INDENT + line for line in self._statement(node))

    def _loop(self, node: Node) -> Iterator[str]:
        kind = int(node.value("kind"))
        if kind >= len(_LOOPS) or node.ref("thread_binding") is not None:
            raise ValueError("a workload has a bound loop")
        bounds = self._bounds(node)
        annotations = _plain_map(node.ref("annotations"))
        if annotations:
            bounds += f", annotations={annotations!r}"
        yield f"for {self._name(node.child('loop_var'))} in T.{_LOOPS[kind]}({bounds}):"
        yield from self._indented(node.child("body"))

    def _bounds(self, node: Node) -> str:
        """Return where a loop or an axis ends, after where it begins if that is not 0."""
        extent = self._expression(node.child("extent"))
        if _is(node.child("min"), 0):
            return extent
        start = self._expression(node.child("min"))
        return f"{start}, {start} + {extent}"

    def _block(self, realize: Node) -> Iterator[str]:
        block = realize.child("block")
        yield f"with T.sblock({block.text('name_hint')!r}):"
        lines = [*self._axes(realize, block), *self._signature(realize, block)]
        init = block.ref("init")
        if init is not None:
            lines += ["with T.init():", *self._indented(init)]
        lines += self._statement(block.child("body"))
        yield from (_INDENT + line for line in lines)

    def _axes(self, realize: Node, block: Node) -> Iterator[str]:
        values = realize.items("iter_values")
        for axis, value in zip(block.items("iter_vars"), values, strict=True):
            domain = axis.child("dom")
            bounds = self._bounds(domain)
            if not _is(domain.child("min"), 0):
                bounds = f"({bounds})"
            kind = _AXES.get(int(axis.value("iter_type")))
            if kind is None:
                raise ValueError("a block has an axis of an unknown type")
            bound = self._expression(value)
            yield f"{self._name(axis.child('var'))} = T.axis.{kind}({bounds}, {bound})"

    def _signature(self, realize: Node, block: Node) -> Iterator[str]:
        predicate = realize.child("predicate")
        if not _is(predicate, 1):
            yield f"T.where({self._expression(predicate)})"
        if block.items("match_buffers"):
            raise ValueError("a block matches buffers")
        allocated = block.items("alloc_buffers")
        for buffer in allocated:
            self._name(buffer)
        # The root block reads and writes nothing that a script may name.
        if block.items("iter_vars") or block.items("reads") or block.items("writes"):
            yield f"T.reads({', '.join(map(self._region, block.items('reads')))})"
            yield f"T.writes({', '.join(map(self._region, block.items('writes')))})"
        annotations = _plain_map(block.ref("annotations"))
        if annotations:
            yield f"T.sblock_attr({annotations!r})"
        for buffer in allocated:
            arguments = ", ".join(self._buffer_arguments(buffer))
            yield f"{self._name(buffer)} = T.sblock_alloc_buffer({arguments})"

    def _region(self, region: Node) -> str:
        ranges = []
        for part in region.items("region"):
            start, extent = self._expression(part.child("min")), part.child("extent")
            end = "" if _is(extent, 1) else f":{start} + {self._expression(extent)}"
            ranges.append(start + end)
        return f"{self._name(region.child('buffer'))}[{', '.join(ranges) or '()'}]"

    def _element(self, node: Node) -> str:
        if node.ref("predicate") is not None:
            raise ValueError(f"a {node.kind} has a predicate")
        indices = self._list(node.items("indices")) or "()"
        return f"{self._name(node.child('buffer'))}[{indices}]"

    def _expression(self, node: Node) -> str:
        kind = node.kind
        if kind in _OPERANDS:
            return f"T.{kind}({self._list(map(node.child, _OPERANDS[kind]))})"
        match kind:
            case "Var" | "SizeVar":
                if node.index not in self._names:
                    raise ValueError("a variable is used before it is defined")
                return self._names[node.index]
            case "IntImm":
                value = int(node.value("value"))
                return f"T.{node.dtype}({bool(value) if node.dtype == 'bool' else value})"
            case "FloatImm":
                number = float(node.value("value"))
                text = repr(number) if math.isfinite(number) else f'"{number}"'
                return f"T.{node.dtype}({text})"
            case "StringImm":
                return repr(node.text("value"))
            case "BufferLoad":
                return self._element(node)
            case "Cast":
                return f"T.Cast({node.dtype!r}, {self._expression(node.child('value'))})"
            case "Call":
                return self._call(node)
            case other:
                raise ValueError(f"a workload cannot hold a {other}")

    def _call(self, node: Node) -> str:
        operator = node.child("op")
        if operator.kind != "Op":
            raise ValueError("a workload calls a function")
        old_name = operator.operator()
        arguments = self._list(node.items("args"))
        if old_name in _BITWISE:
            return f"T.{_BITWISE[old_name]}({arguments})"
        name = old_name.removeprefix("tir.")
        new_name = f"{_NAMESPACES.get(name, 'tirx')}.{name}"
        return f"T.call_intrin({node.dtype!r}, {new_name!r}, {arguments})"

    def _list(self, nodes: Iterable[Node]) -> str:
        return ", ".join(map(self._expression, nodes))

    def _tuple(self, nodes: list[Node]) -> str:
        return "(" + "".join(f"{self._expression(node)}, " for node in nodes) + ")"

    def _name(self, node: Node) -> str:
        """Return the name of a variable or buffer; a new one gets its own, made unique."""
        if node.index not in self._names:
            hint = re.sub(r"\W", "_", node.text("name"), flags=re.ASCII) or "v"
            hint = f"v_{hint}" if hint[0].isdigit() or keyword.iskeyword(hint) else hint
            name, number = hint, 0
            while name in self._taken:
                number += 1
                name = f"{hint}_{number}"
            self._taken.add(name)
            self._names[node.index] = name
        return self._names[node.index]


def _is(node: Node, number: int) -> bool:
    return node.kind == "IntImm" and int(node.value("value")) == number


def _pairs(node: Node | None) -> Iterator[tuple[Any, Node]]:
    return iter(()) if node is None else node.pairs()


def _plain_map(node: Node | None) -> dict[str, Any]:
    if node is not None and node.kind == "DictAttrs":
        node = node.ref("__dict__")
    return {str(key): value.plain() for key, value in _pairs(node)}
