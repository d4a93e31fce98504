"""The JSON graphs in which older TVMs saved modules, as plain nodes.

Two layouts exist. Until 0.19, a graph has ``root``, and a node has ``type_key``, ``attrs`` whose
values are all text, and ``data`` and ``keys`` for containers. Later, it has ``root_index``, and a
node has ``type`` and ``data``. Either way a number may be a value or the index of another node;
only the reader of a field knows which.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

_TEXT = {"String", "SmallStr", "str", "StringObj"}
_BOXES = {"int", "bool", "float", "BoxInt", "BoxBool", "BoxFloat", "Int", "Bool", "Float"}
_DTYPE = re.compile(r"[a-z][a-z0-9_]*")
_NEW_NAMES = {"SBlock": "Block", "SBlockRealize": "BlockRealize", "Bind": "LetStmt"}


@dataclass(frozen=True, eq=False)
class Node:
    """One node of a graph; its place there is the identity of a variable or a buffer."""

    graph: Graph = field(repr=False)
    index: int

    @property
    def _raw(self) -> dict[str, Any]:
        raw = self.graph.nodes[self.index]
        if not isinstance(raw, dict):
            raise ValueError(f"node {self.index} is no object")
        return raw

    @cached_property
    def kind(self) -> str:
        """Its type without the namespace, by the name that TVM 0.9 used."""
        raw = self._raw
        name = str(raw.get("type", raw.get("type_key", ""))).rsplit(".", 1)[-1]
        return _NEW_NAMES.get(name, name)

    def value(self, name: str) -> Any:
        """Return a field that holds a value: text, perhaps of a number."""
        raw = self._raw
        return (raw["attrs"] if "attrs" in raw else raw["data"])[name]

    def ref(self, name: str) -> Node | None:
        """Return the node that a field refers to; ``None`` if it is null or not there."""
        raw = self._raw
        fields = raw.get("attrs", raw.get("data")) or {}
        return self.graph.node(fields[name]) if name in fields else None

    def child(self, name: str) -> Node:
        """Like :meth:`ref` for a field that cannot be null."""
        node = self.ref(name)
        if node is None:
            raise ValueError(f"{self.kind} has no {name}")
        return node

    def items(self, name: str) -> list[Node]:
        """Return the elements of the array that a field refers to."""
        array = self.ref(name)
        return [] if array is None else list(array.elements())

    def elements(self) -> Iterator[Node]:
        """Yield the elements of this array."""
        for index in self._raw.get("data") or []:
            node = self.graph.node(index)
            if node is None:
                raise ValueError("an array holds a null")
            yield node

    def pairs(self) -> Iterator[tuple[Any, Node]]:
        """Yield the keys (text or nodes) and values of this map."""
        raw = self._raw
        data = [self.graph.node(index) for index in raw.get("data") or []]
        keys: list[Any] = raw.get("keys") or data[::2]
        values = data if raw.get("keys") else data[1::2]
        for key, value in zip(keys, values, strict=True):
            if key is None or value is None:
                raise ValueError("a map holds a null")
            yield (key.plain() if isinstance(key, Node) and key.kind in _TEXT else key), value

    def plain(self) -> Any:
        """Return what a node of text, numbers or containers stands for."""
        if self.kind in _TEXT:
            return str(self._raw.get("repr_str", self._raw.get("data", "")))
        if self.kind in _BOXES:
            raw = self._raw
            value = raw["attrs"]["value"] if "attrs" in raw else raw["data"]
            return json.loads(value) if isinstance(value, str) else value
        if self.kind == "IntImm":
            value = int(self.value("value"))
            return bool(value) if self.value("dtype") == "bool" else value
        if self.kind == "FloatImm":
            return float(self.value("value"))
        if self.kind == "StringImm":
            return self.text("value")
        if self.kind == "Array":
            return [node.plain() for node in self.elements()]
        if self.kind == "Map":
            return {key: value.plain() for key, value in self.pairs()}
        raise ValueError(f"{self.kind} is no plain value")

    def text(self, name: str) -> str:
        """Return a field that holds text, itself or by reference."""
        return str(self.child(name).plain())

    @property
    def dtype(self) -> str:
        """The field of this name, checked: it becomes part of a script, which is code."""
        dtype = str(self.value("dtype"))
        if not _DTYPE.fullmatch(dtype):
            raise ValueError(f"{dtype!r} is no type")
        return dtype

    def operator(self) -> str:
        """Return the name of the operator that this node is."""
        return str(self._raw["repr_str"] if "repr_str" in self._raw else self._raw["data"])


class Graph:
    """A JSON graph; raises :class:`ValueError` if the text is not one."""

    def __init__(self, text: str) -> None:
        content = json.loads(text)
        if not isinstance(content, dict) or not isinstance(content.get("nodes"), list):
            raise ValueError("this is no JSON graph")
        self.nodes: list[Any] = content["nodes"]
        root = self.node(content.get("root_index", content.get("root")))
        if root is None:
            raise ValueError("the graph is empty")
        self.root = root

    @property
    def is_current(self) -> bool:
        """Whether its types have the names that TVM gives them now."""
        return any(
            isinstance(node, dict) and str(node.get("type", "")).startswith("tirx.")
            for node in self.nodes
        )

    def node(self, index: Any) -> Node | None:
        """Return a node by its index, ``None`` for the null node."""
        place = int(index)
        if not 0 <= place < len(self.nodes):
            raise ValueError(f"the graph has no node {place}")
        node = Node(self, place)
        return None if node.kind in ("", "None") else node
