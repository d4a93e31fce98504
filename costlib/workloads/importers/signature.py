"""What the ``main`` of an imported module takes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from costlib.errors import UnsupportedModelError
from costlib.workloads.folding import static_type
from costlib.workloads.network import InputSpec


def input_specs(mod: Any, name: str, highs: Sequence[int] = ()) -> tuple[InputSpec, ...]:
    """Describe the inputs of a Relax module.

    Parameters
    ----------
    mod
        The module.
    name
        The network's name, for errors.
    highs
        Exclusive upper bounds of the inputs' values, in order, as far as they are known.

    Raises
    ------
    UnsupportedModelError
        The module has no ``main`` over tensors of static shape.
    """
    if "main" not in [variable.name_hint for variable in mod.get_global_vars()]:
        raise UnsupportedModelError(f"{name}: the module has no function called 'main'")
    specs = []
    for i, param in enumerate(mod["main"].params):
        shape, dtype = static_type(param)
        if shape is None:
            raise UnsupportedModelError(f"{name}: {_what_is_dynamic(param)}")
        bound = {"high": highs[i]} if i < len(highs) else {}
        specs.append(InputSpec(str(param.name), dtype, shape, **bound))
    return tuple(specs)


def _what_is_dynamic(param: Any) -> str:
    extents = getattr(getattr(param.ty, "shape", None), "values", None)
    if extents is None:
        return f"input '{param.name}' is no tensor of known shape"
    axis, extent = next((i, n) for i, n in enumerate(extents) if not hasattr(n, "value"))
    return (
        f"dimension {axis} of input '{param.name}' is dynamic ({extent}); "
        "fix it to a number before importing"
    )
