"""Several Relax modules as one, with a function of each and kernels that they share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from costlib.tvm_compat import relax, tirx


def merged(modules: Mapping[str, Any]) -> Any:
    """Merge prepared modules: ``main`` of each becomes the function of that name.

    Of kernels that are equal one is kept. What else there is, such as what a network says of
    itself, is that of the module called ``main``.
    """
    builder = relax.BlockBuilder()
    kept: dict[str, Any] = {}
    for name, module in modules.items():
        kernels = {
            variable: builder.add_func(function, variable.name_hint)  # It knows equal ones.
            for variable, function in module.functions.items()
            if isinstance(function, tirx.PrimFunc)
        }
        for variable, function in module.functions.items():
            if isinstance(function, relax.Function) and _is_wanted(variable, name):
                own = name if variable.name_hint == "main" else str(variable.name_hint)
                renamed = _Renaming(kernels).visit_expr(function)
                kept[own] = renamed.with_attr("global_symbol", own)
    result = builder.get()
    for name, function in kept.items():
        result[name] = function
    return result


def _is_wanted(variable: Any, name: str) -> bool:
    return name == "main" or variable.name_hint == "main"


@relax.expr_functor.mutator
class _Renaming(relax.expr_functor.PyExprMutator):  # type: ignore[misc]
    """Replaces the kernels that a function calls."""

    def __init__(self, variables: Mapping[Any, Any]) -> None:
        super().__init__()
        self._variables = variables

    def visit_global_var_(self, variable: Any) -> Any:
        """Return what stands for a kernel now."""
        return self._variables.get(variable, variable)
