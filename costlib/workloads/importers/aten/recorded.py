"""What PyTorch recorded of the values of a program: are they constant, are they complex?"""

from __future__ import annotations

from typing import Any

import torch
from torch import fx
from torch.fx.node import map_aggregate

from costlib.tvm_compat import relax

_MOST_FOLDED = 1 << 22
"""Elements of a constant that is computed, unless what it is computed from has as many."""

OF_COMPLEX = " of complex"
"""Ends the name of a converter that an operator has for complex tensors alone."""


def is_complex(node: fx.Node) -> bool:
    """Whether an operator reads or makes complex tensors."""
    values = [found.meta.get("val") for found in (node, *node.all_input_nodes)]
    return any(tensor.dtype.is_complex for tensor in tensors(values))


def real_part_of(out: Any) -> Any:
    """Describe the real part of what PyTorch recorded, of one tensor or several."""
    if isinstance(out, (list, tuple)):
        return [real_part_of(each) for each in out]
    return torch.empty(out.shape, dtype=out.dtype.to_real(), device="meta")


def is_expression(value: Any) -> bool:
    """Whether a value is one of Relax, and not known yet."""
    return isinstance(value, relax.Expr)


def is_foldable(args: Any, kwargs: Any, out: Any) -> bool:
    """Whether an operator depends on constants alone, and what it makes of them is small."""
    sizes = [0]
    constant = True

    def look(value: Any) -> Any:
        nonlocal constant
        if isinstance(value, torch.Tensor):
            sizes.append(value.numel())
        elif is_expression(value):
            constant = False
        return value

    map_aggregate([args, dict(kwargs)], look)
    made = [t.numel() for t in tensors(out)]
    return constant and sum(made) <= max(_MOST_FOLDED, *sizes)


def tensors(value: Any) -> list[torch.Tensor]:
    """Return the tensors in a nest."""
    found: list[torch.Tensor] = []
    map_aggregate(value, lambda v: found.append(v) if isinstance(v, torch.Tensor) else None)
    return found


def has_no_elements(recorded: Any) -> bool:
    """Whether PyTorch recorded a tensor that is empty, whatever the data are."""
    shape = recorded.shape if isinstance(recorded, torch.Tensor) else ()
    return all(isinstance(extent, int) for extent in shape) and 0 in shape
