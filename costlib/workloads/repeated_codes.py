"""Integers that a quantised network computes twice, because several operators read them.

Exporters round the same tensor for each of its readers. Numbers that integers are expanded to are
computed again by each all the same: they take four times the memory, and that is fused.
"""

from __future__ import annotations

from typing import Any

from costlib.tvm_compat import relax, tvm
from costlib.workloads.behind_products import ELEMENTWISE, ROUNDING
from costlib.workloads.folding import is_call, rewritten, static_type

_BYTES = ("int8", "uint8")
_COMPARED_BYTES = 64
"""A larger constant is taken for another one, unless it is the same object."""


def without_repeated_codes(mod: Any) -> Any:
    """Compute them once in a Relax module, each function of which is one dataflow block."""
    return rewritten(mod, lambda _: _Rewriter())


@relax.expr_functor.mutator
class _Rewriter(relax.PyExprMutator):  # type: ignore[misc]
    """Numbers what is computed element by element: equal numbers, equal values."""

    def __init__(self) -> None:
        super().__init__()
        self._numbers: dict[Any, int] = {}
        self._number_of: dict[Any, int] = {}
        self._made: dict[int, Any] = {}
        self._expanded: set[int] = set()

    def visit_call_(self, call: Any) -> Any:
        shape, dtype = static_type(call)
        call = self.visit_expr_post_order(call)
        name = getattr(call.op, "name", "")
        if shape is None or name not in ELEMENTWISE | ROUNDING:
            return call
        parts = [self._part(argument) for argument in call.args]
        key = name, dtype, shape, str(call.attrs), *parts
        number = self._numbers.setdefault(key, len(self._numbers))
        expands = is_call(call, "relax.astype") and static_type(call.args[0])[1] in _BYTES
        if expands or not self._expanded.isdisjoint(p for p in parts if isinstance(p, int)):
            self._expanded.add(number)
        if dtype in _BYTES:
            self._expanded.discard(number)
        if number in self._made and number not in self._expanded:
            return self._made[number]
        made = self.builder_.emit(call)
        self._number_of[made] = number
        self._made[number] = made
        return made

    def _part(self, argument: Any) -> Any:
        """Return what two arguments have in common if they are equal: a number, if it has one."""
        while isinstance(argument, relax.Var):
            if argument in self._number_of:
                return self._number_of[argument]
            bound = self.lookup_binding(argument)
            if not isinstance(bound, relax.Var):
                return argument
            argument = bound
        if isinstance(argument, tvm.ir.GenericConst):
            array = argument.value.numpy()
            if array.nbytes <= _COMPARED_BYTES:
                return str(array.dtype), array.shape, array.tobytes()
            return argument.value
        return str(argument)
