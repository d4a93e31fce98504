"""PyTorch's core operators (ATen) in Relax."""

from __future__ import annotations

from costlib.workloads.importers.aten import (
    elementwise,
    indexing,
    norms,
    pooling,
    products,
    reductions,
    shapes,
)
from costlib.workloads.importers.aten.graph import Converter, Graph

CONVERTERS: dict[str, Converter] = {
    name: converter
    for module in (elementwise, indexing, norms, pooling, products, reductions, shapes)
    for name, converter in module.CONVERTERS.items()
}
"""By the operator's name, overloads together."""

__all__ = ["CONVERTERS", "Graph"]
