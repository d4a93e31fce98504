"""PyTorch's core operators (ATen) in Relax."""

from __future__ import annotations

from costlib.workloads.importers.aten import (
    adaptive_pooling,
    arithmetic,
    complex_numbers,
    elementwise,
    extremes,
    indexing,
    norms,
    placed,
    pooling,
    products,
    quantised,
    reductions,
    regions,
    resizing,
    shapes,
    sorting,
)
from costlib.workloads.importers.aten.graph import Converter, Graph

CONVERTERS: dict[str, Converter] = {
    name: converter
    for module in (
        adaptive_pooling,
        arithmetic,
        complex_numbers,
        elementwise,
        extremes,
        indexing,
        norms,
        placed,
        pooling,
        products,
        quantised,
        reductions,
        regions,
        resizing,
        shapes,
        sorting,
    )
    for name, converter in module.CONVERTERS.items()
}
"""By the operator's name, overloads together."""

__all__ = ["CONVERTERS", "Graph"]
