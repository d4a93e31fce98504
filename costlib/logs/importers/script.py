"""Modules saved by older TVMs, written down in today's TVMScript.

TVM reads its JSON graphs only in the version that wrote them; TVMScript it parses, so a graph
becomes a script. Everything is spelt as the constructor of its node: operators would fold
constants, and the workload would be another.
"""

from __future__ import annotations

import keyword
import math
import re
from collections.abc import Iterator
from typing import Any

from costlib.logs.importers.graph import Graph, Node

_INDENT = "    "
_LOOPS = ("serial", "parallel", "vectorized", "unroll")
_AXES = {0: "spatial", 1: "scan", 2: "reduce", 3: "opaque"}
_BINARY = {
    *("Add", "Sub", "Mul", "Div", "Mod", "FloorDiv", "FloorMod", "Min", "Max"),
    *("EQ", "NE", "LT", "LE", "GT", "GE", "And", "Or"),
}
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

    Parameters
    ----------
    graph
        An ``IRModule`` with a function called ``main``, or such a function.

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
            f"{self._name(p, 'name')}: T." + ("handle" if p.index in buffers else p.dtype)
            for p in parameters
        ]
        attributes = _plain_map(node.ref("attrs"))
        symbol = attributes.pop("global_symbol", None)
        private = "" if symbol == "main" else ", private=True"
        yield f"@T.prim_func(s_tir=True{private})"
        yield f"def main({', '.join(declared)}):"
        body = list(self._function_body(node, parameters, buffers, attributes))
        yield from (_INDENT + line for line in body)

    def _function_body(
        self,
        node: Node,
        parameters: list[Node],
        buffers: dict[int, Node],
        attributes: dict[str, Any],
    ) -> Iterator[str]:
        if attributes:
            renamed = {re.sub(r"^tir\.", "tirx.", key): v for key, v in attributes.items()}
            yield f"T.func_attr({renamed!r})"
        for parameter in parameters:
            if parameter.index in buffers:
                buffer = buffers[parameter.index]
                yield from self._new_sizes(buffer)
                handle = self._name(parameter, "name")
                arguments = ", ".join([handle, *self._buffer_arguments(buffer)])
                yield f"{self._name(buffer, 'name')} = T.match_buffer({arguments})"
        yield from self._statement(node.child("body"))

    def _new_sizes(self, buffer: Node) -> Iterator[str]:
        """Declare the variables that a buffer is the first to name."""
        for size in [*buffer.items("shape"), *buffer.items("strides")]:
            if size.kind in ("Var", "SizeVar") and size.index not in self._names:
                yield f"{self._name(size, 'name')} = T.{size.dtype}()"

    def _buffer_arguments(self, buffer: Node) -> Iterator[str]:
        yield self._tuple(buffer.items("shape"))
        yield repr(buffer.dtype)
        if buffer.items("strides"):
            yield f"strides={self._tuple(buffer.items('strides'))}"
        offset = buffer.ref("elem_offset")
        if offset is not None and offset.kind == "IntImm" and int(offset.value("value")):
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
                if node.ref("predicate") is not None:
                    raise ValueError("a store has a predicate")
                target = self._element(node)
                yield f"{target} = {self._expression(node.child('value'))}"
            case "LetStmt":
                value = self._expression(node.child("value"))
                yield f"{self._name(node.child('var'), 'name')}: T.let = {value}"
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
        first, extent = node.child("min"), self._expression(node.child("extent"))
        bounds = extent
        if not (first.kind == "IntImm" and int(first.value("value")) == 0):
            start = self._expression(first)
            bounds = f"{start}, {start} + {extent}"
        annotations = _plain_map(node.ref("annotations"))
        if annotations:
            bounds += f", annotations={annotations!r}"
        yield f"for {self._name(node.child('loop_var'), 'name')} in T.{_LOOPS[kind]}({bounds}):"
        yield from self._indented(node.child("body"))

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
            first, extent = domain.child("min"), self._expression(domain.child("extent"))
            if not (first.kind == "IntImm" and int(first.value("value")) == 0):
                start = self._expression(first)
                extent = f"({start}, {start} + {extent})"
            kind = _AXES.get(int(axis.value("iter_type")))
            if kind is None:
                raise ValueError("a block has an axis of an unknown type")
            bound = self._expression(value)
            yield f"{self._name(axis.child('var'), 'name')} = T.axis.{kind}({extent}, {bound})"

    def _signature(self, realize: Node, block: Node) -> Iterator[str]:
        predicate = realize.child("predicate")
        if not (predicate.kind == "IntImm" and int(predicate.value("value")) == 1):
            yield f"T.where({self._expression(predicate)})"
        if block.items("match_buffers"):
            raise ValueError("a block matches buffers")
        allocated = block.items("alloc_buffers")
        for buffer in allocated:
            self._name(buffer, "name")
        # The root block reads and writes nothing that a script may name.
        if block.items("iter_vars") or block.items("reads") or block.items("writes"):
            yield f"T.reads({', '.join(map(self._region, block.items('reads')))})"
            yield f"T.writes({', '.join(map(self._region, block.items('writes')))})"
        annotations = _plain_map(block.ref("annotations"))
        if annotations:
            yield f"T.sblock_attr({annotations!r})"
        for buffer in allocated:
            arguments = ", ".join(self._buffer_arguments(buffer))
            yield f"{self._name(buffer, 'name')} = T.sblock_alloc_buffer({arguments})"

    def _region(self, region: Node) -> str:
        ranges = []
        for part in region.items("region"):
            first, extent = part.child("min"), part.child("extent")
            start = self._expression(first)
            single = extent.kind == "IntImm" and int(extent.value("value")) == 1
            ranges.append(start if single else f"{start}:{start} + {self._expression(extent)}")
        return f"{self._name(region.child('buffer'), 'name')}[{', '.join(ranges) or '()'}]"

    def _element(self, node: Node) -> str:
        indices = ", ".join(map(self._expression, node.items("indices")))
        return f"{self._name(node.child('buffer'), 'name')}[{indices or '()'}]"

    def _expression(self, node: Node) -> str:
        kind = node.kind
        if kind in _BINARY:
            operands = (self._expression(node.child(name)) for name in "ab")
            return f"T.{kind}({', '.join(operands)})"
        match kind:
            case "Var" | "SizeVar":
                return self._known(node)
            case "IntImm":
                value = int(node.value("value"))
                dtype = node.dtype
                return f"T.bool({bool(value)})" if dtype == "bool" else f"T.{dtype}({value})"
            case "FloatImm":
                number = float(node.value("value"))
                text = repr(number) if math.isfinite(number) else f'"{number}"'
                return f"T.{node.dtype}({text})"
            case "StringImm":
                return repr(node.text("value"))
            case "BufferLoad":
                if node.ref("predicate") is not None:
                    raise ValueError("a load has a predicate")
                return self._element(node)
            case "Cast":
                operand = self._expression(node.child("value"))
                return f"T.Cast({node.dtype!r}, {operand})"
            case "Not":
                return f"T.Not({self._expression(node.child('a'))})"
            case "Select":
                names = ("condition", "true_value", "false_value")
                return f"T.Select({', '.join(self._expression(node.child(n)) for n in names)})"
            case "Call":
                return self._call(node)
            case other:
                raise ValueError(f"a workload cannot hold a {other}")

    def _call(self, node: Node) -> str:
        operator = node.child("op")
        if operator.kind != "Op":
            raise ValueError("a workload calls a function")
        old_name = operator.operator()
        arguments = ", ".join(map(self._expression, node.items("args")))
        if old_name in _BITWISE:
            return f"T.{_BITWISE[old_name]}({arguments})"
        name = old_name.removeprefix("tir.")
        new_name = f"{_NAMESPACES.get(name, 'tirx')}.{name}"
        return f"T.call_intrin({node.dtype!r}, {new_name!r}, {arguments})"

    def _tuple(self, nodes: list[Node]) -> str:
        return "(" + "".join(f"{self._expression(node)}, " for node in nodes) + ")"

    def _known(self, node: Node) -> str:
        if node.index not in self._names:
            raise ValueError("a variable is used before it is defined")
        return self._names[node.index]

    def _name(self, node: Node, field: str) -> str:
        """Return the name of a variable or buffer; a new one gets its own, made unique."""
        if node.index not in self._names:
            hint = re.sub(r"\W", "_", node.text(field), flags=re.ASCII) or "v"
            hint = f"v_{hint}" if hint[0].isdigit() or keyword.iskeyword(hint) else hint
            name, number = hint, 0
            while name in self._taken:
                number += 1
                name = f"{hint}_{number}"
            self._taken.add(name)
            self._names[node.index] = name
        return self._names[node.index]


def _pairs(node: Node | None) -> Iterator[tuple[Any, Node]]:
    return iter(()) if node is None else node.pairs()


def _plain_map(node: Node | None) -> dict[str, Any]:
    if node is not None and node.kind == "DictAttrs":
        node = node.ref("__dict__")
    return {str(key): value.plain() for key, value in _pairs(node)}
