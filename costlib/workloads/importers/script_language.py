"""What TVMScript may say: the words of ``T``, ``I`` and ``R``, and no other Python.

Whatever TVM's parser evaluates must come from here: names that the script itself binds, TVM's own
vocabulary, a few harmless functions of Python, and strings that cannot be calls.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import ModuleType, SimpleNamespace
from typing import Any

from costlib.tvm_compat.api import script_modules

_MODULES = {
    "tvm.script.ir": "I",
    "tvm.script.tir": "T",
    "tvm.script.tirx": "T",
    "tvm.script.relax": "R",
    "tvm.script.parser.ir": "I",
    "tvm.script.parser.tir": "T",
    "tvm.script.parser.relax": "R",
}
"""What scripts import, and the name it has in this TVM's own scripts."""

_DECLARING = {"I.ir_module", "tvm.script.ir_module", "T.prim_func", "R.function"}
_FUNCTIONS = {"range", "len", "min", "max", "abs", "int", "float", "bool", "tuple", "list"}
_ATTRIBUTES = {
    *("data", "dtype", "shape", "strides", "elem_offset", "access_ptr", "vload", "vstore"),
    *("astype", "scope", "offset_of"),
}
"""Of buffers and expressions."""

_ACTING = re.compile(
    "packed|extern|kernel|pyfunc|py_func|script_namespace|jit|inline|macro|meta_class|rewriter"
    "|emit_te|builtin_with_ctx",
    re.IGNORECASE,
)
"""Words that call, or are, code from outside the script."""

_SUBPACKAGES = "tvm.relax.op."
_UNSAFE_TEXT = re.compile(r"[(%]|call_\w*packed|call_\w*extern|pragma_import")
"""What strings would need to become a call when they are evaluated; and calls from outside."""

_SPOKEN = (
    *(ast.ClassDef, ast.FunctionDef, ast.arguments, ast.arg, ast.keyword),
    *(ast.Expr, ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Return, ast.Pass, ast.Assert),
    *(ast.For, ast.While, ast.If, ast.With, ast.withitem, ast.Break, ast.Continue),
    *(ast.Call, ast.Attribute, ast.Subscript, ast.Slice, ast.Starred, ast.Name, ast.Constant),
    *(ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.Lambda),
    *(ast.Tuple, ast.List, ast.Dict, ast.expr_context),
    *(ast.operator, ast.unaryop, ast.boolop, ast.cmpop),
)


@dataclass(frozen=True)
class _Scope:
    """What a declaration is made of.

    Attributes
    ----------
    bound, functions, owners
        The names that it binds, those of its functions, and those that stand for itself.
    texts, chained
        Identities of its nodes: what is a statement of its own, as docstrings are; and what an
        attribute is taken of.
    """

    bound: frozenset[str]
    functions: frozenset[str]
    owners: frozenset[str]
    texts: frozenset[int]
    chained: frozenset[int]

    @classmethod
    def of(cls, declared: ast.stmt) -> _Scope:
        nodes = list(ast.walk(declared))
        return cls(
            frozenset({"cls", *_bound(declared)}),
            frozenset(node.name for node in nodes if isinstance(node, ast.FunctionDef)),
            frozenset({"cls", getattr(declared, "name", "")}),
            frozenset(id(node.value) for node in nodes if isinstance(node, ast.Expr)),
            frozenset(id(node.value) for node in nodes if isinstance(node, ast.Attribute)),
        )

    def is_function(self, chain: Sequence[str]) -> bool:
        """Whether names that are linked by a dot are one of its functions."""
        return len(chain) == 2 and chain[0] in self.owners and chain[1] in self.functions


