"""Which operators can be imported."""

from __future__ import annotations

import importlib
from collections.abc import Iterator

import onnx

from costlib.workloads.importers.onnx import control
from costlib.workloads.importers.onnx.folding import FOLDED
from costlib.workloads.importers.onnx.node import CONVERTERS

_MODULES = (
    "activations",
    "casting",
    "convolution",
    "elementwise",
    "indexing",
    "microsoft",
    "moving",
    "normalisation",
    "padding",
    "pooling",
    "products",
    "quantised",
    "recurrent",
    "reductions",
    "resizing",
    "sampling",
    "sequences",
    "signals",
)

_HINTS = {
    "Bernoulli": "random numbers; make them an input of the model",
    "Det": "write the determinant out, or leave it to the program around the model",
    "Multinomial": "random numbers; make them an input of the model",
    "RandomNormal": "random numbers; make them an input of the model",
    "RandomNormalLike": "random numbers; make them an input of the model",
    "RandomUniform": "random numbers; make them an input of the model",
    "RandomUniformLike": "random numbers; make them an input of the model",
}
"""What to do about operators that have no equivalent."""


def load() -> None:
    """Register the converters."""
    for module in _MODULES:
        importlib.import_module(f"costlib.workloads.importers.onnx.{module}")


def lacking(
    graph: onnx.GraphProto, opsets: dict[str, int], functions: set[tuple[str, str, str]]
) -> list[str]:
    """Name the operators of a graph that cannot be imported."""
    found: dict[str, None] = {}
    for node in _nodes(graph):
        domain = "" if node.domain == "ai.onnx" else node.domain
        key = (domain, node.op_type)
        if (*key, node.overload) in functions or key in CONVERTERS or key in control.CONVERTERS:
            continue
        if (not domain and node.op_type in FOLDED) or _is_defined(domain, node, opsets):
            continue
        found[f"{domain}.{node.op_type}" if domain else node.op_type] = None
    return list(found)


def explained(operator: str) -> str:
    """Return the name of an operator, and what to write instead, if that is known."""
    hint = _HINTS.get(operator)
    if operator.startswith("com.microsoft.nchwc."):
        hint = "for one processor; let ONNX Runtime save the model with ORT_ENABLE_EXTENDED"
    return f"{operator} ({hint})" if hint else operator


def _nodes(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from _nodes(attribute.g)


def _is_defined(domain: str, node: onnx.NodeProto, opsets: dict[str, int]) -> bool:
    """Whether ONNX defines an operator by simpler ones."""
    try:
        schema = onnx.defs.get_schema(node.op_type, opsets.get(domain, 1), domain)
    except onnx.defs.SchemaError:
        return False
    if node.op_type in _HINTS:
        return False
    return bool(schema.has_function or schema.has_context_dependent_function)
