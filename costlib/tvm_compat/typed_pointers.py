"""Pointers into a GPU's shared memory that have the type of what lies there.

TVM lets buffers of several types share memory and then takes a pointer by whichever it declared
last; its last pass but one refuses that ("tvm_access_ptr element type must match the source
buffer"). So no program for tensor cores with float16 operands and float32 sums compiles with TVM
0.27. A pointer is taken by the buffer of its own type here.
"""

from __future__ import annotations

from typing import Any

import tvm
from tvm import tirx

from costlib.tvm_compat.pipeline import install_passes
from costlib.tvm_compat.rewriting import Rewriter
from costlib.tvm_compat.wmma import with_tf32_fragments


def install() -> None:
    """Let every program that is compiled for a GPU from now on have such pointers."""
    install_passes(after=[_typed])


@tvm.tirx.transform.prim_func_pass(opt_level=0)  # type: ignore[untyped-decorator]
def _typed(function: Any, _mod: Any, _context: Any) -> Any:
    target = function.attrs.get("target")
    if target is None or target.kind.name != "cuda":
        return function
    views = _Views()
    views.visit(function.body)
    return with_tf32_fragments(function.with_body(_Pointers(views).visit(function.body)))


class _Views(Rewriter):
    """Finds the buffers that lie in one another."""

    def __init__(self) -> None:
        super().__init__()
        self._inside: dict[Any, Any] = {}

    def replaced(self, node: Any, key: str, new: dict[str, Any]) -> Any | None:
        if key == "tirx.DeclBuffer" and (outer := _buffer_of(node.data)) is not None:
            self._inside[node.buffer] = outer
        return None

    def of_type(self, buffer: Any, dtype: str) -> Any | None:
        """Return a buffer of a type that begins where another does."""
        if str(buffer.dtype) == dtype:
            return buffer
        root = self._root(buffer)
        alike = (one for one in self._inside if self._root(one).same_as(root))
        return next((one for one in alike if str(one.dtype) == dtype), None)

    def _root(self, buffer: Any) -> Any:
        while buffer in self._inside:
            buffer = self._inside[buffer]
        return buffer


class _Pointers(Rewriter):
    """Takes each pointer by a buffer of its own type."""

    def __init__(self, views: _Views) -> None:
        super().__init__()
        self._views = views

    def replaced(self, node: Any, key: str, new: dict[str, Any]) -> Any | None:
        if key != "ir.Call" or node.op != _ACCESS:
            return None
        annotation, data, *rest = new["args"]
        buffer = _buffer_of(data)
        if buffer is not None:
            view = self._views.of_type(buffer, str(annotation.ty))
            if view is not None and not view.same_as(buffer):
                new["args"] = tvm.runtime.convert([annotation, tirx.buffer_data(view), *rest])
        return None


_ACCESS = tvm.ir.Op.get("tirx.tvm_access_ptr")
_DATA = tvm.ir.Op.get("tirx.buffer_data")


def _buffer_of(data: Any) -> Any | None:
    """Return the buffer whose memory an expression is; ``None`` if it is none's."""
    if isinstance(data, tvm.ir.Call) and data.op == _DATA:
        (buffer,) = data.args
        return buffer
    return data if tirx.buffer.is_buffer_var(data) else None