class Language:
    """The vocabulary of one file.

    Parameters
    ----------
    file
        The file as Python's own parser reads it.

    Attributes
    ----------
    names
        What the names that are not bound in a declaration stand for.
    """

    def __init__(self, file: ast.Module) -> None:
        self._short = {"I": "I", "T": "T", "R": "R"}
        for node in file.body:
            self._short |= dict(_aliases(node))
        modules = script_modules()
        self._modules = {name: modules[short] for name, short in self._short.items()}
        script = SimpleNamespace(ir_module=modules["I"].ir_module)
        self._modules["tvm"] = SimpleNamespace(script=script)
        self._values = dict(_values(file))
        self.names = {**self._values, **self._modules}

    def declares(self, node: ast.stmt) -> bool:
        """Whether a statement is a module or a function of TVMScript."""
        if not isinstance(node, (ast.ClassDef, ast.FunctionDef)):
            return False
        calls = (d.func if isinstance(d, ast.Call) else d for d in node.decorator_list)
        return any(self._own_name(call) in _DECLARING for call in calls)

    def fault(self, declared: ast.stmt) -> str | None:
        """Say where a declaration holds Python, and what; ``None`` if it does not."""
        scope = _Scope.of(declared)
        if taken := sorted(scope.bound & self._modules.keys()):
            return f"{declared.lineno}: '{taken[0]}' is the name of a part of TVMScript"
        for node in ast.walk(declared):
            if (fault := self._fault_of(node, scope)) is not None:
                return f"{getattr(node, 'lineno', declared.lineno)}: {fault}"
        return None

    def _fault_of(self, node: ast.AST, scope: _Scope) -> str | None:
        match node:
            case ast.Constant() if id(node) not in scope.texts and not _is_plain(node):
                return "a string that holds code; scripts are not executed"
            case ast.BinOp(op=ast.Pow()):
                return "a power, which may take for ever; use T.pow, or the number"
            case ast.Name():
                return self._fault_of_name(node, scope)
            case ast.Attribute():
                return self._fault_of_attribute(node, scope)
        if not isinstance(node, _SPOKEN):
            return f"{type(node).__name__} is Python, not TVMScript; scripts are not executed"
        return None

    def _fault_of_name(self, node: ast.Name, scope: _Scope) -> str | None:
        if node.id in self._modules:
            return None if id(node) in scope.chained else f"'{node.id}' is no value"
        known = node.id in scope.bound or node.id in self._values or node.id in _FUNCTIONS
        return None if known else f"'{node.id}' is not defined in it"

    def _fault_of_attribute(self, node: ast.Attribute, scope: _Scope) -> str | None:
        chain = _chain(node)
        if chain and chain[0] in self._modules:
            if self._is_word(chain, is_prefix=id(node) in scope.chained):
                return None
            return f"'{'.'.join(chain)}' is not allowed in a script"
        if node.attr in _ATTRIBUTES or scope.is_function(chain):
            return None
        return f"'.{node.attr}' is Python, not TVMScript"

    def _own_name(self, node: ast.expr) -> str:
        """What this TVM's own scripts call it, such as ``I.ir_module``."""
        chain = _chain(node)
        return ".".join([self._short.get(chain[0], chain[0]), *chain[1:]]) if chain else ""

    def _is_word(self, chain: list[str], *, is_prefix: bool) -> bool:
        """Whether names that are linked by dots lead to something that only describes programs."""
        value: Any = self._modules[chain[0]]
        for name in chain[1:]:
            if name.startswith("_") or _ACTING.search(name):
                return False
            value = getattr(value, name, None)
            if isinstance(value, ModuleType) and not value.__name__.startswith(_SUBPACKAGES):
                return False
        return is_prefix or not isinstance(value, ModuleType)


def _aliases(node: ast.stmt) -> Iterator[tuple[str, str]]:
    """Yield how a file calls the parts of TVMScript that it imports."""
    if isinstance(node, ast.ImportFrom):
        for alias in node.names:
            short = _MODULES.get(f"{node.module}.{alias.name}")
            if short is not None:
                yield alias.asname or alias.name, short
    elif isinstance(node, ast.Import):
        for alias in node.names:
            if alias.asname is not None and alias.name in _MODULES:
                yield alias.asname, _MODULES[alias.name]


def _values(file: ast.Module) -> Iterator[tuple[str, Any]]:
    """Yield the names that a file gives to numbers, to names of types, and to tuples of them."""
    for node in file.body:
        if not isinstance(node, ast.Assign) or len(node.targets) != 1:
            continue
        (target,) = node.targets
        try:
            value = ast.literal_eval(node.value)
        except (ValueError, TypeError, MemoryError, RecursionError):
            continue
        parts = value if isinstance(value, tuple) else (value,)
        plain = all(
            part.isidentifier() if isinstance(part, str) else isinstance(part, (int, float))
            for part in parts
        )
        if isinstance(target, ast.Name) and plain:
            yield target.id, value


def _bound(declared: ast.stmt) -> Iterator[str]:
    """Yield the names that a declaration binds."""
    for node in ast.walk(declared):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            yield node.name


def _chain(node: ast.expr) -> list[str]:
    """Return names that are linked by dots; nothing if it is anything else."""
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    return [node.id, *reversed(names)] if isinstance(node, ast.Name) else []


def _is_plain(node: ast.Constant) -> bool:
    """Whether a constant stays what it is, however it is evaluated."""
    if isinstance(node.value, bytes):
        return False
    text = node.value if isinstance(node.value, str) else ""
    return not _UNSAFE_TEXT.search(text)
