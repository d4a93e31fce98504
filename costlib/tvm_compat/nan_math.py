"""Maxima, minima and comparisons of floats that keep a NaN and infinities, as PyTorch's do.

TVM's take the other operand, or the second, as it happens to be compiled, and a reduction starts
from the largest finite number. Against a constant the right order of operands is enough and costs
nothing; otherwise an operand that is NaN is looked for.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import tvm
from tvm import tirx
from tvm.ir import register_op_attr

from costlib.tvm_compat.pipeline import install_passes
from costlib.tvm_compat.rewriting import BLOCK, Rewriter

_LEVEL = 20
_NAMES = {"prim.Max": "tirx.nan_max", "prim.Min": "tirx.nan_min", "prim.NE": "tirx.nan_ne"}
_EQUALITIES = {"prim.EQ", "prim.NE"}
"""Which LLVM does not know of booleans."""


def install() -> None:
    """Let every program that is compiled for a CPU from now on keep NaNs."""
    for name in _NAMES.values():
        register_op_attr(name, "TVectorizable", True)
        register_op_attr(name, "TCallEffectKind", _PURE)
        register_op_attr(name, "TScriptPrinterName", name.rpartition(".")[2])
    tirx.register_intrin_lowering(
        "tirx.nan_max", target="llvm", f=_lowering(tirx.Max, lambda x, y: x > y), level=_LEVEL
    )
    tirx.register_intrin_lowering(
        "tirx.nan_min", target="llvm", f=_lowering(tirx.Min, lambda x, y: x < y), level=_LEVEL
    )
    tirx.register_intrin_lowering("tirx.nan_ne", target="llvm", f=_not_equal, level=_LEVEL)
    install_passes(before=[_keep_nans])


_PURE = 0


@tvm.tirx.transform.prim_func_pass(opt_level=0)  # type: ignore[untyped-decorator]
def _keep_nans(function: Any, _mod: Any, _context: Any) -> Any:
    target = function.attrs.get("target")
    if target is None or target.kind.name != "llvm":
        return function
    return function.with_body(_Keeper().visit(function.body))


class _Keeper(Rewriter):
    """Replaces maxima, minima and comparisons of floats."""

    def part(self, node: Any, key: str, name: str, value: Any) -> Any:
        if key == BLOCK and (name == "init" or (name == "body" and _is_start_of(node))):
            return _Starts().visit(value)
        return super().part(node, key, name, value)

    def replaced(self, node: Any, key: str, new: dict[str, Any]) -> Any | None:
        if key in _NAMES and "float" in str(node.a.ty):
            return tirx.call_intrin(str(node.ty), _NAMES[key], new["a"], new["b"])
        if key in _EQUALITIES and str(node.a.ty) == "bool":
            new |= {side: tirx.Cast("int8", new[side]) for side in ("a", "b")}
        return None


class _Starts(_Keeper):
    """Lets a reduction start from an infinity."""

    def visit(self, node: Any) -> Any:
        if isinstance(node, tirx.FloatImm):
            dtype = str(node.ty)
            for bound, sign in ((tirx.max_value(dtype), 1), (tirx.min_value(dtype), -1)):
                if node.value == bound.value:
                    return tirx.FloatImm(dtype, sign * math.inf)
        return super().visit(node)


def _is_start_of(block: Any) -> bool:
    return str(block.name_hint).endswith("_init")


def _lowering(
    stock: Callable[[Any, Any], Any], is_first: Callable[[Any, Any], Any]
) -> Callable[[Any], Any]:
    """Return what lowers an extreme; ``stock`` returns its second operand if one is NaN."""

    def lower(call: Any) -> Any:
        one, other = call.args
        dtype = str(call.ty)
        if _is_constant(one):
            return stock(one, other)
        if _is_constant(other):
            return stock(other, one)
        x, y = tirx.Var("x", dtype), tirx.Var("y", dtype)
        chosen = tirx.Select(is_first(x, y), x, tirx.Select(tirx.EQ(x, x), y, x))
        return tirx.Let(x, one, tirx.Let(y, other, chosen))

    return lower


def _not_equal(call: Any) -> Any:
    """Say that NaN differs from itself, which TVM's own comparison does not."""
    lanes = int(call.ty.lanes) if hasattr(call.ty, "lanes") else 1
    no, yes = (_truth(value, lanes) for value in (False, True))
    return tirx.Select(tirx.EQ(*call.args), no, yes)


def _truth(value: bool, lanes: int) -> Any:
    constant = tirx.const(value, "bool")
    return constant if lanes == 1 else tirx.Broadcast(constant, lanes)


def _is_constant(node: Any) -> bool:
    if isinstance(node, tirx.Broadcast):
        node = node.value
    return isinstance(node, tirx.FloatImm)
